// >>random
// Philox 4x32-10, counter based: the same seed gives the same numbers on every backend, bit for bit.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API void gn_seed(gn_context *g, uint64_t seed);
GPUNUM_API gn_array *gn_rand(gn_context *g, gn_dtype t, gn_shape s);  // uniform in [0, 1)
GPUNUM_API gn_array *gn_randn(gn_context *g, gn_dtype t, gn_shape s); // standard normal
// low + u (high - low) with u from gn_rand; rounding may give `high` itself.
GPUNUM_API gn_array *gn_uniform(gn_context *g, gn_dtype t, gn_shape s, double low, double high);
GPUNUM_API gn_array *gn_normal(gn_context *g, gn_dtype t, gn_shape s, double mean, double deviation);
GPUNUM_API gn_array *gn_randint(gn_context *g, gn_dtype t, gn_shape s, int64_t low, int64_t high); // [low, high)
GPUNUM_API gn_array *gn_bernoulli(gn_context *g, gn_dtype t, gn_shape s, double p); // 1 with probability p
GPUNUM_API gn_array *gn_permutation(gn_context *g, gn_dtype t, int64_t n); // integers 0 to n - 1 in random order
