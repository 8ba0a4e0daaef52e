// Trains a small convolutional network on MNIST: 99.2 % of the test images after five epochs.
//
//   mnist_cnn [--data DIR] [--backend auto|cpu|vulkan] [--epochs 5] [--batch 128] [--lr 0.004] [--seed 1] [--threads N]
//   mnist_cnn --steps N    N steps on images that are made up: needs no data, fails where the loss does not fall
//
// DIR of --data holds the four files of tools/fetch_mnist.sh.
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 199309L // clock_gettime
#endif
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A convolution, its batch normalisation, and the next one; then two linear layers.
typedef struct network {
    gn_array *conv[2], *scale[2], *shift[2], *w[2], *b[2]; // trained
    gn_array *mean[2], *var[2];                            // running moments
} network;
enum { TRAINED = 10 };

typedef struct settings {
    const char *data;
    gn_backend backend;
    int epochs, batch, steps, threads;
    unsigned long long seed;
    double lr;
} settings;

static gn_array *parameter(gn_array *a) { return gn_requires_grad(a, true); }

static network network_new(gn_context *g) {
    static const int64_t channels[] = {1, 16, 32}, width[] = {32 * 7 * 7, 128, 10};
    network n;
    for (int i = 0; i < 2; i++) {
        n.conv[i] = gn_he_normal(g, GN_F32, GN_SHAPE(channels[i + 1], channels[i], 5, 5));
        n.scale[i] = parameter(gn_ones(g, GN_F32, GN_SHAPE(channels[i + 1])));
        n.shift[i] = parameter(gn_zeros(g, GN_F32, GN_SHAPE(channels[i + 1])));
        n.mean[i] = gn_zeros(g, GN_F32, GN_SHAPE(channels[i + 1]));
        n.var[i] = gn_ones(g, GN_F32, GN_SHAPE(channels[i + 1]));
        n.w[i] = gn_he_normal(g, GN_F32, GN_SHAPE(width[i], width[i + 1]));
        n.b[i] = parameter(gn_zeros(g, GN_F32, GN_SHAPE(width[i + 1])));
    }
    return n;
}

// x (n, 28, 28) bytes; the result is (n, 10).
static gn_array *forward(const network *n, gn_array *x, bool training) {
    gn_conv_options same = {0};
    same.same = true;
    x = gn_mul_s(gn_cast(gn_expand_dims(x, 1), GN_F32), 1.0 / 255.0);
    for (int i = 0; i < 2; i++) {
        x = gn_conv2d(x, n->conv[i], NULL, &same);
        x = gn_batch_norm(x, n->mean[i], n->var[i], n->scale[i], n->shift[i], training, 0.1, 1e-5);
        x = gn_max_pool2d(gn_relu(x), 2, NULL, NULL);
    }
    x = gn_reshape(x, GN_SHAPE(-1, 32 * 7 * 7));
    x = gn_relu(gn_linear(x, n->w[0], n->b[0]));
    return gn_linear(gn_dropout(x, 0.3, training), n->w[1], n->b[1]);
}

// One pass over the images in random order, at a rate that rises and falls over all passes. The mean loss.
static double train(gn_context *g, const network *n, gn_optimizer *opt, gn_array *images, gn_array *labels, int batch, double lr,
                    int64_t *step, int64_t all_steps) {
    gn_array *order = gn_permutation(g, GN_I32, gn_dim(images, 0)), *total = gn_zeros(g, GN_F32, GN_SHAPE());
    const int64_t steps = gn_dim(images, 0) / batch;
    for (int64_t i = 0; i < steps && gn_status_get(g) == GN_OK; i++) {
        GN_SCOPE(g) {
            gn_array *rows = gn_slice(order, 0, i * batch, (i + 1) * batch, 1);
            gn_array *logits = forward(n, gn_take(images, rows, 0), true);
            gn_array *loss = gn_cross_entropy(logits, gn_take(labels, rows, 0));
            gn_lr_set(opt, gn_lr_one_cycle((*step)++, lr, all_steps));
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_step(opt);
            gn_set(&total, gn_add(total, gn_detach(loss)));
        }
    }
    return gn_item(total) / (double)steps;
}

// Percent right.
static double test(gn_context *g, const network *n, gn_array *images, gn_array *labels) {
    double right = 0.0;
    gn_no_grad_begin(g);
    for (int64_t at = 0; at < gn_dim(images, 0); at += 1000)
        GN_SCOPE(g) {
            gn_array *guess = gn_argmax(forward(n, gn_slice(images, 0, at, at + 1000, 1), false), 1);
            right += gn_item(gn_sum(gn_eq(guess, gn_slice(labels, 0, at, at + 1000, 1)), GN_ALL));
        }
    gn_no_grad_end(g);
    return 100.0 * right / (double)gn_dim(images, 0);
}

