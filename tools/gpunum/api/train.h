// >>train
// Layers, losses and optimizers.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// x (..., in) times w (in, out) plus b (out); b may be NULL. PyTorch keeps w as (out, in): gn_transpose. As lazy as
// gn_matmul. In gn_backward the gradients of w and b come of one job; b's are float32 sums over the rows, in a fixed order.
GPUNUM_API gn_array *gn_linear(gn_array *x, gn_array *w, gn_array *b);
// a (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))) / 2, GPT-2's gelu (PyTorch: approximate='tanh'). A float dtype; halves are
// computed in float32 and rounded once, the gradient too. gn_gelu is the exact one.
GPUNUM_API gn_array *gn_gelu_tanh(gn_array *a);
// x with each element 0 with probability p and else times 1 / (1 - p); a copy of x where not training. Numbers of the
// context's stream; no mask is kept: the gradient draws them again.
GPUNUM_API gn_array *gn_dropout(gn_array *x, double p, bool training);
// Rows of the table (rows, size) by integer indices (...): (..., size). The gradient is summed in a fixed order; the row
// `padding` gets none of it (GN_NONE: every row does). An index that there is not: as in gn_take.
GPUNUM_API gn_array *gn_embedding(gn_array *indices, gn_array *table, int64_t padding);
typedef struct gn_attention_options {
    double scale;      // 0 = 1 / sqrt(d)
    bool causal;       // query i sees keys 0 to i
    int64_t workspace; // bytes of scores that may be there at a time; 0 = 64 MiB, without a GPU 4 MiB
    double dropout;    // of the weights, where training. What takes a workspace needs one for all of them at a time then
} gn_attention_options;
// softmax(scale q k^T + mask) v, PyTorch's scaled_dot_product_attention: q (..., heads, n, d), k (..., key heads, m, d) and
// v (..., key heads, m, e) give (..., heads, n, e). Of heads there are as many as key heads, or a multiple: each of these
// serves neighbours. The mask broadcasts to (..., heads, n, m): bool, of keys that a query sees, or a float, which is added
// to the scores; -1e30 and less hides a key. A query that sees no key gives zeros. What is hidden should be finite. Float16
// and bfloat16 are summed in float32. One float dtype, any strides; `mask` and `options` may be NULL. The gradient computes
// scores again, within the same workspace; only a graph of it has all of them. On a GPU, but for browsers', all but float64
// with d and e multiples of 8 up to 128 takes no workspace, but for the gradient of a mask. On a CPU all but float64 with 8
// queries and 32 keys or more takes 64 KB of it a thread, but for that gradient and dropout; where less is allowed, the way
// is that of the others.
GPUNUM_API gn_array *gn_attention(gn_array *q, gn_array *k, gn_array *v, gn_array *mask,
                                  const gn_attention_options *options);
typedef struct gn_rope_options {
    double base;      // 0 = 10000
    int64_t dims;     // columns that are rotated, the first ones; 0 = all
    bool interleaved; // pairs are columns 2 i and 2 i + 1 (RoFormer, GPT-J); else i and i + dims / 2 (NeoX, Llama)
} gn_rope_options;
// Rotary embedding of x (..., n, d): pair i of a row is turned by its position times base^(-2 i / dims). Positions are
// integers that broadcast to (..., n); NULL: 0 to n - 1. `options` may be NULL. Angles are float32's best up to position
// 2^24.
GPUNUM_API gn_array *gn_rope(gn_array *x, gn_array *positions, const gn_rope_options *options);
typedef struct gn_rnn_options {
    int layers; // 0 = 1
    bool bidirectional, batch_first, no_bias;
    double dropout; // of what goes from layer to layer: set it where training alone
} gn_rnn_options;
// PyTorch's LSTM and GRU: x (n, batch, in), or (batch, n, in) with batch_first, gives (n, batch, h): 2 h with both
// directions. The weights are PyTorch's in its order: for each layer and in it for each direction weight_ih (4 h, in) and
// weight_hh (4 h, h) with gates i, f, g, o, or (3 h, ...) with r, z, n, and bias_ih and bias_hh but for no_bias. h0 and c0
// are (layers directions, batch, h), NULL zeros; states behind the last step go to *hn and *cn, which may be NULL: theirs is
// the result's ownership. All of one float dtype; of halves the products, all else in float32.
GPUNUM_API gn_array *gn_lstm(gn_array *x, gn_array *const *weights, int count, gn_array *h0, gn_array *c0,
                             const gn_rnn_options *options, gn_array **hn, gn_array **cn);
