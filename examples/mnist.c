// Trains a 784-256-128-10 network on MNIST: prints device, loss and accuracy, saves the weights as .npy.
//
//   mnist [--data DIR] [--backend auto|cpu|vulkan] [--epochs 5] [--batch 128] [--lr 0.001] [--seed 1]
//         [--steps N] [--save DIR] [--log-losses FILE] [--cache DIR] [--no-progress]
//
// DIR of --data holds the four files of tools/fetch_mnist.sh. --steps stops early. --log-losses writes
// the loss of every step, a line each. --cache keeps compiled GPU pipelines from run to run.
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L // clock_gettime, isatty
#endif
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <io.h>
#define isatty _isatty
#define fileno _fileno
#else
#include <unistd.h>
#endif

enum { LAYERS = 3, PARAMS = 2 * LAYERS, READ_EVERY = 50 };

typedef struct settings {
    const char *data, *save, *losses, *cache;
    gn_backend backend;
    int epochs, batch, steps;
    unsigned long long seed;
    double lr;
    bool progress;
} settings;

typedef struct model {
    gn_array *params[PARAMS];        // weight and bias of each layer
    gn_array *images[2], *labels[2]; // training and test set
} model;

// The losses stay on the device and come back a few dozen at a time: a read waits for the device.
typedef struct loss_log {
    gn_array *waiting[READ_EVERY];
    int count;
    double sum, last; // since the epoch began; mean of the last read
    int read;
    FILE *file;
} loss_log;

static double seconds(void) {
#ifdef CLOCK_MONOTONIC
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)clock() / CLOCKS_PER_SEC;
#endif
}

static int usage(const char *wrong) {
    fprintf(
        stderr,
        "mnist: not understood: %s\n"
        "usage: mnist [--data DIR] [--backend auto|cpu|vulkan] [--epochs N] [--batch N] [--lr X]\n"
        "             [--seed N] [--steps N] [--save DIR] [--log-losses FILE] [--cache DIR]\n"
        "             [--no-progress]\n",
        wrong);
    return 2;
}

// NULL, or what is wrong.
static const char *parse(int argc, char **argv, settings *s) {
    for (int i = 1; i < argc; i++) {
        const char *flag = argv[i];
        if (strcmp(flag, "--no-progress") == 0) {
            s->progress = false;
            continue;
        }
        if (i + 1 == argc) return flag;
        const char *value = argv[++i];
        if (strcmp(flag, "--data") == 0)
            s->data = value;
        else if (strcmp(flag, "--save") == 0)
            s->save = value;
        else if (strcmp(flag, "--log-losses") == 0)
            s->losses = value;
        else if (strcmp(flag, "--cache") == 0)
            s->cache = value;
        else if (strcmp(flag, "--epochs") == 0)
            s->epochs = atoi(value);
        else if (strcmp(flag, "--batch") == 0)
            s->batch = atoi(value);
        else if (strcmp(flag, "--steps") == 0)
            s->steps = atoi(value);
        else if (strcmp(flag, "--seed") == 0)
            s->seed = strtoull(value, NULL, 10);
        else if (strcmp(flag, "--lr") == 0)
            s->lr = atof(value);
        else if (strcmp(flag, "--backend") != 0)
            return flag;
        else if (strcmp(value, "cpu") == 0)
            s->backend = GN_BACKEND_CPU;
        else if (strcmp(value, "vulkan") == 0)
            s->backend = GN_BACKEND_VULKAN;
        else if (strcmp(value, "auto") != 0)
            return value;
    }
    return s->batch > 0 && s->epochs > 0 && s->lr > 0
               ? NULL
               : "--batch, --epochs and --lr are more than 0";
}

