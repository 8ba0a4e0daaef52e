// A unity file with volk before gpunum.
#define VOLK_IMPLEMENTATION
#include <volk.h>
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#define HOST_INIT() volkInitialize()
#define HOST_LOAD_INSTANCE(i) volkLoadInstance(i)
#include "host.h"