GPUNUM_API gn_array *gn_gru(gn_array *x, gn_array *const *weights, int count, gn_array *h0, const gn_rnn_options *options,
                            gn_array **hn);
// Mean over rows of logsumexp(logits) - logits[label]; logits (n, classes), labels (n) integers; halves are computed in
// float32. A label that is not from 0 to classes - 1 is GN_ERROR_ARGUMENT: at once where the CPU has the labels, else of the
// next call that waits for the GPU.
GPUNUM_API gn_array *gn_cross_entropy(gn_array *logits, gn_array *labels);
GPUNUM_API gn_array *gn_mse_loss(gn_array *prediction, gn_array *target); // mean of squares

// Losses as in PyTorch. What is predicted is a float array and the target has its shape; float16 and bfloat16 are computed
// in float32. Each is one pass over its operands, and can be differentiated twice.
typedef enum gn_reduction {
    GN_REDUCE_MEAN,      // of all elements
    GN_REDUCE_SUM,
    GN_REDUCE_NONE,      // an array of losses
    GN_REDUCE_BATCH_MEAN // the sum by the size of axis 0, which kl_div wants
} gn_reduction;
GPUNUM_API gn_array *gn_mse_loss_with(gn_array *prediction, gn_array *target, gn_reduction r);
GPUNUM_API gn_array *gn_l1_loss(gn_array *prediction, gn_array *target, gn_reduction r); // |p - t|
// d = |p - t|: d^2 / (2 beta) below beta, d - beta / 2 from there on; beta 0: l1. PyTorch's default is 1.
GPUNUM_API gn_array *gn_smooth_l1_loss(gn_array *prediction, gn_array *target, double beta, gn_reduction r);
GPUNUM_API gn_array *gn_huber_loss(gn_array *prediction, gn_array *target, double delta, gn_reduction r); // delta times that
// -t log p - (1 - t) log(1 - p), with logarithms from -100 on.
GPUNUM_API gn_array *gn_bce_loss(gn_array *p, gn_array *target, gn_reduction r);
// The same of p = sigmoid(logits), stable. pos_weight, which broadcasts to the logits: of the first term; NULL: 1.
GPUNUM_API gn_array *gn_bce_with_logits(gn_array *logits, gn_array *target, gn_array *pos_weight, gn_reduction r);
// t (log t - q) of log-probabilities q; with log_target those of the target are given too.
GPUNUM_API gn_array *gn_kl_div(gn_array *log_q, gn_array *target, bool log_target, gn_reduction r);
// a b / (max(|a|, eps) max(|b|, eps)) along the axis; a and b broadcast. PyTorch's eps is 1e-8.
GPUNUM_API gn_array *gn_cosine_similarity(gn_array *a, gn_array *b, int axis, double eps);
// Of rows (n, d) or one (d), by labels (n) or (): 1 - cos for 1, max(0, cos - margin) for -1.
GPUNUM_API gn_array *gn_cosine_embedding_loss(gn_array *a, gn_array *b, gn_array *labels, double margin, gn_reduction r);
typedef struct gn_cross_entropy_options {
    gn_array *weight;       // (classes), what a row of that label counts; NULL: 1. A mean is divided by their sum.
    double label_smoothing; // 0 to 1: so much of the target is spread over all classes
    bool ignores;           // rows with the label `ignored` (PyTorch's default is -100) count nothing
    int64_t ignored;
    gn_reduction reduction; // GN_REDUCE_BATCH_MEAN is not one of these
} gn_cross_entropy_options;
// logits (n, classes, ...) or (classes), integer labels without the axis of classes; wrong ones as in gn_cross_entropy.
// `options` may be NULL.
GPUNUM_API gn_array *gn_cross_entropy_with(gn_array *logits, gn_array *labels, const gn_cross_entropy_options *options);
// The same of log-probabilities; no label smoothing.
GPUNUM_API gn_array *gn_nll_loss(gn_array *log_p, gn_array *labels, const gn_cross_entropy_options *options);