// Images as rows of 784 bytes, labels as bytes; both stay bytes on the device.
static bool load(gn_context *g, const char *folder, model *m) {
    static const char *const part[] = {"train", "t10k"};
    for (int i = 0; i < 2; i++)
        GN_SCOPE(g) {
            char path[1024];
            snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, part[i]);
            gn_array *images = gn_load_idx(g, path);
            snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, part[i]);
            m->labels[i] = gn_keep(gn_load_idx(g, path));
            m->images[i] = gn_keep(gn_reshape(images, GN_SHAPE(-1, 28 * 28)));
        }
    if (gn_status_get(g) == GN_OK) return true;
    fprintf(stderr,
            "mnist: %s\nmnist: tools/fetch_mnist.sh fetches the data, --data says where it is\n",
            gn_error(g));
    gn_error_clear(g); // said
    return false;
}

static void make_network(gn_context *g, model *m) {
    static const int64_t width[] = {28 * 28, 256, 128, 10};
    for (int i = 0; i < LAYERS; i++) {
        m->params[2 * i] = gn_he_normal(g, GN_F32, GN_SHAPE(width[i], width[i + 1]));
        m->params[2 * i + 1] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(width[i + 1])), true);
    }
}

static gn_array *forward(const model *m, gn_array *bytes) {
    gn_array *x = gn_mul_s(gn_cast(bytes, GN_F32), 1.0 / 255.0);
    for (int i = 0; i < LAYERS; i++) {
        x = gn_linear(x, m->params[2 * i], m->params[2 * i + 1]);
        if (i + 1 < LAYERS) x = gn_relu(x);
    }
    return x;
}

// Percent right in the test set.
static double test(gn_context *g, const model *m) {
    double right = 0.0;
    int64_t n = gn_dim(m->images[1], 0);
    gn_no_grad_begin(g);
    for (int64_t at = 0; at < n; at += 2500)
        GN_SCOPE(g) {
            gn_array *guess = gn_argmax(forward(m, gn_slice(m->images[1], 0, at, at + 2500, 1)), 1);
            right +=
                gn_item(gn_sum(gn_eq(guess, gn_slice(m->labels[1], 0, at, at + 2500, 1)), GN_ALL));
        }
    gn_no_grad_end(g);
    return 100.0 * right / (double)n;
}

static void read_losses(gn_context *g, loss_log *log) {
    float values[READ_EVERY];
    if (log->count == 0) return;
    GN_SCOPE(g) {
        gn_read(gn_stack(log->waiting, log->count, 0), values, sizeof(float) * (size_t)log->count);
    }
    double sum = 0.0;
    for (int i = 0; i < log->count && gn_status_get(g) == GN_OK; i++) {
        sum += values[i];
        if (log->file != NULL) fprintf(log->file, "%.9g\n", (double)values[i]);
    }
    log->last = sum / log->count;
    log->sum += sum;
    log->read += log->count;
    for (int i = 0; i < log->count; i++) gn_release(log->waiting[i]);
    log->count = 0;
}

static void show(const settings *s, int epoch, int step, int steps, double began,
                 const loss_log *log) {
    if (!s->progress) return;
    double left = (seconds() - began) / step * (steps - step);
    char bar[31];
    for (int i = 0; i < 30; i++) bar[i] = i < 30 * step / steps ? '#' : '.';
    bar[30] = 0;
    printf("\repoch %d/%d [%s] step %d/%d  loss %.4f  %.0f s left ", epoch, s->epochs, bar, step,
           steps, log->last, left);
    fflush(stdout);
}

// One pass over the training set in random order; returns the number of steps.
static int train(gn_context *g, const settings *s, model *m, gn_optimizer *opt, loss_log *log,
                 int epoch, int limit) {
    int steps = (int)(gn_dim(m->images[0], 0) / s->batch);
    if (limit < steps) steps = limit;
    double began = seconds();
    GN_SCOPE(g) {
        gn_array *order = gn_permutation(g, GN_I32, gn_dim(m->images[0], 0));
        for (int step = 0; step < steps && gn_status_get(g) == GN_OK; step++) {
            GN_SCOPE(g) {
                gn_array *rows =
                    gn_slice(order, 0, (int64_t)step * s->batch, (int64_t)(step + 1) * s->batch, 1);
                gn_array *x = gn_take(m->images[0], rows, 0), *y = gn_take(m->labels[0], rows, 0);
                gn_array *loss = gn_cross_entropy(forward(m, x), y);
                gn_zero_grads(opt);
                gn_backward(loss);
                gn_step(opt);
                log->waiting[log->count++] = gn_retain(loss);
            }
            if (log->count == READ_EVERY || step + 1 == steps) {
                read_losses(g, log);
                show(s, epoch, step + 1, steps, began, log);
            }
        }
    }
    return steps;
}

