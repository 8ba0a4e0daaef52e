// Opens a context where the stack is Emscripten's own, of 64 KB: that must be refused in words.
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>
#include <string.h>

int main(void) {
    gn_context *g = gn_open(NULL);
    puts(g != NULL ? "opened" : gn_open_error());
    return g != NULL || gn_open_status() != GN_ERROR_UNSUPPORTED || strstr(gn_open_error(), "STACK_SIZE") == NULL;
}
