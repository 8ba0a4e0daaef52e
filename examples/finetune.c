// Takes a network over from PyTorch: loads what safetensors.torch.save_file wrote of its state_dict(), gives the same outputs, trains
// on, and writes a file that load_state_dict takes again.
//
//   finetune FILE [--steps 5] [--lr 0.05] [--save FILE] [--backend auto|cpu|vulkan]
//
// The network is here what it is in Python:
//
//   self.conv = Conv2d(1, 8, 3, padding=1); self.norm = BatchNorm2d(8); self.fc1 = Linear(8 * 4 * 4, 32); self.fc2 = Linear(32, 10)
//   x = max_pool2d(relu(self.norm(self.conv(x))), 2).flatten(1);  return self.fc2(relu(self.fc1(x)))
//
// Beside its parameters the file has "input" (n, 1, 8, 8), "output" (n, 10), which PyTorch made of it, and "labels" (n).
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gn_array *get(const gn_params *p, const char *name) {
    gn_array *a = gn_params_get(p, name);
    if (a == NULL) fprintf(stderr, "finetune: the file has no %s\n", name);
    return a;
}

// PyTorch keeps (out, in); a transposed view is as fast.
static gn_array *linear(const gn_params *p, gn_array *x, const char *weight, const char *bias) {
    return gn_linear(x, gn_transpose(get(p, weight)), get(p, bias));
}

static gn_array *forward(const gn_params *p, gn_array *x, bool training) {
    gn_conv_options same = {0};
    same.pad = 1;
    x = gn_conv2d(x, get(p, "conv.weight"), get(p, "conv.bias"), &same);
    x = gn_batch_norm(x, get(p, "norm.running_mean"), get(p, "norm.running_var"), get(p, "norm.weight"), get(p, "norm.bias"), training, 0.1, 1e-5);
    x = gn_max_pool2d(gn_relu(x), 2, NULL, NULL);
    x = gn_reshape(x, GN_SHAPE(gn_dim(x, 0), -1));
    return linear(p, gn_relu(linear(p, x, "fc1.weight", "fc1.bias")), "fc2.weight", "fc2.bias");
}

static bool train(gn_context *g, const gn_params *p, int steps, double lr) {
    static const char *const learned[] = {"conv.weight", "conv.bias", "norm.weight", "norm.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    gn_array *w[8], *input = get(p, "input"), *labels = get(p, "labels");
    for (int i = 0; i < 8; i++) w[i] = gn_requires_grad(get(p, learned[i]), true);
    gn_sgd_options o = {0};
    o.lr = lr;
    o.momentum = 0.9;
    gn_optimizer *opt = gn_sgd(w, 8, &o);
    for (int step = 0; step < steps; step++) GN_SCOPE(g) {
            gn_array *loss = gn_cross_entropy(forward(p, input, true), labels);
            gn_zero_grads(opt);
            gn_backward(loss);
            gn_step(opt);
            printf("step %d: loss %.7f\n", step + 1, gn_item(loss));
        }
    gn_optimizer_free(opt);
    return gn_status_get(g) == GN_OK;
}

// What load_state_dict takes: all but the sample.
static bool save(gn_context *g, const gn_params *p, const char *path) {
    gn_params *state = gn_params_new(g);
    for (int i = 0; i < gn_params_count(p); i++) {
        const char *name = gn_params_name(p, i);
        if (strcmp(name, "input") != 0 && strcmp(name, "output") != 0 && strcmp(name, "labels") != 0) gn_params_add(state, name, gn_params_at(p, i));
    }
    gn_params_note(state, "format", "pt");
    const bool ok = gn_params_save(state, path) == GN_OK;
    gn_params_free(state);
    return ok;
}

int main(int argc, char **argv) {
    const char *to = NULL;
    gn_options options = {0};
    int steps = 5;
    double lr = 0.05;
    bool known = argc > 1 && argc % 2 == 0 && argv[1][0] != '-';
    for (int i = 2; i + 1 < argc && known; i += 2) {
        if (strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--lr") == 0)
            lr = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--save") == 0)
            to = argv[i + 1];
        else if (strcmp(argv[i], "--backend") == 0 && strchr("acv", argv[i + 1][0]) != NULL)
            options.backend = argv[i + 1][0] == 'c' ? GN_BACKEND_CPU : argv[i + 1][0] == 'v' ? GN_BACKEND_VULKAN : GN_BACKEND_AUTO;
        else
            known = false;
    }
    if (!known || steps < 0 || !(lr > 0)) {
        fprintf(stderr, "usage: finetune FILE [--steps N] [--lr X] [--save FILE] [--backend auto|cpu|vulkan]\n");
        return 2;
    }
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "finetune: %s\n", gn_open_error());
        return 1;
    }
    bool ok = false;
    GN_SCOPE(g) {
        gn_params *p = gn_load_safetensors(g, argv[1]);
        if (p != NULL) {
            gn_array *off = gn_sub(forward(p, get(p, "input"), false), get(p, "output"));
            if (off != NULL) printf("outputs differ from PyTorch's by %.2g\n", gn_item(gn_max(gn_abs(off), GN_ALL)));
            ok = off != NULL && train(g, p, steps, lr) && (to == NULL || save(g, p, to));
        }
        if (!ok) fprintf(stderr, "finetune: %s\n", gn_error(g));
        gn_params_free(p);
    }
    gn_close(g);
    return ok ? 0 : 1;
}