static void save(const model *m, const char *folder) {
    char path[1024];
    for (int i = 0; i < PARAMS; i++) {
        snprintf(path, sizeof path, "%s/mnist_%c%d.npy", folder, i % 2 == 0 ? 'w' : 'b', i / 2 + 1);
        gn_save_npy(m->params[i], path);
    }
}

static bool run(gn_context *g, const settings *s) {
    model m;
    loss_log log = {{NULL}, 0, 0.0, 0.0, 0, NULL};
    double began = seconds();
    if (!load(g, s->data, &m)) return false;
    if (s->batch > gn_dim(m.images[0], 0)) {
        fprintf(stderr, "mnist: a batch of %d is more than all images\n", s->batch);
        return false;
    }
    make_network(g, &m);
    save(&m, s->save); // finds out before the training whether that works
    if (s->losses != NULL && (log.file = fopen(s->losses, "w")) == NULL) perror(s->losses);
    if (gn_status_get(g) != GN_OK || (s->losses != NULL && log.file == NULL)) return false;
    gn_adam_options options = {0};
    options.lr = s->lr;
    gn_optimizer *opt = gn_adam(m.params, PARAMS, &options);
    printf("data    %lld images for training, %lld for testing, loaded in %.2f s\n",
           (long long)gn_dim(m.images[0], 0), (long long)gn_dim(m.images[1], 0), seconds() - began);
    double trained = 0.0, accuracy = 0.0;
    int left = s->steps > 0 ? s->steps : 2147483647;
    for (int epoch = 1; epoch <= s->epochs && left > 0; epoch++) {
        double from = seconds();
        log.sum = 0.0;
        log.read = 0;
        left -= train(g, s, &m, opt, &log, epoch, left);
        double took = seconds() - from;
        if (gn_status_get(g) != GN_OK) break;
        trained += took;
        accuracy = test(g, &m);
        printf("%sepoch %d/%d  loss %.4f  test accuracy %.2f %%  %.2f s\n",
               s->progress ? "\r\033[K" : "", epoch, s->epochs, log.sum / log.read, accuracy, took);
        fflush(stdout);
    }
    if (log.file != NULL) fclose(log.file);
    if (gn_status_get(g) == GN_OK) save(&m, s->save);
    if (gn_status_get(g) != GN_OK) return false;
    printf("test accuracy %.2f %% after %.2f s of training\n", accuracy, trained);
    printf("weights saved as %s/mnist_*.npy\n", s->save);
    return true;
}

int main(int argc, char **argv) {
    settings s = {"data/mnist", ".", NULL, NULL, GN_BACKEND_AUTO, 5, 128, 0, 1, 1e-3, true};
    s.progress = isatty(fileno(stdout)) != 0;
    const char *wrong = parse(argc, argv, &s);
    if (wrong != NULL) return usage(wrong);
    gn_options options = {0};
    options.backend = s.backend;
    // Said by name, the GPU gets all of it, however small the batches.
    if (s.backend == GN_BACKEND_VULKAN) options.placement = GN_PLACE_GPU;
    options.seed = s.seed;
    options.cache_dir = s.cache;
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "mnist: %s\n", gn_open_error());
        return 1;
    }
    gn_device_info device;
    gn_device_get(g, &device);
    printf("device  %s%s%s%s\n", device.name, device.why[0] ? " (" : "", device.why,
           device.why[0] ? ")" : "");
    bool done = false;
    GN_SCOPE(g) {
        done = run(g, &s);
    }
    if (gn_status_get(g) != GN_OK) fprintf(stderr, "mnist: %s\n", gn_error(g));
    gn_close(g);
    return done ? 0 : 1;
}
