// >>files
// NumPy's .npy and MNIST's IDX.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API gn_array *gn_load_npy(gn_context *g, const char *path);
GPUNUM_API gn_status gn_save_npy(gn_array *a, const char *path); // version 1.0, C order; bfloat16 is refused
GPUNUM_API gn_array *gn_load_idx(gn_context *g, const char *path); // ubyte, byte, int, float, double
