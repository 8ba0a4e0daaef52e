// >>random
// Philox 4x32-10, counter based: the same seed gives the same numbers on every backend, bit for bit.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed);
// A seed for another context, drawn from this one's stream: streams that are split off like this are independent.
GPUNUM_API uint64_t gn_seed_split(gn_context *g);
GPUNUM_API gn_array *gn_rand(gn_context *g, gn_dtype t, gn_shape s);  // uniform in [0, 1)
GPUNUM_API gn_array *gn_randn(gn_context *g, gn_dtype t, gn_shape s); // standard normal
// low + u (high - low) with u from gn_rand; rounding may give `high` itself.
GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high);
GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation);
GPUNUM_API gn_array *gn_randint(gn_context *g, gn_dtype t, gn_shape s, int64_t low, int64_t high); // [low, high)
// 1 with probability p, which is rounded up to a multiple of 2^-24.
GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p);
// Up to 32768 are shuffled on the CPU; of more each place is worked out by itself, by a block cipher on as many numbers.
GPUNUM_API gn_array *gn_permutation(gn_context *g, gn_dtype t, int64_t n); // integers 0 to n - 1 in random order

// These are made in double, on a GPU that has float64 and int64 too, and rounded to t: the same bits everywhere but for
// truncated normal numbers some 1e7 deviations out, which are the CPU's; exponential ones of other floats than float64 in
// float32, from 1.2e-10 to 22.9 times the scale. An element depends on the seed and its place, not on other elements.
// Parameters outside of what is said are GN_ERROR_ARGUMENT, and so are a mean and n above 1e12.
GPUNUM_API gn_array *gn_exponential(gn_context *g, gn_dtype t, gn_shape s, double scale); // mean `scale`
GPUNUM_API gn_array *gn_gamma(gn_context *g, gn_dtype t, gn_shape s, double shape, double scale); // both above 0
GPUNUM_API gn_array *gn_beta(gn_context *g, gn_dtype t, gn_shape s, double a, double b);          // both above 0
GPUNUM_API gn_array *gn_poisson(gn_context *g, gn_dtype t, gn_shape s, double mean); // integer or float dtypes, saturated
GPUNUM_API gn_array *gn_binomial(gn_context *g, gn_dtype t, gn_shape s, int64_t n, double p); // of n; dtypes as above
// Normal numbers between low and high; either may be infinite.
GPUNUM_API gn_array *gn_truncated_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation, double low,
                                         double high);
// int64 from [0, n): each alike, or in proportion to weights (n) from 0 on, whose sum need not be 1, or NULL. Without
// replacement no number comes twice. Waits for the weights.
GPUNUM_API gn_array *gn_choice(gn_context *g, gn_shape s, int64_t n, bool replace, gn_array *weights);
GPUNUM_API gn_array *gn_shuffle(gn_array *a, int axis); // the parts of a along the axis in random order
