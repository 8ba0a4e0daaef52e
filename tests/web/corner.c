// A program that uses a corner of the library: what it weighs is what the linker leaves out. See check_javascript.sh.
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>

int main(void) {
    gn_context *g = gn_open(NULL);
    GN_SCOPE(g) {
        gn_array *a = gn_arange(g, GN_F32, 0, 12, 1), *b = gn_reshape(a, GN_SHAPE(3, 4));
        printf("%g\n", gn_item(gn_sum(gn_mul_s(gn_add(b, b), 0.5), GN_ALL)));
    }
    gn_close(g);
    return 0;
}
