// >>grad
// Reverse-mode differentiation: ops on arrays that require a gradient are recorded, gn_backward runs
// the record back. Gradients are ordinary arrays, computed lazily on the same device.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Float arrays that do not depend on one that requires a gradient already; returns `a`. Switched off, as for a layer that is
// to stay as it is, ops do not record it any more; a gradient that is there already stays, and gn_step takes it.
GPUNUM_API gn_array *gn_requires_grad(gn_array *a, bool on);
GPUNUM_API bool gn_needs_grad(const gn_array *a); // requires one, or depends on one that does
// Adds d loss / d x to gn_grad(x) of every x that requires it. `loss` has one element. Lets go of the record below it: once
// more is GN_ERROR_GRADIENT.
GPUNUM_API gn_status gn_backward(gn_array *loss);
// Lent by `a`, until its gradient changes or its last owner (a caller, a scope, an optimizer) lets go of it: gn_retain
// makes it yours, without that gn_release, gn_keep and gn_set refuse to give it away. NULL if there is none. Results of ops
// have none: a parameter that is updated by hand, w = w - rate * gn_grad(w), needs gn_no_grad_begin around that, and a
// warning in the log says so.
GPUNUM_API gn_array *gn_grad(gn_array *a);
GPUNUM_API void gn_zero_grad(gn_array *a);
GPUNUM_API gn_array *gn_detach(gn_array *a); // the same memory, not recorded
GPUNUM_API void gn_no_grad_begin(gn_context *g);
GPUNUM_API void gn_no_grad_end(gn_context *g);
// d loss / d params[i] into out[i] (new arrays) without touching gn_grad; an unused parameter gives zeros, a loss
// that depends on none GN_ERROR_GRADIENT.
// With create_graph the gradients can be differentiated again, and so can the loss; without it the record is let go of, as by
// gn_backward.
GPUNUM_API gn_status gn_gradients(gn_array *loss, gn_array *const *params, int count, bool create_graph,
                                  gn_array **out);
// Compares gradients of `fn` (returns a 1-element array) at float64 or float32 `inputs` with central differences.
// Returns the largest error, |analytic - numeric| / max(1, |numeric|); NaN on failure.
typedef gn_array *(*gn_function)(gn_context *g, gn_array *const *inputs, int count, void *user);
GPUNUM_API double gn_gradcheck(gn_function fn, gn_array *const *inputs, int count, double step, void *user);
// One op of the caller's. `forward` makes a float array of the `count` inputs and is not recorded. `backward` gets them, the
// result `out` and the gradient `gy` of it, and puts the gradient of each input into gx[i], of its shape (NULL only for one
// that needs none); made of gn_ functions it can be differentiated again. Where in or out were overwritten it is not called,
// which gn_backward reports.
typedef void (*gn_custom_gradient)(gn_context *g, gn_array *const *in, int count, gn_array *out, gn_array *gy, gn_array **gx,
                                   void *user);
GPUNUM_API gn_array *gn_custom(gn_function forward, gn_custom_gradient backward, gn_array *const *in, int count, void *user);
// fn(in), of which only the inputs are kept: gn_backward computes it once more, with the same random numbers. Gradients
// reach what is in `in` and nothing else that fn uses; they cannot be differentiated again.
GPUNUM_API gn_array *gn_checkpoint(gn_function fn, gn_array *const *in, int count, void *user);