static gn_array *load(gn_context *g, const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return gn_load_idx(g, path);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run(gn_context *g, const settings *s) {
    gn_array *images[2], *labels[2];
    if (s->steps > 0) { // a bright square in one of ten places
        gn_array *at = gn_randint(g, GN_I32, GN_SHAPE(s->batch * 4), 0, 10);
        gn_array *rows = gn_reshape(gn_eq(gn_expand_dims(at, 1), gn_floor_div_s(gn_arange(g, GN_I32, 0, 30, 1), 3)), GN_SHAPE(-1, 30, 1));
        gn_array *noise = gn_randint(g, GN_I32, GN_SHAPE(s->batch * 4, 28, 28), 0, 40);
        images[0] = images[1] = gn_eval(gn_cast(gn_add(noise, gn_mul_s(gn_slice(rows, 1, 0, 28, 1), 180)), GN_U8));
        labels[0] = labels[1] = gn_eval(gn_cast(at, GN_U8));
    } else {
        images[0] = load(g, s->data, "train-images-idx3-ubyte");
        labels[0] = load(g, s->data, "train-labels-idx1-ubyte");
        images[1] = load(g, s->data, "t10k-images-idx3-ubyte");
        labels[1] = load(g, s->data, "t10k-labels-idx1-ubyte");
    }
    if (gn_status_get(g) != GN_OK) {
        fprintf(stderr, "mnist_cnn: tools/fetch_mnist.sh fetches the data, --data says where it is\n");
        return false;
    }
    network n = network_new(g);
    gn_array *const trained[TRAINED] = {n.conv[0], n.scale[0], n.shift[0], n.w[0], n.b[0],
                                        n.conv[1], n.scale[1], n.shift[1], n.w[1], n.b[1]};
    gn_optimizer *opt = gn_adam(trained, TRAINED, NULL);
    const int64_t steps = gn_dim(images[0], 0) / s->batch;
    const int epochs = s->steps > 0 ? (int)((s->steps + steps - 1) / steps) : s->epochs;
    double loss = 0.0, first = 0.0, all = 0.0;
    int64_t step = 0;
    for (int epoch = 0; epoch < epochs && gn_status_get(g) == GN_OK; epoch++) {
        const double began = seconds();
        loss = train(g, &n, opt, images[0], labels[0], s->batch, s->lr, &step, steps * epochs);
        const double took = seconds() - began;
        if (epoch == 0) first = loss;
        all += took;
        printf("epoch %d/%d  loss %.4f  test accuracy %.2f %%  %.2f s\n", epoch + 1, epochs, loss,
               test(g, &n, images[1], labels[1]), took);
        fflush(stdout);
    }
    if (gn_status_get(g) != GN_OK) return false;
    printf("%.2f s of training\n", all);
    return s->steps == 0 || loss < 0.5 * first;
}

int main(int argc, char **argv) {
    settings s = {"data/mnist", GN_BACKEND_AUTO, 5, 128, 0, 0, 1, 0.004};
    bool known = argc % 2 == 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *flag = argv[i], *value = argv[i + 1];
        const bool backend = strcmp(flag, "--backend") == 0;
        if (strcmp(flag, "--data") == 0) s.data = value;
        else if (strcmp(flag, "--epochs") == 0) s.epochs = atoi(value);
        else if (strcmp(flag, "--batch") == 0) s.batch = atoi(value);
        else if (strcmp(flag, "--steps") == 0) s.steps = atoi(value);
        else if (strcmp(flag, "--threads") == 0) s.threads = atoi(value);
        else if (strcmp(flag, "--seed") == 0) s.seed = strtoull(value, NULL, 10);
        else if (strcmp(flag, "--lr") == 0) s.lr = atof(value);
        else if (backend && strcmp(value, "cpu") == 0) s.backend = GN_BACKEND_CPU;
        else if (backend && strcmp(value, "vulkan") == 0) s.backend = GN_BACKEND_VULKAN;
        else if (!backend || strcmp(value, "auto") != 0) known = false;
    }
    if (!known || s.batch < 2 || s.epochs < 1 || s.steps < 0 || !(s.lr > 0)) {
        fprintf(stderr, "usage: mnist_cnn [--data DIR] [--backend auto|cpu|vulkan] [--epochs N] [--batch N] [--lr X] [--seed N]\n"
                        "                 [--threads N] [--steps N]\n");
        return 2;
    }
    gn_options options = {0};
    options.backend = s.backend;
    options.seed = s.seed;
    options.threads = s.threads;
    if (s.backend == GN_BACKEND_VULKAN) options.placement = GN_PLACE_GPU; // all of it, however small
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "mnist_cnn: %s\n", gn_open_error());
        return 1;
    }
    gn_device_info device;
    gn_device_get(g, &device);
    printf("device  %s\n", device.name);
    bool done = false;
    GN_SCOPE(g) {
        done = run(g, &s);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "mnist_cnn: %s\n", gn_error(g));
    gn_close(g);
    return done ? 0 : 1;
}