// Convolutions, as in PyTorch: channels first, kernels not turned round. NULL for options: all of them 0.
typedef struct gn_conv_options {
    int64_t stride, pad, dilation;             // of all spatial axes; 0 = 1, 0, 1
    int64_t strides[3], pads[3], dilations[3]; // by axis: count instead of the number where one of the three is not 0
    int64_t groups;                            // 0 = 1; as many as channels: depthwise
    bool same;                                 // y as large as x: pads, where uneven more behind. Stride 1
    int64_t output_pad, output_pads[3];        // transposed ones alone: so much more at the end of each axis
} gn_conv_options;
// x (n, in, spatial axes...) or without n, w (out, in / groups, kernel axes...), b (out) or NULL: (n, out, ...). x and w are
// float arrays. Computed when called, without an array of windows on the CPU; on a GPU in pieces whose windows take 64 MiB
// at most. Gradients of all three, of any order. gn_options.matmul says how a GPU multiplies float32.
GPUNUM_API gn_array *gn_conv1d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
GPUNUM_API gn_array *gn_conv2d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
GPUNUM_API gn_array *gn_conv3d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
// What takes gn_conv1d's, gn_conv2d's and gn_conv3d's gradients back to their x: x (n, in, spatial axes...), w (in,
// out / groups, kernel axes...).
GPUNUM_API gn_array *gn_conv_transpose1d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
GPUNUM_API gn_array *gn_conv_transpose2d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);
GPUNUM_API gn_array *gn_conv_transpose3d(gn_array *x, gn_array *w, gn_array *b, const gn_conv_options *options);

// Pooling of x (..., h, w), a float array with axes in front of these two or without: as in PyTorch.
typedef struct gn_pool_options {
    int64_t stride, pad, dilation;                       // of both axes; 0 = the size, 0, 1
    // By axis: count instead of the number where one of the two is not 0.
    int64_t sizes[2], strides[2], pads[2], dilations[2];
    bool ceil;   // windows that the end cuts off count too
    bool inside; // averages are over what of the window lies in x, without the pad
} gn_pool_options;
// The largest element of each window, NaN before all. *indices, where it is not NULL, gets where it is, w times row +
// column, the first of equal ones (of NaN any), int64: the scope's or the caller's as the result is.
GPUNUM_API gn_array *gn_max_pool2d(gn_array *x, int64_t size, const gn_pool_options *options, gn_array **indices);
GPUNUM_API gn_array *gn_avg_pool2d(gn_array *x, int64_t size, const gn_pool_options *options); // no dilation
// Windows that cover x evenly: of height places from h i / height, rounded down, to h (i + 1) / height, rounded up.
GPUNUM_API gn_array *gn_adaptive_max_pool2d(gn_array *x, int64_t height, int64_t width, gn_array **indices);
GPUNUM_API gn_array *gn_adaptive_avg_pool2d(gn_array *x, int64_t height, int64_t width);
typedef enum gn_interpolation { GN_NEAREST, GN_BILINEAR } gn_interpolation;
// x (..., h, w) as (..., height, width). Bilinear: the corners of the outermost pixels meet, or with align_corners their
// centres.
GPUNUM_API gn_array *gn_interpolate(gn_array *x, int64_t height, int64_t width, gn_interpolation mode, bool align_corners);

// Normalisation: (x - mean) / sqrt(variance + eps) times w plus b, either of which may be NULL; x a float array, halves
// computed in float32. Forward the two moments and one pass that writes, backward two or four sums and one such pass.
// PyTorch's eps is 1e-5. x (n, channels, ...), by channel; w and b (channels). In training the moments are those of the
// batch, and where `mean` and `var` (channels) are not NULL they become 1 - momentum times themselves plus momentum
// (PyTorch's is 0.1) times the batch's mean and unbiased variance; a gn_checkpoint does that once. Else they are the
// moments.
GPUNUM_API gn_array *gn_batch_norm(gn_array *x, gn_array *mean, gn_array *var, gn_array *w, gn_array *b, bool training,
                                   double momentum, double eps);
