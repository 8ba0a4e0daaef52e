// Derivatives: of any order, checked against differences, and used to fit a curve.
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <math.h>
#include <stdio.h>

// The derivative of y with respect to x element by element: y_i depends on x_i alone.
static gn_array *slope(gn_array *y, gn_array *x) {
    gn_array *dx = NULL;
    gn_gradients(gn_sum(y, GN_ALL), &x, 1, true, &dx);
    return dx;
}

static void derivatives_of_tanh(gn_context *g) {
    gn_array *x = gn_requires_grad(gn_linspace(g, GN_F32, -2, 2, 5), true);
    gn_array *y = gn_tanh(x), *dy = slope(y, x), *ddy = slope(dy, x), *dddy = slope(ddy, x);
    gn_array *rows[5];
    rows[0] = x, rows[1] = y, rows[2] = dy, rows[3] = ddy, rows[4] = dddy;
    printf("x, tanh x and its first, second and third derivative\n");
    gn_print(gn_stack(rows, 5, 1));
}

// A damped oscillation with amplitude, decay and frequency p[0..2].
static gn_array *wave(gn_array *p, gn_array *t) {
    gn_array *amplitude = gn_slice(p, 0, 0, 1, 1), *decay = gn_slice(p, 0, 1, 2, 1);
    gn_array *frequency = gn_slice(p, 0, 2, 3, 1);
    return gn_mul(gn_mul(amplitude, gn_exp(gn_neg(gn_mul(decay, t)))),
                  gn_sin(gn_mul(frequency, t)));
}

static gn_array *wave_energy(gn_context *g, gn_array *const *inputs, int count, void *user) {
    (void)g, (void)count;
    return gn_mean(gn_square(wave(inputs[0], (gn_array *)user)), GN_ALL);
}

static void fit_a_curve(gn_context *g) {
    const float truth[] = {2.0f, 0.3f, 4.0f}, guess[] = {1.0f, 0.0f, 3.7f};
    gn_array *t = gn_linspace(g, GN_F32, 0, 5, 400);
    gn_array *noise = gn_normal(g, GN_F32, GN_SHAPE(400), 0, 0.05);
    gn_array *measured =
        gn_eval(gn_add(wave(gn_array_from(g, GN_F32, GN_SHAPE(3), truth), t), noise));
    gn_array *p = gn_requires_grad(gn_array_from(g, GN_F32, GN_SHAPE(3), guess), true);

    printf("\ngradient against differences: off by %.1e\n\n",
           gn_gradcheck(wave_energy, &p, 1, 0, t));

    gn_adam_options options = {0};
    options.lr = 0.05;
    gn_optimizer *opt = gn_adam(&p, 1, &options);
    for (int step = 0; step <= 300; step++)
        GN_SCOPE(g) {
            gn_array *loss = gn_mse_loss(wave(p, t), measured);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_step(opt);
            if (step % 100 == 0) printf("step %3d  error %.4f\n", step, sqrt(gn_item(loss)));
        }
    printf("amplitude, decay and frequency, made with 2, 0.3 and 4:\n");
    gn_print(p);
    gn_optimizer_free(opt);
}

int main(void) {
    gn_context *g = gn_open(NULL);
    GN_SCOPE(g) {
        derivatives_of_tanh(g);
        fit_a_curve(g);
    }
    int failed = gn_status_get(g) != GN_OK;
    if (failed) fprintf(stderr, "%s\n", gn_error(g));
    gn_close(g);
    return failed;
}
