// A host with volk, gpunum in another file.
#include <volk.h>

#include "gpunum.h"
#define HOST_INIT() volkInitialize()
#define HOST_LOAD_INSTANCE(i) volkLoadInstance(i)
#include "host.h"