// Over the last `axes` axes of x, whose sizes w and b have.
GPUNUM_API gn_array *gn_layer_norm(gn_array *x, int axes, gn_array *w, gn_array *b, double eps);
GPUNUM_API gn_array *gn_rms_norm(gn_array *x, int axes, gn_array *w, double eps); // x / sqrt(mean(x x) + eps) times w
// x (n, channels, ...), for each of n over groups of channels with all behind them, or over each channel alone; w and b
// (channels).
GPUNUM_API gn_array *gn_group_norm(gn_array *x, int64_t groups, gn_array *w, gn_array *b, double eps);
GPUNUM_API gn_array *gn_instance_norm(gn_array *x, gn_array *w, gn_array *b, double eps);

// Weights for a layer of shape s = (in, out), or for a convolution's (out, in / groups, kernel axes...): He for relu, Glorot
// for tanh and linear layers. Float dtypes, requires_grad on.
GPUNUM_API gn_array *gn_he_normal(gn_context *g, gn_dtype t, gn_shape s);
GPUNUM_API gn_array *gn_xavier_uniform(gn_context *g, gn_dtype t, gn_shape s);

typedef struct gn_optimizer gn_optimizer;
typedef struct gn_sgd_options {
    double lr, momentum, dampening, weight_decay; // lr 0 = 0.01
    bool nesterov;
} gn_sgd_options;
typedef struct gn_adam_options {
    double lr, beta1, beta2, eps, weight_decay; // 0 = 1e-3, 0.9, 0.999, 1e-8 and for AdamW 0.01; as good as none: 1e-30
} gn_adam_options;
// The optimizer holds a reference to each parameter, which is in C order, and updates it in place. `options` may be NULL.
// Without a parameter there is no context to tell: these return NULL, gn_optimizer_add_group GN_ERROR_ARGUMENT.
GPUNUM_API gn_optimizer *gn_sgd(gn_array *const *params, int count, const gn_sgd_options *options);
GPUNUM_API gn_optimizer *gn_adam(gn_array *const *params, int count, const gn_adam_options *options);
GPUNUM_API gn_optimizer *gn_adamw(gn_array *const *params, int count, const gn_adam_options *options);
typedef struct gn_rmsprop_options {
    double lr, alpha, eps, weight_decay, momentum; // 0 = 0.01, 0.99, 1e-8
    bool centered;
} gn_rmsprop_options;
typedef struct gn_adagrad_options {
    double lr, lr_decay, weight_decay, initial, eps; // 0 = 0.01 for lr and 1e-10 for eps; initial: of the sum of squares
} gn_adagrad_options;
typedef struct gn_lion_options {
    double lr, beta1, beta2, weight_decay; // 0 = 1e-4, 0.9, 0.99
} gn_lion_options;
typedef struct gn_muon_options {
    double lr, momentum, weight_decay; // 0 = 1e-3, 0.95, 0.1
    bool plain;                        // without Nesterov's momentum
} gn_muon_options;
GPUNUM_API gn_optimizer *gn_rmsprop(gn_array *const *params, int count, const gn_rmsprop_options *options);
GPUNUM_API gn_optimizer *gn_adagrad(gn_array *const *params, int count, const gn_adagrad_options *options);
GPUNUM_API gn_optimizer *gn_lion(gn_array *const *params, int count, const gn_lion_options *options);
// Matrices (in, out) alone: others go to an optimizer of their own.
GPUNUM_API gn_optimizer *gn_muon(gn_array *const *params, int count, const gn_muon_options *options);
// More parameters, with a learning rate of lr_factor times the optimizer's and a weight decay of their own.
GPUNUM_API gn_status gn_optimizer_add_group(gn_optimizer *opt, gn_array *const *params, int count, double lr_factor,
                                            double weight_decay);
