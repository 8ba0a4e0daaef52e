// A first look: arrays, broadcasting, a gradient and a fit. cc -O2 quickstart.c -lm -lpthread -ldl
#define GPUNUM_IMPLEMENTATION // in exactly one file of a program
#include "gpunum.h"
#include <stdio.h>

int main(void) {
    gn_context *g = gn_open(NULL); // the best GPU, or the CPU
    gn_device_info device;
    gn_device_get(g, &device);
    printf("on %s\n", device.name);
    if (device.backend == GN_BACKEND_CPU) printf("(why not on a GPU: %s)\n", device.why);

    GN_SCOPE(g) { // what is made inside is freed at its end
        gn_array *a = gn_reshape(gn_arange(g, GN_F32, 0, 6, 1), GN_SHAPE(2, 3));
        gn_array *centred = gn_sub(a, gn_mean(a, GN_KEEP(1)));
        gn_print(centred);
        gn_print(gn_softmax(a, -1));
        gn_print(gn_index(a, "::-1, 1:"));
    }

    // Weights that turn x into y, found by following the gradient of the error.
    gn_array *w = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(3, 1)), true);
    gn_optimizer *opt = gn_adam(&w, 1, &(gn_adam_options){.lr = 0.1});
    GN_SCOPE(g) {
        const float truth[] = {1, -2, 3};
        gn_array *x = gn_randn(g, GN_F32, GN_SHAPE(1000, 3));
        gn_array *y = gn_matmul(x, gn_array_from(g, GN_F32, GN_SHAPE(3, 1), truth));
        for (int step = 0; step < 200; step++)
            GN_SCOPE(g) {
                gn_array *loss = gn_mse_loss(gn_matmul(x, w), y);
                gn_zero_grads(opt);
                gn_backward(loss);
                gn_step(opt);
                if (step % 50 == 0) printf("step %3d  loss %.6f\n", step, gn_item(loss));
            }
        gn_print(gn_ravel(w));
    }

    int failed = gn_status_get(g) != GN_OK; // the first error since gn_open, if there was one
    if (failed) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
