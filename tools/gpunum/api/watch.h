// >>watch
// Profiles in Chrome's trace format.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

GPUNUM_API void gn_profile_begin(gn_context *g);
GPUNUM_API gn_status gn_profile_end(gn_context *g, const char *path);
