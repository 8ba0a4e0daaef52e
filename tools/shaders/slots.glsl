// Words of parameters and numbers of specialisation constants, as the callers have them.
#ifndef GN_SLOTS
#define GN_SLOTS
#define GNI_ROOMS // the file is a room of gpunum.h, too
#include "../gpunum/core/slots.h"
#endif
