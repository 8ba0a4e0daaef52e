// A unity file with gpunum before volk. The switch says that volk will come: Vulkan's prototypes, which
// gpunum would else leave to a host that comes later, cannot stand beside it.
#define GPUNUM_USE_VOLK
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#define VOLK_IMPLEMENTATION
#include <volk.h>
#define HOST_INIT() volkInitialize()
#define HOST_LOAD_INSTANCE(i) volkLoadInstance(i)
#include "host.h"