// With more settings of their own, of those that the optimizer has: 0 = as the optimizer's, lr_factor 1. Of the integers 1
// is yes, -1 no. These are saved with the optimizer.
typedef struct gn_group_options {
    double lr_factor, weight_decay, momentum, dampening, beta1, beta2, alpha, eps, lr_decay, initial;
    int nesterov, centered;
} gn_group_options;
GPUNUM_API gn_status gn_optimizer_add_group_with(gn_optimizer *opt, gn_array *const *params, int count,
                                                 const gn_group_options *options);
// Between gn_backward and gn_step. The gradients times min(1, max_norm / (norm + 1e-6)) with the norm of all of them
// together, which is returned and not waited for; or their elements between -value and value.
GPUNUM_API gn_array *gn_clip_grad_norm(gn_array *const *params, int count, double max_norm);
GPUNUM_API gn_status gn_clip_grad_value(gn_array *const *params, int count, double value);
// averages[i] = decay averages[i] + (1 - decay) params[i], in place; they begin as gn_detach(gn_copy(p)) of each.
GPUNUM_API gn_status gn_ema_update(gn_array *const *averages, gn_array *const *params, int count, double decay);
// Gradients add up over calls of gn_backward: a batch may come in k parts, each loss divided by k, with one step and one
// gn_zero_grads behind the last.
GPUNUM_API gn_status gn_step(gn_optimizer *opt); // parameters without a gradient stay as they are; the log is told if all do
GPUNUM_API void gn_zero_grads(gn_optimizer *opt); // gn_grad becomes NULL
GPUNUM_API void gn_lr_set(gn_optimizer *opt, double lr);
GPUNUM_API double gn_lr_get(const gn_optimizer *opt);
GPUNUM_API void gn_optimizer_free(gn_optimizer *opt); // gn_close frees those still alive

// Mixed precision: until gn_autocast_end gn_matmul, gn_linear, convolutions, gn_attention, gn_lstm and gn_gru take float32
// operands as halves of that dtype and give halves; softmax, logsumexp and losses take halves as float32; everything else
// (gn_dot, gn_einsum too) follows its operands. Parameters stay float32, and so do their gradients; gn_backward may come
// inside or behind. Pairs nest, GN_F32 switches it off in between; of a thread each. Bfloat16 needs no more. The gradients
// of float16 need a scaled loss:
GPUNUM_API void gn_autocast_begin(gn_context *g, gn_dtype t);
GPUNUM_API void gn_autocast_end(gn_context *g);
// `scale` is the caller's array of two float32 numbers, {65536, 0} at first: the loss is multiplied by the first one.
// gn_step_scaled is gn_step of gradients divided by it and, unless max_norm is 0, clipped to that norm. Where a gradient is
// not finite all parameters and states stay as they are and the scale is halved; after `interval` (0 = 2000) steps without
// that it is doubled. Of several optimizers with one scale all but the last have GN_NONE for the interval, which leaves the
// scale to that one. Nothing is waited for; counts of steps (Adam's, Adagrad's for lr_decay, SGD's first) go on all the
// same. To be saved: the scale, in gn_params.
GPUNUM_API gn_array *gn_scale_loss(gn_array *loss, gn_array *scale);
GPUNUM_API gn_status gn_step_scaled(gn_optimizer *opt, gn_array *scale, int64_t interval, double max_norm);

