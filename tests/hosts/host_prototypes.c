// A host that links the loader and calls Vulkan's prototypes.
#include <vulkan/vulkan.h>
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#define HOST_INIT() VK_SUCCESS
#define HOST_LOAD_INSTANCE(i) ((void)(i))
#include "host.h"