// Learning rates for gn_lr_set, by the number of the step, or epoch, from 0 on: PyTorch's schedules, of which nothing else
// is to be saved. What makes no sense gives NaN, which gn_lr_set refuses. A warm-up multiplies: gn_lr_linear(step, 1, 0.1,
// 1, 500).
GPUNUM_API double gn_lr_step(int64_t step, double lr, int64_t every, double gamma); // lr gamma^(step / every)
// times gamma at each of the milestones
GPUNUM_API double gn_lr_multi_step(int64_t step, double lr, const int64_t *milestones, int count, double gamma);
GPUNUM_API double gn_lr_exponential(int64_t step, double lr, double gamma); // lr gamma^step
// From lr to `least` in so many steps, and up again; or from lr again, each time in `factor` times as many.
GPUNUM_API double gn_lr_cosine(int64_t step, double lr, int64_t steps, double least);
GPUNUM_API double gn_lr_cosine_restarts(int64_t step, double lr, int64_t steps, int64_t factor, double least);
// From first times lr to last times lr, where it stays.
GPUNUM_API double gn_lr_linear(int64_t step, double lr, double first, double last, int64_t steps);
// From most / 25 up in the first 30 %, and down to most / 250000, along cosines (Smith and Topin, 2019).
GPUNUM_API double gn_lr_one_cycle(int64_t step, double most, int64_t steps);
// Lowers the rate where the metric has not become better for `patience` calls. Set lr, and what else is to differ from the
// defaults, and call it once an epoch; the struct is all that there is to be saved.
typedef struct gn_plateau {
    double lr, factor, threshold, least; // 0 = 0.1 for factor, 1e-4 for threshold, of what was best
    int patience, cooldown;              // 0 = 10 for patience
    bool rises;                          // more is better
    bool begun;                          // from here on: its own
    double best;
    int bad, resting;
} gn_plateau;
GPUNUM_API double gn_lr_plateau(gn_plateau *p, double metric); // the rate for the next epoch

// Named arrays in the order in which they came: the parameters and buffers of a model. The list is an owner of each; what it
// hands out is lent for as long as it has it.
typedef struct gn_params gn_params;
GPUNUM_API gn_params *gn_params_new(gn_context *g);
GPUNUM_API void gn_params_free(gn_params *p); // gn_close frees those still alive
GPUNUM_API gn_status gn_params_add(gn_params *p, const char *name, gn_array *a); // a name is there once
GPUNUM_API int gn_params_count(const gn_params *p);
GPUNUM_API const char *gn_params_name(const gn_params *p, int i);
GPUNUM_API gn_array *gn_params_at(const gn_params *p, int i);
GPUNUM_API gn_array *gn_params_get(const gn_params *p, const char *name); // NULL: there is none
// Metadata: text by a key.
GPUNUM_API gn_status gn_params_note(gn_params *p, const char *key, const char *text);
GPUNUM_API const char *gn_params_noted(const gn_params *p, const char *key);
// Files in the format safetensors, which Python's library of that name reads and writes: every dtype but complex128.
// A file that is there stays as it is until the new one is whole.
GPUNUM_API gn_status gn_params_save(const gn_params *p, const char *path);
GPUNUM_API size_t gn_params_save_memory(const gn_params *p, void *out, size_t capacity);
// A file's arrays over those of the list, in their dtypes: names and shapes must be the same, or nothing is written.
// Metadata too.
GPUNUM_API gn_status gn_params_load(gn_params *p, const char *path);
GPUNUM_API gn_status gn_params_load_memory(gn_params *p, const void *data, size_t bytes);
// The same of the names that are in both, PyTorch's strict=False: those that the file lacks stay as they are. Which these
// are and what of the file nobody took are lists for gn_params_free, *missing and *unused; either may be NULL, on failure
// they become NULL.
GPUNUM_API gn_status gn_params_load_matching(gn_params *p, const char *path, gn_params **missing, gn_params **unused);
GPUNUM_API gn_status gn_params_load_matching_memory(gn_params *p, const void *data, size_t bytes, gn_params **missing,
                                                    gn_params **unused);
// Everything that is in a file, on the CPU.
GPUNUM_API gn_params *gn_load_safetensors(gn_context *g, const char *path);
GPUNUM_API gn_params *gn_load_safetensors_memory(gn_context *g, const void *data, size_t bytes);
// Adds an optimizer's states, and as they are at this moment its rate, its steps and the place in the context's random
// stream: once more before each save. To resume: make everything as at first, add the optimizer, gn_params_load,
// gn_optimizer_restore. Training then goes on with the same bits where the placement is fixed.
GPUNUM_API gn_status gn_params_add_optimizer(gn_params *p, const char *name, gn_optimizer *opt);
GPUNUM_API gn_status gn_optimizer_restore(gn_optimizer *opt, gn_params *p, const char *name);
