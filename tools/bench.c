// Times gpunum's ops on one backend and prints a table, and JSON on request.
//
//   bench [--backend cpu|vulkan|auto] [--device N] [--threads N] [--only WORD] [--quick] [--json FILE]
//
// Each figure is the median of many batches. A batch runs the op often enough to last about 20 ms
// (2 ms with --quick) and waits for the device once at its end. Data is random. GB/s counts the bytes
// that the op has to read and write; GFLOP/s counts 2 m n k for a matrix product.
// Family `fusions` times what is computed in one go, layers and their gradients too, against its parts, with gn_eval after each, and ends with status 1
// where one loses to them by more than 7 % and 2 us.
// With OpenBLAS at run time (libopenblas.so.0), float32 products on the CPU are timed against it too, and
// with FFTW (libfftw3f_threads.so.3) the Fourier transforms: its plans are measured ones, which takes minutes.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpunum.h"
#include "timing.h"

#if defined(__unix__)
#include <dlfcn.h>
#endif

typedef struct bench_case bench_case;
struct bench_case {
    const char *family, *name;
    int64_t m, n, k; // what the sizes mean depends on the family
    int64_t batch;   // of a matrix product, or heads; 0: no such dimension
    int turned;      // 1: its first operand is a transposed view, 2: the second, 3: both
    double bytes, flops;
    gn_array *(*run)(const bench_case *c, gn_array *const *in);
    gn_array *in[6];
    gn_optimizer *optimizer;
    gn_context *g; // of what is timed with and without gradients
    const void *model;
};

typedef struct bench_options {
    const char *only, *json;
    double batch_seconds;
    int batches;
    bool quick;
} bench_options;

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                         float *, int);

// FFTW's advanced interface, float; `c2c` NULL: it is not there.
typedef void *(*fftw_dft_fn)(int, const int *, int, void *, const int *, int, int, void *, const int *, int, int, int,
                             unsigned);
typedef void *(*fftw_real_fn)(int, const int *, int, void *, const int *, int, int, void *, const int *, int, int,
                              unsigned);
typedef struct fftw_library {
    fftw_dft_fn c2c;
    fftw_real_fn r2c, c2r;
    void (*execute)(void *);
    void (*destroy)(void *);
    void *(*alloc)(size_t);
    void (*release)(void *);
    void (*set_threads)(int);
    int threads;
} fftw_library;

// ---- the ops

static gn_array *run_copy(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_copy(in[0]);
}
static gn_array *run_add(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_add(in[0], in[1]);
}
static gn_array *run_sin(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sin(in[0]);
}
static gn_array *run_exp(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_exp(in[0]);
}
static gn_array *run_tanh(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_tanh(in[0]);
}
static gn_array *run_sinh(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sinh(in[0]);
}
static gn_array *run_cosh(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cosh(in[0]);
}
static gn_array *run_chain(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sigmoid(gn_add(gn_mul(gn_sin(in[0]), in[1]), in[0]));
}
static gn_array *run_sum(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sum(in[0], GN_ALL);
}
static gn_array *run_max(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_max(in[0], GN_ALL);
}
static gn_array *run_var(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_var(in[0], GN_ALL, 0);
}
static gn_array *run_argmax(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_argmax(in[0], GN_ALL);
}
static gn_array *run_sum_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sum(in[0], 1);
}
static gn_array *run_sum_columns(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sum(in[0], 0);
}
static gn_array *run_cumsum(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cumsum(in[0], 0);
}
static gn_array *run_cumsum_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cumsum(in[0], 1);
}
static gn_array *run_sort(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sort(in[0], 0, false);
}
static gn_array *run_sort_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_sort(in[0], 1, false);
}
static gn_array *run_argsort(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_argsort(in[0], 0, false);
}
static gn_array *run_topk(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_topk(in[0], 100, 0, NULL);
}
static gn_array *run_median(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_median(in[0], 0);
}
static gn_array *run_histogram(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_histogram(in[0], 100, -4.0, 4.0, NULL);
}
static gn_array *run_softmax(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_softmax(in[0], -1);
}
static gn_array *run_transpose(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_copy(gn_transpose(in[0]));
}
static gn_array *run_matmul(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_matmul(in[0], in[1]);
}
static gn_array *run_uniform(const bench_case *c, gn_array *const *in) {
    return gn_rand(gn_context_of(in[0]), GN_F32, GN_SHAPE(c->m));
}
static gn_array *run_normal(const bench_case *c, gn_array *const *in) {
    return gn_randn(gn_context_of(in[0]), GN_F32, GN_SHAPE(c->m));
}
static gn_array *run_exponential(const bench_case *c, gn_array *const *in) {
    return gn_exponential(gn_context_of(in[0]), GN_F32, GN_SHAPE(c->m), 1);
}
static gn_array *run_gamma(const bench_case *c, gn_array *const *in) {
    return gn_gamma(gn_context_of(in[0]), GN_F32, GN_SHAPE(c->m), 2, 1);
}
static gn_array *run_permutation(const bench_case *c, gn_array *const *in) {
    return gn_permutation(gn_context_of(in[0]), GN_I64, c->m);
}
static gn_array *run_lgamma(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_lgamma(in[0]);
}

// in: two vectors, random places in them, a random mask
static gn_array *run_gather(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_take(in[0], in[2], 0);
}
static gn_array *run_scatter_add(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_scatter_add(in[0], in[2], in[1], 0);
}
static gn_array *run_put(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_put_along(in[0], in[2], in[1], 0);
}
static gn_array *run_assign(const bench_case *c, gn_array *const *in) {
    gn_assign(gn_slice(in[1], 0, 0, c->m, 2), gn_slice(in[0], 0, 0, (c->m + 1) / 2, 1));
    return in[1];
}
static gn_array *run_assign_inner(const bench_case *c, gn_array *const *in) {
    gn_array *to = gn_reshape(in[1], GN_SHAPE(c->m / 1000, 1000)), *from = gn_reshape(in[0], GN_SHAPE(c->m / 1000, 1000));
    gn_assign(gn_index(to, ":, 1:-1"), gn_index(from, ":, 1:-1"));
    return in[1];
}
static gn_array *run_compress(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_compress(in[3], in[0], 0);
}
static gn_array *run_nonzero(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_flatnonzero(in[3]);
}
static gn_array *run_mask(const bench_case *c, gn_array *const *in) {
    (void)c;
    gn_assign_mask(in[1], in[3], in[0]);
    return in[1];
}
static gn_array *run_concat(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_concat(in, 2, 0);
}
static gn_array *run_pad(const bench_case *c, gn_array *const *in) {
    const int64_t width = 5;
    (void)c;
    return gn_pad(in[0], &width, 1, GN_PAD_CONSTANT, 0.0);
}
static gn_array *run_roll(const bench_case *c, gn_array *const *in) { return gn_roll(in[0], c->m / 3, 0); }
static gn_array *run_tile(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_tile(in[0], GN_SHAPE(2));
}

static gn_array *run_fft(const bench_case *c, gn_array *const *in) {
    return gn_fftn(in[0], NULL, NULL, (int)c->k, GN_FFT_BACKWARD);
}
static gn_array *run_fft_one(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_fft(in[0], 0, -1, GN_FFT_BACKWARD);
}
static gn_array *run_rfft(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_rfft(in[0], 0, -1, GN_FFT_BACKWARD);
}
static gn_array *run_irfft(const bench_case *c, gn_array *const *in) {
    return gn_irfft(in[0], c->m, -1, GN_FFT_BACKWARD);
}

// Of losses and layers: forward, and the gradient of the first operand.
static gn_array *gradient_of(gn_array *loss, gn_array *x) {
    gn_array *dx = NULL;
    gn_gradients(loss, &x, 1, false, &dx);
    return dx;
}
static gn_array *run_cross_entropy(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gradient_of(gn_cross_entropy(in[0], in[1]), in[0]);
}
static gn_array *run_cross_entropy_with(const bench_case *c, gn_array *const *in) {
    gn_cross_entropy_options options = {NULL, 0.1, false, 0, GN_REDUCE_MEAN};
    (void)c;
    return gradient_of(gn_cross_entropy_with(in[0], in[1], &options), in[0]);
}
static gn_array *run_smooth_l1(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gradient_of(gn_smooth_l1_loss(in[0], in[2], 1.0, GN_REDUCE_MEAN), in[0]);
}
static gn_array *run_bce(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gradient_of(gn_bce_with_logits(in[0], in[2], NULL, GN_REDUCE_MEAN), in[0]);
}
static gn_array *run_dropout(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gradient_of(gn_sum(gn_dropout(in[0], 0.1, true), GN_ALL), in[0]);
}
static gn_array *run_embedding(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gradient_of(gn_sum(gn_embedding(in[3], in[0], GN_NONE), GN_ALL), in[0]);
}
static gn_array *run_step(const bench_case *c, gn_array *const *in) {
    gn_step(c->optimizer);
    return in[0];
}

// The name says what and how large: image_of reads it back.
static gn_array *image_of(const bench_case *c, gn_array *const *in) {
    gn_conv_options o;
    int kernel = 3, stride = 1, groups = 1;
    memset(&o, 0, sizeof o);
    sscanf(c->name, "%*s %*d,%*d,%*d,%*d,%d,%d,%d", &kernel, &stride, &groups);
    o.stride = stride;
    o.pad = kernel / 2;
    o.groups = groups;
    if (strncmp(c->name, "conv2d", 6) == 0) return gn_conv2d(in[0], in[1], NULL, &o);
    if (strncmp(c->name, "max_pool2d", 10) == 0) return gn_max_pool2d(in[0], kernel, NULL, NULL);
    if (strncmp(c->name, "avg_pool2d", 10) == 0) return gn_avg_pool2d(in[0], kernel, NULL);
    if (strncmp(c->name, "batch_norm", 10) == 0) return gn_batch_norm(in[0], NULL, NULL, in[2], in[3], true, 0.1, 1e-5);
    if (strncmp(c->name, "group_norm", 10) == 0) return gn_group_norm(in[0], 8, in[2], in[3], 1e-5);
    return gn_layer_norm(in[0], 3, NULL, NULL, 1e-5);
}
static gn_array *run_image(const bench_case *c, gn_array *const *in) {
    gn_no_grad_begin(c->g);
    gn_array *y = image_of(c, in);
    gn_no_grad_end(c->g);
    return y;
}
// Forward, and all gradients.
static gn_array *run_image_gradients(const bench_case *c, gn_array *const *in) {
    const bool weights = strncmp(c->name, "conv2d", 6) == 0, affine = strstr(c->name, "h_norm") != NULL || strstr(c->name, "p_norm") != NULL;
    gn_array *y = image_of(c, in), *leaf[3], *dx[3] = {NULL, NULL, NULL};
    leaf[0] = in[0];
    leaf[1] = weights ? in[1] : in[2];
    leaf[2] = in[3];
    const int count = weights ? 2 : affine ? 3 : 1;
    gn_gradients(gn_sum(gn_mul(y, y), GN_ALL), leaf, count, false, dx);
    gn_eval_all(dx, count);
    return dx[0];
}

// Of rows (m, n) in dtype k, forward or with all gradients, by the name.
static gn_array *run_rows(const bench_case *c, gn_array *const *in) {
    const bool gradients = strstr(c->name, "gradients") != NULL, layer = c->name[0] == 'l', rms = c->name[0] == 'r';
    gn_array *leaf[3], *dx[3] = {NULL, NULL, NULL}, *y;
    if (!gradients) gn_no_grad_begin(c->g);
    y = layer ? gn_layer_norm(in[0], 1, in[1], in[2], 1e-5) : rms ? gn_rms_norm(in[0], 1, in[1], 1e-5) : gn_softmax(in[0], -1);
    if (!gradients) gn_no_grad_end(c->g);
    if (!gradients) return y;
    for (int i = 0; i < 3; i++) leaf[i] = in[i];
    gn_gradients(gn_sum(gn_mul(y, in[3]), GN_ALL), leaf, layer ? 3 : rms ? 2 : 1, false, dx);
    gn_eval_all(dx, layer ? 3 : rms ? 2 : 1);
    return dx[0];
}

// Layers over sequences: m, n, k are (batch, steps, size); of attention c->batch is the heads, and in[4] the mask. `turned`:
enum { CAUSAL = 1, ALL_GRADIENTS = 2, MASKED = 4, DROPPED = 8 };
static gn_array *run_sequence(const bench_case *c, gn_array *const *in) {
    const gn_attention_options o = {0.0, (c->turned & CAUSAL) != 0, 0, (c->turned & DROPPED) != 0 ? 0.1 : 0.0};
    gn_array *y, *leaf[4], *dx[4] = {NULL, NULL, NULL, NULL};
    const bool attention = strncmp(c->name, "attention", 9) == 0;
    gn_array *weights[2] = {in[1], in[2]};
    const gn_rnn_options bare = {0, false, false, true, 0.0};
    if ((c->turned & ALL_GRADIENTS) == 0) gn_no_grad_begin(c->g);
    if (attention)
        y = gn_attention(in[0], in[1], in[2], in[4], &o);
    else if (strncmp(c->name, "lstm", 4) == 0)
        y = gn_lstm(in[0], weights, 2, NULL, NULL, &bare, NULL, NULL);
    else
        y = gn_gru(in[0], weights, 2, NULL, &bare, NULL);
    if ((c->turned & ALL_GRADIENTS) == 0) gn_no_grad_end(c->g);
    if ((c->turned & ALL_GRADIENTS) == 0) return y;
    for (int i = 0; i < 3; i++) leaf[i] = in[i];
    gn_gradients(gn_sum(gn_mul(y, in[3]), GN_ALL), leaf, 3, false, dx);
    gn_eval_all(dx, 3);
    return dx[0];
}

// ---- timing

// Seconds of one op: the median over batches, after a warm-up. While pipelines are compiled a GPU lowers its clock,
// and takes a good part of a second of work to raise it again.
static double time_case(gn_context *g, const bench_case *c, const bench_options *o) {
    double samples[64];
    int reps = 1;
    for (int warm = 0; warm < 3; warm++) {
        GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
    }
    for (double start = now(); now() - start < 10.0 * o->batch_seconds;) {
        for (int r = 0; r < 8; r++) GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
    }
    for (;;) {
        double start = now();
        for (int r = 0; r < reps; r++) GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
        double spent = now() - start;
        if (spent > 0.5 * o->batch_seconds || reps >= 1 << 20) break;
        reps = spent > 0.0 ? (int)((double)reps * (1.0 + o->batch_seconds / (spent + 1e-6))) : reps * 10;
        if (reps > 1 << 20) reps = 1 << 20;
    }
    double begin = now();
    int n = 0;
    while (n < o->batches && (n < 3 || now() - begin < 60.0 * o->batch_seconds)) {
        double start = now();
        for (int r = 0; r < reps; r++) GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
        samples[n++] = (now() - start) / reps;
    }
    qsort(samples, (size_t)n, sizeof samples[0], compare_doubles);
    return samples[n / 2];
}

// The same product by OpenBLAS; 0 if it is not there.
static double time_sgemm(sgemm_fn sgemm, const bench_case *c, const bench_options *o) {
    double samples[64];
    int m = (int)c->m, n = (int)c->n, k = (int)c->k, reps = 1, count = 0;
    size_t sa = (size_t)(c->m * c->k), sb = (size_t)(c->k * c->n), sc = (size_t)(c->m * c->n);
    float *a = (float *)malloc(sa * 4), *b = (float *)malloc(sb * 4), *d = (float *)malloc(sc * 4);
    if (a == NULL || b == NULL || d == NULL) {
        free(a);
        free(b);
        free(d);
        return 0.0;
    }
    gn_read(c->in[0], a, sa * 4);
    gn_read(c->in[1], b, sb * 4);
    for (double spent = 0.0; spent < 0.5 * o->batch_seconds && reps < 1 << 20; reps *= spent > 0.0 ? 2 : 1) {
        double start = now();
        for (int r = 0; r < reps; r++) sgemm(101, 111, 111, m, n, k, 1.0f, a, k, b, n, 0.0f, d, n);
        spent = now() - start;
        if (spent <= 0.0) reps *= 2;
    }
    while (count < o->batches) {
        double start = now();
        for (int r = 0; r < reps; r++) sgemm(101, 111, 111, m, n, k, 1.0f, a, k, b, n, 0.0f, d, n);
        samples[count++] = (now() - start) / reps;
    }
    qsort(samples, (size_t)count, sizeof samples[0], compare_doubles);
    free(a);
    free(b);
    free(d);
    return samples[count / 2];
}

// The same transform by FFTW on so many threads, and how long its plan takes; 0 if it cannot plan it.
static double time_fftw_on(const fftw_library *w, int threads, const bench_case *c, const bench_options *o,
                           double *plan_seconds) {
    double samples[64];
    int length[3] = {(int)c->m, (int)c->m, (int)c->m}, batch = (int)c->n, rank = (int)c->k, reps = 1, count = 0;
    const int ni = (int)gn_dim(c->in[0], -1), no = c->run == run_rfft ? ni / 2 + 1 : (int)c->m;
    const size_t bytes = gn_bytes(c->in[0]);
    void *in = w->alloc(bytes), *out = w->alloc((size_t)c->bytes - bytes), *plan = NULL;
    w->set_threads(threads);
    double start = now();
    if (in != NULL && out != NULL && c->run == run_rfft)
        plan = w->r2c(1, length, batch, in, NULL, 1, ni, out, NULL, 1, no, 0u);
    else if (in != NULL && out != NULL && c->run == run_irfft)
        plan = w->c2r(1, length, batch, in, NULL, 1, ni, out, NULL, 1, no, 16u); // which keeps its input
    else if (in != NULL && out != NULL)
        plan = w->c2c(rank, length, batch, in, NULL, 1, (int)c->m, out, NULL, 1, (int)c->m, -1, 0u);
    *plan_seconds = now() - start;
    if (plan != NULL) {
        gn_read(c->in[0], in, bytes);
        for (double spent = 0.0; spent < 0.5 * o->batch_seconds && reps < 1 << 20; reps *= 2) {
            start = now();
            for (int r = 0; r < reps; r++) w->execute(plan);
            spent = now() - start;
        }
        while (count < o->batches) {
            start = now();
            for (int r = 0; r < reps; r++) w->execute(plan);
            samples[count++] = (now() - start) / reps;
        }
        qsort(samples, (size_t)count, sizeof samples[0], compare_doubles);
        w->destroy(plan);
    }
    w->release(in);
    w->release(out);
    return plan != NULL ? samples[count / 2] : 0.0;
}

// The better of one thread and all: its threads slow short transforms down.
static double time_fftw(const fftw_library *w, const bench_case *c, const bench_options *o, double *plan_seconds) {
    double plan = 0.0, one = time_fftw_on(w, 1, c, o, plan_seconds);
    if (w->threads < 2 || c->bytes < 16.0 * 4096) return one;
    double all = time_fftw_on(w, w->threads, c, o, &plan);
    if (all <= 0.0 || (one > 0.0 && one <= all)) return one;
    *plan_seconds = plan;
    return all;
}

// ---- the list

typedef struct bench_report {
    FILE *json;
    int rows, lost; // lost: fusions slower than their parts
    sgemm_fn sgemm;
    fftw_library fftw;
    bool on_cpu;
} bench_report;

// A row of the table; what a peer took follows, and "\n".
static void print_row(const bench_case *c, double seconds) {
    printf("%-12s %-22s %12.3f us %9.1f GB/s", c->family, c->name, seconds * 1e6, c->bytes / seconds * 1e-9);
    if (c->flops > 0.0) printf(" %10.1f GFLOP/s", c->flops / seconds * 1e-9);
}

// The same as JSON; what is told of some families only follows, and "}".
static void write_row(const bench_case *c, double seconds, bench_report *report) {
    fprintf(report->json,
            "%s\n  {\"family\": \"%s\", \"name\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, "
            "\"seconds\": %.9g, \"gbps\": %.6g, \"gflops\": %.6g",
            report->rows ? "," : "", c->family, c->name, (long long)c->m, (long long)c->n, (long long)c->k, seconds,
            c->bytes / seconds * 1e-9, c->flops / seconds * 1e-9);
}

static bool is_wanted(const bench_case *c, const bench_options *o) {
    return o->only == NULL || strstr(c->family, o->only) != NULL || strstr(c->name, o->only) != NULL;
}

static void run_case(gn_context *g, bench_case *c, const bench_options *o, bench_report *report) {
    if (!is_wanted(c, o)) return;
    double seconds = time_case(g, c, o);
    if (gn_status_get(g) != GN_OK) {
        printf("%-12s %-22s failed: %s\n", c->family, c->name, gn_error(g));
        gn_error_clear(g);
        return;
    }
    double peer = 0.0;
    if (report->sgemm != NULL && report->on_cpu && strcmp(c->family, "matmul") == 0 && c->batch == 0 &&
        c->turned == 0 && gn_dtype_of(c->in[0]) == GN_F32)
        peer = time_sgemm(report->sgemm, c, o);
    print_row(c, seconds);
    if (peer > 0.0) printf("  %.2fx OpenBLAS", peer / seconds);
    printf("\n");
    fflush(stdout);
    if (report->json != NULL) {
        write_row(c, seconds, report);
        fprintf(report->json, ", \"batch\": %lld, \"turned\": %d, \"openblas_seconds\": %.9g}", (long long)c->batch,
                c->turned, peer);
    }
    report->rows++;
}

static void bench_vector(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *family, *name;
        double passes; // float32 elements read and written for each element of the array
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"elementwise", "copy", 2, run_copy},     {"elementwise", "add", 3, run_add},
        {"elementwise", "sin", 2, run_sin},       {"elementwise", "exp", 2, run_exp},
        {"elementwise", "tanh", 2, run_tanh},     {"chain", "sigmoid(sin(a)*b+a)", 3, run_chain},
        {"reduce", "sum", 1, run_sum},            {"reduce", "max", 1, run_max},
        {"reduce", "var", 1, run_var},            {"reduce", "argmax", 1, run_argmax},
        {"elementwise", "lgamma", 2, run_lgamma}, {"random", "exponential", 1, run_exponential},
        {"random", "gamma(2)", 1, run_gamma},     {"random", "permutation", 2, run_permutation},
        {"random", "uniform", 1, run_uniform},    {"random", "normal", 1, run_normal},
        {"order", "cumsum", 2, run_cumsum},       {"order", "sort", 2, run_sort},
        {"order", "argsort", 3, run_argsort},     {"order", "topk(100)", 1, run_topk},
        {"order", "median", 1, run_median},       {"order", "histogram(100)", 1, run_histogram},
    };
    GN_SCOPE(g) {
        bench_case c;
        memset(&c, 0, sizeof c);
        c.in[0] = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n)));
        c.in[1] = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n)));
        c.m = n;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s %gM", list[i].name, (double)n * 1e-6);
            c.family = list[i].family;
            c.name = name;
            c.bytes = 4.0 * list[i].passes * (double)n;
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
}

static void bench_square(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *family, *name;
        double passes;
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"reduce", "sum of rows", 1, run_sum_rows},
        {"reduce", "sum of columns", 1, run_sum_columns},
        {"softmax", "softmax", 2, run_softmax},
        {"order", "cumsum of rows", 2, run_cumsum_rows}, {"order", "cumsum of columns", 2, run_cumsum},
        {"order", "sort of rows", 2, run_sort_rows},
        {"copy", "transpose", 2, run_transpose},
    };
    GN_SCOPE(g) {
        bench_case c;
        memset(&c, 0, sizeof c);
        c.in[0] = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n, n)));
        c.m = c.n = n;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s %lld^2", list[i].name, (long long)n);
            c.family = list[i].family;
            c.name = name;
            c.bytes = 4.0 * list[i].passes * (double)(n * n);
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
}

static gn_array *run_log_of_size(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_log(in[2]);
}
static gn_array *run_greater(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_gt(in[0], in[1]);
}
static gn_array *run_to_float32(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cast(in[3], GN_F32);
}
static gn_array *run_to_int32(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cast(in[0], GN_I32);
}
static gn_array *run_cumsum_int64(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cumsum(in[3], 0);
}
static gn_array *run_bincount(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_bincount(in[3], in[0], 1000);
}

// float64 and int64, which CPUs have vectors for and many GPUs hardly.
static void bench_wide(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *name;
        double bytes; // for each element
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"add", 24, run_add},      {"exp", 16, run_exp},          {"log", 16, run_log_of_size},
        {"sin", 16, run_sin},      {"tanh", 16, run_tanh},        {"greater", 17, run_greater},
        {"sinh", 16, run_sinh},    {"cosh", 16, run_cosh},
        {"sum", 8, run_sum},       {"max", 8, run_max},           {"int64 to float32", 12, run_to_float32},
        {"float64 to int32", 12, run_to_int32}, {"cumsum of int64", 16, run_cumsum_int64}, {"bincount with weights", 16, run_bincount},
    };
    GN_SCOPE(g) {
        bench_case c;
        memset(&c, 0, sizeof c);
        c.in[0] = gn_eval(gn_randn(g, GN_F64, GN_SHAPE(n)));
        c.in[1] = gn_eval(gn_randn(g, GN_F64, GN_SHAPE(n)));
        c.in[2] = gn_eval(gn_abs(c.in[0]));
        c.in[3] = gn_eval(gn_randint(g, GN_I64, GN_SHAPE(n), 0, 1000));
        c.family = "wide";
        c.m = n;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s %gM", list[i].name, (double)n * 1e-6);
            c.name = name;
            c.bytes = list[i].bytes * (double)n;
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
}

static gn_array *run_relu(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_relu(in[0]);
}
static gn_array *run_silu(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_silu(in[0]);
}
static gn_array *run_gelu(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_gelu(in[0]);
}
static gn_array *run_turned_25(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_copy(gn_transpose(in[1]));
}

// What becomes float16 or bfloat16 at once is computed in the device's arithmetic; 25 rows become columns without tiles.
static void bench_half(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *name;
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"relu", run_relu}, {"exp", run_exp}, {"tanh", run_tanh}, {"silu", run_silu}, {"gelu", run_gelu}, {"25 rows turned", run_turned_25},
    };
    static const gn_dtype dtypes[] = {GN_F16, GN_BF16};
    for (int t = 0; t < 2; t++) GN_SCOPE(g) {
        bench_case c;
        memset(&c, 0, sizeof c);
        c.in[0] = gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(n)), dtypes[t]));
        c.in[1] = gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(25, n / 25)), dtypes[t]));
        c.family = "half";
        c.m = n;
        c.bytes = 4.0 * (double)n;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s %s %gM", list[i].name, gn_dtype_name(dtypes[t]), (double)n * 1e-6);
            c.name = name;
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
}

static gn_array *run_neg(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_neg(in[0]);
}
static gn_array *run_add_row(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_add(in[0], in[2]);
}
static gn_array *run_add_column(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_add(in[0], in[3]);
}
static gn_array *run_any_of_columns(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_any(in[0], 0);
}
static gn_array *run_max_of_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_max(in[0], 1);
}
static gn_array *run_max_of_columns(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_max(in[0], 0);
}
static gn_array *run_argmax_of_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_argmax(in[0], 1);
}
static gn_array *run_prod_of_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_prod(in[0], 1);
}
static gn_array *run_cumsum_of_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cumsum(in[0], 1);
}
static gn_array *run_cumprod_of_rows(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_cumprod(in[0], 1);
}
static gn_array *run_mean(const bench_case *c, gn_array *const *in) {
    (void)c;
    return gn_mean(in[0], GN_ALL);
}

// The same ops on (n, n) of every kind of number: memory is what they wait for.
static void bench_dtypes(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *name;
        double passes; // over the memory of an operand
        bool ordered;  // not for complex numbers
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"add", 3, false, run_add},
        {"neg", 2, false, run_neg},
        {"add a row", 2, false, run_add_row},
        {"add a column", 2, false, run_add_column},
        {"mean", 1, false, run_mean},
        {"sum of rows", 1, false, run_sum_rows},
        {"sum of columns", 1, false, run_sum_columns},
        {"any of columns", 1, true, run_any_of_columns},
        {"max of rows", 1, true, run_max_of_rows},
        {"max of columns", 1, true, run_max_of_columns},
        {"argmax of rows", 1, true, run_argmax_of_rows},
        {"prod of rows", 1, false, run_prod_of_rows},
        {"cumsum of rows", 2, false, run_cumsum_of_rows},
        {"cumprod of rows", 2, false, run_cumprod_of_rows},
    };
    static const gn_dtype types[] = {GN_F32, GN_F64, GN_U8, GN_I16, GN_I32, GN_I64, GN_C64, GN_C128};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        GN_SCOPE(g) {
            const bool complex = t > 5;
            bench_case c;
            memset(&c, 0, sizeof c);
            const gn_shape shapes[] = {GN_SHAPE(n, n), GN_SHAPE(n, n), GN_SHAPE(n), GN_SHAPE(n, 1)};
            for (int k = 0; k < 4; k++) {
                gn_array *x = t < 2 || complex ? gn_randn(g, GN_F32, shapes[k]) : gn_randint(g, GN_I32, shapes[k], 0, 100);
                c.in[k] = gn_eval(gn_cast(complex ? gn_complex(x, gn_neg(x)) : x, types[t]));
            }
            c.family = "dtypes";
            c.m = c.n = n;
            for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
                char name[64];
                if (complex && list[i].ordered) continue;
                snprintf(name, sizeof name, "%s %s %d", list[i].name, gn_dtype_name(types[t]), (int)n);
                c.name = name;
                c.bytes = list[i].passes * (double)(n * n) * (double)gn_dtype_size(types[t]);
                c.run = list[i].run;
                run_case(g, &c, o, report);
            }
        }
}

static void bench_index(gn_context *g, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *name;
        double bytes; // for each element
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"gather", 16, run_gather},       {"scatter_add", 20, run_scatter_add}, {"put_along", 20, run_put},
        {"assign ::2", 4, run_assign},    {"assign rows", 8, run_assign_inner}, {"compress", 5, run_compress},
        {"flatnonzero", 5, run_nonzero},  {"concat", 16, run_concat},           {"pad", 8, run_pad},
        {"roll", 8, run_roll},            {"tile", 12, run_tile},               {"where mask", 13, run_mask},
    };
    if (o->only != NULL && strstr("index", o->only) == NULL) {
        bool any = false;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) any = any || strstr(list[i].name, o->only) != NULL;
        if (!any) return;
    }
    GN_SCOPE(g) {
        bench_case c;
        memset(&c, 0, sizeof c);
        c.in[0] = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n)));
        c.in[1] = gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n)));
        c.in[2] = gn_eval(gn_cast(gn_randint(g, GN_I32, GN_SHAPE(n), 0, n), GN_I64));
        c.in[3] = gn_eval(gn_gt_s(c.in[0], 0.0));
        c.family = "index";
        c.m = n;
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            if (list[i].run == run_mask) c.in[0] = gn_eval(gn_scalar(g, GN_F32, 1.5));
            snprintf(name, sizeof name, "%s %gM", list[i].name, (double)n * 1e-6);
            c.name = name;
            c.bytes = list[i].bytes * (double)n;
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
}

// Losses and layers on (m, n), and steps of optimizers over 50 matrices of (1024, 256).
static void bench_train(gn_context *g, int64_t m, int64_t n, const bench_options *o, bench_report *report) {
    static const struct {
        const char *name;
        double bytes; // for each element
        gn_array *(*run)(const bench_case *c, gn_array *const *in);
    } list[] = {
        {"cross_entropy", 16, run_cross_entropy}, {"cross_entropy_with", 16, run_cross_entropy_with}, {"smooth_l1", 20, run_smooth_l1},
        {"bce_with_logits", 20, run_bce},         {"dropout", 12, run_dropout},                       {"embedding", 16, run_embedding},
    };
    enum { PARAMS = 50 };
    if (o->only != NULL && strstr("train", o->only) == NULL) return;
    bench_case c;
    memset(&c, 0, sizeof c);
    c.family = "train";
    c.m = m;
    c.n = n;
    GN_SCOPE(g) {
        c.in[0] = gn_requires_grad(gn_eval(gn_randn(g, GN_F32, GN_SHAPE(m, n))), true);
        c.in[1] = gn_eval(gn_randint(g, GN_I32, GN_SHAPE(m), 0, n));
        c.in[2] = gn_eval(gn_rand(g, GN_F32, GN_SHAPE(m, n)));
        c.in[3] = gn_eval(gn_randint(g, GN_I32, GN_SHAPE(m), 0, m)); // as many rows as the table has
        for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s %lldx%lld", list[i].name, (long long)m, (long long)n);
            c.name = name;
            c.bytes = list[i].bytes * (double)m * (double)n;
            c.run = list[i].run;
            run_case(g, &c, o, report);
        }
    }
    for (int kind = 0; kind < 3; kind++)
        GN_SCOPE(g) {
            static const char *const names[] = {"adam 50 x 1024x256", "lion 50 x 1024x256", "muon 50 x 1024x256"};
            gn_array *w[PARAMS], *loss = gn_scalar(g, GN_F32, 0.0);
            for (int i = 0; i < PARAMS; i++) {
                w[i] = gn_requires_grad(gn_eval(gn_randn(g, GN_F32, GN_SHAPE(1024, 256))), true);
                loss = gn_add(loss, gn_mean(gn_square(w[i]), GN_ALL));
            }
            gn_backward(loss);
            c.optimizer = kind == 0 ? gn_adam(w, PARAMS, NULL) : kind == 1 ? gn_lion(w, PARAMS, NULL) : gn_muon(w, PARAMS, NULL);
            c.in[0] = w[0];
            c.name = names[kind];
            c.bytes = (kind == 0 ? 28.0 : 20.0) * PARAMS * 1024 * 256;
            c.run = run_step;
            run_case(g, &c, o, report);
            gn_optimizer_free(c.optimizer);
        }
}

// Layers on images (n, channels, side, side), forward and with the gradients. `word`: of the context's precision, then
// convolutions alone.
static void bench_conv(gn_context *g, const char *word, const bench_options *o, bench_report *report) {
    static const struct {
        const char *op;
        int n, c, side, out, kernel, stride, groups;
    } list[] = {
        {"conv2d", 128, 1, 28, 16, 5, 1, 1},    {"conv2d", 128, 16, 14, 32, 5, 1, 1},  {"conv2d", 32, 64, 28, 64, 3, 1, 1},
        {"conv2d", 32, 128, 14, 128, 3, 2, 1},  {"conv2d", 32, 256, 14, 256, 3, 1, 1}, {"conv2d", 32, 512, 7, 512, 3, 1, 1},
        {"conv2d", 32, 256, 14, 512, 1, 1, 1},  {"conv2d", 32, 64, 28, 64, 3, 1, 64},
        {"conv2d", 64, 128, 32, 128, 3, 1, 32}, {"conv2d", 8, 3, 112, 64, 7, 2, 1},
        {"max_pool2d", 32, 64, 56, 64, 2, 1, 1}, {"avg_pool2d", 32, 64, 56, 64, 2, 1, 1}, {"batch_norm", 32, 64, 56, 64, 1, 1, 1},
        {"group_norm", 32, 64, 56, 64, 1, 1, 1}, {"layer_norm", 32, 64, 56, 64, 1, 1, 1},
        {"batch_norm", 64, 128, 56, 128, 1, 1, 1},
    };
    if (o->only != NULL && strstr("conv", o->only) == NULL) return;
    for (size_t i = 0; i < 2 * sizeof list / sizeof list[0]; i++)
        GN_SCOPE(g) {
            const int n = list[i / 2].n, channels = list[i / 2].c, side = list[i / 2].side, out = list[i / 2].out,
                      kernel = list[i / 2].kernel, stride = list[i / 2].stride, groups = list[i / 2].groups;
            if (word[0] != 0 && strcmp(list[i / 2].op, "conv2d") != 0) break;
            const bool conv = strcmp(list[i / 2].op, "conv2d") == 0, all = i % 2 == 1;
            const double elements = (double)n * channels * side * side, places = (double)((side + stride - 1) / stride);
            char name[96];
            bench_case c;
            memset(&c, 0, sizeof c);
            snprintf(name, sizeof name, "%s %d,%d,%d,%d,%d,%d,%d %s%s", list[i / 2].op, n, channels, side, out, kernel, stride, groups,
                     all ? "gradients" : "forward", word);
            c.family = "conv";
            c.name = name;
            c.m = n;
            c.n = channels;
            c.k = side;
            c.g = g;
            if (conv) c.flops = (all ? 6.0 : 2.0) * n * out * places * places * channels / groups * kernel * kernel;
            if (!conv) c.bytes = (all ? 20.0 : 8.0) * elements;
            c.run = all ? run_image_gradients : run_image;
            c.in[0] = gn_requires_grad(gn_eval(gn_randn(g, GN_F32, GN_SHAPE(n, channels, side, side))), true);
            c.in[1] = gn_he_normal(g, GN_F32, GN_SHAPE(out, channels / groups, kernel, kernel));
            c.in[2] = gn_requires_grad(gn_ones(g, GN_F32, GN_SHAPE(channels)), true);
            c.in[3] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(channels)), true);
            run_case(g, &c, o, report);
        }
}

static void bench_rows(gn_context *g, const bench_options *o, bench_report *report) {
    static const struct {
        const char *op;
        int m, n;
        gn_dtype t;
    } list[] = {
        {"layer_norm", 8192, 4096, GN_F32}, {"layer_norm", 65536, 256, GN_F32}, {"layer_norm", 8192, 4096, GN_F16},
        {"rms_norm", 8192, 4096, GN_F32},   {"softmax", 65536, 1000, GN_F32},   {"softmax", 8192, 2048, GN_F16},
    };
    if (o->only != NULL && strstr("rows", o->only) == NULL) return;
    for (size_t i = 0; i < 2 * sizeof list / sizeof list[0]; i++)
        GN_SCOPE(g) {
            const int m = list[i / 2].m, n = list[i / 2].n;
            const gn_dtype t = list[i / 2].t;
            const bool all = i % 2 == 1;
            char name[96];
            bench_case c;
            memset(&c, 0, sizeof c);
            snprintf(name, sizeof name, "%s %s %dx%d %s", list[i / 2].op, gn_dtype_name(t), m, n, all ? "gradients" : "forward");
            c.family = "rows";
            c.name = name;
            c.m = m;
            c.n = n;
            c.g = g;
            c.bytes = (all ? 5.0 : 2.0) * (double)gn_dtype_size(t) * (double)m * (double)n;
            c.run = run_rows;
            c.in[0] = gn_requires_grad(gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(m, n)), t)), true);
            c.in[1] = gn_requires_grad(gn_eval(gn_ones(g, t, GN_SHAPE(n))), true);
            c.in[2] = gn_requires_grad(gn_eval(gn_zeros(g, t, GN_SHAPE(n))), true);
            c.in[3] = gn_eval(gn_cast(gn_randn(g, GN_F32, GN_SHAPE(m, n)), t));
            run_case(g, &c, o, report);
        }
}

static void bench_sequence(gn_context *g, gn_dtype t, const bench_options *o, bench_report *report) {
    static const struct {
        const char *op;
        int batch, heads, n, size, how;
    } list[] = {
        {"attention", 8, 4, 128, 64, CAUSAL},       {"attention", 4, 8, 512, 64, 0},       {"attention", 4, 8, 512, 64, CAUSAL},
        {"attention", 1, 4, 2048, 64, 0},           {"attention", 1, 4, 2048, 64, CAUSAL}, {"attention", 16, 16, 2048, 64, 0},
        {"attention", 16, 16, 2048, 64, MASKED},    {"attention", 16, 16, 2048, 64, DROPPED},
        {"lstm", 32, 0, 100, 256, 0},               {"gru", 32, 0, 100, 256, 0},           {"lstm", 1, 0, 200, 128, 0},
    };
    static const char *const words[] = {"", "causal ", "", "", "masked ", "", "", "", "dropped "};
    if (o->only != NULL && strstr("sequence", o->only) == NULL) return;
    for (size_t i = 0; i < 2 * sizeof list / sizeof list[0]; i++)
        GN_SCOPE(g) {
            const int batch = list[i / 2].batch, heads = list[i / 2].heads, n = list[i / 2].n, size = list[i / 2].size;
            const bool all = i % 2 == 1, lstm = strcmp(list[i / 2].op, "lstm") == 0;
            if (batch * heads > 64 && t != GN_F16) continue; // of GPUs
            if (heads == 0 && t != GN_F32) continue;
            char name[96];
            bench_case c;
            memset(&c, 0, sizeof c);
            snprintf(name, sizeof name, "%s %s %d,%d,%d,%d %s%s", list[i / 2].op, gn_dtype_name(t), batch, heads, n, size,
                     words[list[i / 2].how], all ? "gradients" : "forward");
            c.family = "sequence";
            c.name = name;
            c.m = batch;
            c.n = n;
            c.k = size;
            c.batch = heads;
            c.turned = list[i / 2].how | (all ? ALL_GRADIENTS : 0);
            c.g = g;
            const double pairs = (double)n * n * (list[i / 2].how == CAUSAL ? 0.5 : 1.0);
            c.flops = heads > 0 ? (all ? 14.0 : 4.0) * batch * heads * pairs * size
                                : (all ? 6.0 : 2.0) * batch * n * (lstm ? 4.0 : 3.0) * size * 2.0 * size;
            c.run = run_sequence;
            for (int k = 0; k < 4; k++) {
                const int64_t gates = (lstm ? 4 : 3) * size;
                gn_array *x = heads > 0 ? gn_randn(g, GN_F32, GN_SHAPE(batch, heads, n, size))
                              : k % 3 == 0 ? gn_randn(g, GN_F32, GN_SHAPE(n, batch, size))
                                           : gn_uniform(g, GN_F32, GN_SHAPE(gates, size), -0.06, 0.06);
                c.in[k] = gn_requires_grad(gn_eval(gn_cast(x, t)), k < 3);
            }
            if (list[i / 2].how == MASKED) // of each image of the batch another number of keys is seen
                c.in[4] = gn_eval(gn_lt(gn_arange(g, GN_F32, 0, n, 1), gn_reshape(gn_linspace(g, GN_F32, n / 2, n, batch), GN_SHAPE(-1, 1, 1, 1))));
            run_case(g, &c, o, report);
        }
}

// A random matrix, or `batch` of them; turned: a transposed view of one that lies the other way.
static gn_array *matrix(gn_context *g, gn_dtype t, int64_t batch, int64_t rows, int64_t columns, bool turned) {
    int64_t r = turned ? columns : rows, c = turned ? rows : columns;
    gn_array *a = gn_randn(g, GN_F32, batch > 0 ? GN_SHAPE(batch, r, c) : GN_SHAPE(r, c));
    a = gn_eval(gn_cast(a, t));
    return turned ? gn_swap_axes(a, -1, -2) : a;
}

typedef struct product {
    gn_dtype dtype;
    int64_t batch, m, n, k;
    int turned;
} product;

// `word`: what the row's name says besides dtype and shape.
static void bench_product(gn_context *g, product p, const char *word, const bench_options *o, bench_report *report) {
    static const char *const turned[] = {"", " aT", " bT", " aT bT"};
    GN_SCOPE(g) {
        bench_case c;
        char name[96], batch[32] = "";
        memset(&c, 0, sizeof c);
        if (p.batch > 0) snprintf(batch, sizeof batch, "%lld of ", (long long)p.batch);
        snprintf(name, sizeof name, "%s %s%s%lldx%lldx%lld%s", gn_dtype_name(p.dtype), word, batch, (long long)p.m,
                 (long long)p.k, (long long)p.n, turned[p.turned]);
        c.family = "matmul";
        c.name = name;
        c.m = p.m;
        c.n = p.n;
        c.k = p.k;
        c.batch = p.batch;
        c.turned = p.turned;
        c.in[0] = matrix(g, p.dtype, p.batch, p.m, p.k, (p.turned & 1) != 0);
        c.in[1] = matrix(g, p.dtype, p.batch, p.k, p.n, (p.turned & 2) != 0);
        double count = p.batch > 0 ? (double)p.batch : 1.0;
        c.bytes = count * (double)gn_dtype_size(p.dtype) * (double)(p.m * p.k + p.k * p.n + p.m * p.n);
        c.flops = 2.0 * count * (double)p.m * (double)p.n * (double)p.k;
        c.run = run_matmul;
        run_case(g, &c, o, report);
    }
}

static void bench_matmul(gn_context *g, gn_dtype t, int64_t m, int64_t n, int64_t k, const bench_options *o,
                         bench_report *report) {
    product p = {t, 0, m, n, k, 0};
    bench_product(g, p, "", o, report);
}

// What only a GPU is timed on.
static void bench_more_matmul(gn_context *g, const bench_options *o, bench_report *report) {
    static const product list[] = {
        {GN_F32, 64, 256, 256, 256, 0},    {GN_F32, 0, 4096, 4096, 4096, 1}, {GN_F32, 0, 4096, 4096, 4096, 2},
        {GN_F32, 0, 4096, 4096, 4096, 3},  {GN_F32, 0, 8192, 32, 8192, 0},   {GN_F32, 0, 32, 8192, 8192, 0},
        {GN_F16, 0, 8192, 1, 8192, 0},     {GN_F16, 0, 1, 8192, 8192, 0},    {GN_BF16, 0, 8192, 1, 8192, 0},
        {GN_BF16, 0, 1, 8192, 8192, 0},    {GN_F32, 0, 1, 1, 1 << 26, 0},    {GN_F32, 0, 8192, 8192, 1, 0},
        {GN_BF16, 0, 512, 512, 512, 0},    {GN_BF16, 0, 1024, 1024, 1024, 0}, {GN_BF16, 0, 2048, 2048, 2048, 0},
        {GN_BF16, 0, 4096, 4096, 4096, 0}, {GN_BF16, 0, 8192, 8192, 8192, 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) bench_product(g, list[i], "", o, report);
}

// float32 products and convolutions in a context that asks for another precision; `after` the name of these.
static void bench_precision(const gn_options *options, gn_precision precision, const char *name, const char *after,
                            const bench_options *o, bench_report *report) {
    gn_options other = *options;
    other.matmul = precision;
    gn_context *g = gn_open(&other);
    if (g == NULL) return;
    for (int64_t n = 512; n <= 8192; n *= 2) {
        product p = {GN_F32, 0, n, n, n, 0};
        bench_product(g, p, name, o, report);
    }
    bench_conv(g, after, o, report);
    gn_close(g);
}

static void report_fft(const bench_case *c, double seconds, double first, double fftw, double plan,
                       bench_report *report) {
    print_row(c, seconds);
    printf(", first %.3f ms", first * 1e3);
    if (fftw > 0.0) printf("  %.2fx FFTW, plan %.1f ms", fftw / seconds, plan * 1e3);
    printf("\n");
    fflush(stdout);
    if (report->json != NULL) {
        write_row(c, seconds, report);
        fprintf(report->json, ", \"first_seconds\": %.9g, \"fftw_seconds\": %.9g, \"fftw_plan_seconds\": %.9g}", first,
                fftw, plan);
    }
    report->rows++;
}

// `n` points of float32 or float64 `batch` times; of rank 2 and 3 a square and a cube of n points a side.
static void bench_fft(gn_context *g, gn_dtype t, const char *kind, int64_t n, int64_t batch, int rank, const bench_options *o,
                      bench_report *report) {
    GN_SCOPE(g) {
        bench_case c;
        char name[64];
        memset(&c, 0, sizeof c);
        const bool r2c = strcmp(kind, "r2c") == 0, c2r = strcmp(kind, "c2r") == 0;
        const double points = (rank == 3 ? (double)n * (double)n : rank == 2 ? (double)n : 1.0) * (double)(n * batch);
        const char *of = t == GN_F64 ? "float64 " : "";
        if (rank > 1) snprintf(name, sizeof name, "%s %s%lld^%d", kind, of, (long long)n, rank);
        else snprintf(name, sizeof name, "%s %s%lld x %lld", kind, of, (long long)n, (long long)batch);
        c.family = "fft";
        c.name = name;
        c.m = n;
        c.n = batch;
        c.k = rank;
        c.run = r2c ? run_rfft : c2r ? run_irfft : rank > 1 ? run_fft : run_fft_one;
        c.bytes = r2c || c2r ? (4.0 * (double)n + 8.0 * (double)(n / 2 + 1)) * (double)batch : 16.0 * points;
        if (t == GN_F64) c.bytes *= 2.0;
        c.flops = (r2c || c2r ? 2.5 : 5.0) * points * log2((double)n) * rank;
        if (o->only == NULL || strstr(c.family, o->only) != NULL || strstr(name, o->only) != NULL) {
            gn_shape s = rank == 3   ? GN_SHAPE(n, n, n)
                         : rank == 2 ? GN_SHAPE(n, n)
                                     : GN_SHAPE(batch, c2r ? n / 2 + 1 : n);
            gn_array *re = gn_eval(gn_randn(g, t, s));
            c.in[0] = r2c ? re : gn_eval(gn_complex(re, gn_randn(g, t, s)));
            gn_sync(g);
            double first = now(), fftw = 0.0, plan = 0.0;
            GN_SCOPE(g) { gn_eval(c.run(&c, c.in)); }
            gn_sync(g);
            first = now() - first;
            double seconds = time_case(g, &c, o);
            if (gn_status_get(g) != GN_OK) {
                printf("%-12s %-22s failed: %s\n", c.family, name, gn_error(g));
                gn_error_clear(g);
            } else {
                if (report->on_cpu && report->fftw.c2c != NULL && t == GN_F32) fftw = time_fftw(&report->fftw, &c, o, &plan);
                report_fft(&c, seconds, first, fftw, plan, report);
            }
        }
    }
}

static void bench_transforms(gn_context *g, const bench_options *o, bench_report *report) {
    static const int64_t odd[][2] = {{1000, 65536}, {7919, 4096}, {59049, 1024}, {100003, 64}};
    const int most = o->quick ? 12 : 24;
    const int64_t points = (int64_t)1 << (o->quick ? 14 : report->on_cpu ? 20 : 26);
    for (int i = 8; i <= most; i++) bench_fft(g, GN_F32, "c2c", (int64_t)1 << i, 1, 1, o, report);
    for (int i = 8; i <= most && (int64_t)2 << i <= points; i++)
        bench_fft(g, GN_F32, "c2c", (int64_t)1 << i, points >> i, 1, o, report);
    for (int i = 0; i < (o->quick ? 1 : 4); i++) {
        const int64_t n = odd[i][0], batch = report->on_cpu || o->quick ? points / n : odd[i][1];
        bench_fft(g, GN_F32, "c2c", n, 1, 1, o, report);
        bench_fft(g, GN_F32, "c2c", n, batch, 1, o, report);
    }
    for (int i = 8; i <= (o->quick ? 10 : 20); i += 2) {
        bench_fft(g, GN_F32, "r2c", (int64_t)1 << i, points >> i, 1, o, report);
        bench_fft(g, GN_F32, "c2r", (int64_t)1 << i, points >> i, 1, o, report);
    }
    bench_fft(g, GN_F32, "c2c", o->quick ? 64 : report->on_cpu ? 1024 : 4096, 1, 2, o, report);
    bench_fft(g, GN_F32, "c2c", o->quick ? 16 : report->on_cpu ? 128 : 256, 1, 3, o, report);
    static const int64_t wide[][2] = {{1024, 4096}, {4096, 1024}, {65536, 64}, {1000, 4096}, {7919, 512}, {1 << 20, 4}, {1 << 22, 1}};
    for (int i = 0; i < (o->quick ? 1 : 7); i++) {
        const int64_t n = wide[i][0], batch = o->quick ? 16 : wide[i][1];
        bench_fft(g, GN_F64, "c2c", n, batch, 1, o, report);
        if (i == 0 || i == 5) bench_fft(g, GN_F64, "r2c", n, 2 * batch, 1, o, report);
        if (i == 0 || i == 5) bench_fft(g, GN_F64, "c2r", n, 2 * batch, 1, o, report);
    }
}

static void bench_all(gn_context *g, const bench_options *o, bench_report *report) {
    bool big = !report->on_cpu && !o->quick;
    static const int64_t vectors[] = {10000, 1000000, 10000000, 100000000, 400000000};
    static const int64_t squares[] = {512, 2048, 8192};
    static const int64_t products[] = {64, 128, 256, 512, 1024, 2048, 4096, 8192};
    static const int64_t shapes[][3] = {{128, 256, 784}, {128, 128, 256}, {128, 10, 128}, {784, 256, 128},
                                        {64, 64, 65536}, {8192, 1, 8192}, {1, 8192, 8192}};
    for (int i = 0; i < (big ? 5 : o->quick ? 2 : 3); i++) bench_vector(g, vectors[i], o, report);
    for (int i = 1; i < (big ? 4 : o->quick ? 2 : 3); i++) bench_index(g, vectors[i], o, report);
    for (int i = 1; i < (o->quick ? 2 : 3); i++) bench_wide(g, vectors[i], o, report);
    for (int i = 1; i < (o->quick ? 2 : 3); i++) bench_half(g, vectors[i], o, report);
    if (!o->quick) bench_dtypes(g, big ? 4000 : 1000, o, report);
    for (int i = 0; i < (big ? 3 : o->quick ? 1 : 2); i++) bench_square(g, squares[i], o, report);
    for (int i = 0; i < (big ? 8 : o->quick ? 4 : 6); i++)
        bench_matmul(g, GN_F32, products[i], products[i], products[i], o, report);
    for (int i = 0; i < (o->quick ? 3 : 7); i++)
        bench_matmul(g, GN_F32, shapes[i][0], shapes[i][1], shapes[i][2], o, report);
    for (int i = 4; i < (big ? 8 : o->quick ? 4 : 6); i++)
        bench_matmul(g, GN_F16, products[i], products[i], products[i], o, report);
    if (big) bench_more_matmul(g, o, report);
    bench_transforms(g, o, report);
    bench_train(g, 8192, 1000, o, report);
    bench_conv(g, "", o, report);
    if (big) bench_rows(g, o, report);
    bench_sequence(g, GN_F32, o, report);
    if (big) bench_sequence(g, GN_F16, o, report);
    if (big) bench_train(g, 8192, 50257, o, report);
}

// ---- whole steps of training

enum { MLP_LAYERS = 3, MLP_BATCH = 128 };
typedef struct mlp {
    gn_array *x, *labels, *params[2 * MLP_LAYERS];
    gn_optimizer *optimizer;
} mlp;

static gn_array *run_mlp(const bench_case *c, gn_array *const *in) {
    const mlp *m = (const mlp *)c->model;
    gn_array *h = m->x;
    for (int i = 0; i < MLP_LAYERS; i++) {
        h = gn_linear(h, m->params[2 * i], m->params[2 * i + 1]);
        if (i + 1 < MLP_LAYERS) h = gn_relu(h);
    }
    (void)in;
    gn_array *loss = gn_cross_entropy(h, m->labels);
    gn_backward(loss);
    gn_step(m->optimizer);
    gn_zero_grads(m->optimizer);
    return loss;
}

// A network as one writes it first, and with everything on the device.
static void bench_mlp(const gn_options *options, const bench_options *o, bench_report *report) {
    static const int64_t width[MLP_LAYERS + 1] = {784, 256, 128, 10};
    static const gn_placement placement[] = {GN_PLACE_AUTO, GN_PLACE_GPU};
    for (int i = 0; i < (report->on_cpu ? 1 : 2); i++) {
        gn_options other = *options;
        bench_case c;
        mlp m;
        memset(&c, 0, sizeof c);
        c.family = "step";
        c.name = i == 0 ? "mlp 784-256-128-10" : "mlp 784-256-128-10 gpu";
        c.m = MLP_BATCH;
        c.model = &m;
        c.run = run_mlp;
        c.flops = 6.0 * MLP_BATCH * (784.0 * 256 + 256 * 128 + 128 * 10);
        if (!is_wanted(&c, o)) continue;
        other.placement = placement[i];
        gn_context *g = gn_open(&other);
        if (g == NULL) return;
        GN_SCOPE(g) {
            m.x = gn_eval(gn_rand(g, GN_F32, GN_SHAPE(MLP_BATCH, width[0])));
            m.labels = gn_eval(gn_randint(g, GN_I32, GN_SHAPE(MLP_BATCH), 0, width[MLP_LAYERS]));
            for (int k = 0; k < MLP_LAYERS; k++) {
                m.params[2 * k] = gn_he_normal(g, GN_F32, GN_SHAPE(width[k], width[k + 1]));
                m.params[2 * k + 1] = gn_requires_grad(gn_zeros(g, GN_F32, GN_SHAPE(width[k + 1])), true);
            }
            m.optimizer = gn_adam(m.params, 2 * MLP_LAYERS, NULL);
            run_case(g, &c, o, report);
        }
        gn_close(g);
    }
}

// ---- fusions, against their parts

// Operands: x, y, w of (n, n), a row, a column, 16 columns, a vector. `cut`: each part is computed by itself.
enum { FUSE_X, FUSE_Y, FUSE_W, FUSE_ROW, FUSE_COLUMN, FUSE_NARROW, FUSE_OPERANDS };
typedef gn_array *(*fusion_fn)(bool cut, gn_array *const *in);

static gn_array *part(bool cut, gn_array *a) { return cut ? gn_eval(a) : a; }
static gn_array *fuse_product(bool cut, gn_array *const *in) { return part(cut, gn_matmul(in[FUSE_X], in[FUSE_W])); }
static gn_array *fuse_bias(bool cut, gn_array *const *in) { return part(cut, gn_add(fuse_product(cut, in), in[FUSE_ROW])); }
static gn_array *fuse_relu(bool cut, gn_array *const *in) { return gn_relu(fuse_product(cut, in)); }
static gn_array *fuse_bias_relu(bool cut, gn_array *const *in) { return gn_relu(fuse_bias(cut, in)); }
static gn_array *fuse_bias_gelu(bool cut, gn_array *const *in) { return gn_gelu(fuse_bias(cut, in)); }
static gn_array *fuse_bias_tanh(bool cut, gn_array *const *in) { return gn_tanh(fuse_bias(cut, in)); }
static gn_array *fuse_bias_silu(bool cut, gn_array *const *in) { return gn_silu(fuse_bias(cut, in)); }
static gn_array *fuse_bias_array(bool cut, gn_array *const *in) { return gn_add(fuse_bias(cut, in), in[FUSE_Y]); }
static gn_array *fuse_column(bool cut, gn_array *const *in) { return gn_mul(fuse_product(cut, in), in[FUSE_COLUMN]); }
static gn_array *fuse_scaled(bool cut, gn_array *const *in) {
    return gn_add(part(cut, gn_mul_s(fuse_product(cut, in), 0.1)), in[FUSE_Y]);
}
static gn_array *fuse_gate(bool cut, gn_array *const *in) {
    return gn_mul(part(cut, gn_silu(fuse_product(cut, in))), in[FUSE_Y]);
}
static gn_array *fuse_gelu_narrow(bool cut, gn_array *const *in) {
    return gn_gelu(part(cut, gn_matmul(in[FUSE_X], in[FUSE_NARROW])));
}
static gn_array *fuse_made(bool cut, gn_array *const *in) {
    return part(cut, gn_mul(part(cut, gn_sigmoid(in[FUSE_X])), in[FUSE_Y]));
}
static gn_array *fuse_made_narrow(bool cut, gn_array *const *in) { return gn_matmul(fuse_made(cut, in), in[FUSE_NARROW]); }
static gn_array *fuse_made_vector(bool cut, gn_array *const *in) { return gn_matmul(fuse_made(cut, in), in[FUSE_COLUMN]); }
static gn_array *fuse_sum(bool cut, gn_array *const *in) { return gn_sum(part(cut, gn_exp(in[FUSE_X])), GN_ALL); }
static gn_array *fuse_sum_rows(bool cut, gn_array *const *in) {
    return gn_sum(part(cut, gn_mul(in[FUSE_X], in[FUSE_Y])), 1);
}
static gn_array *fuse_sum_columns(bool cut, gn_array *const *in) {
    return gn_sum(part(cut, gn_square(part(cut, gn_sub(in[FUSE_X], in[FUSE_ROW])))), 0);
}
static gn_array *fuse_max(bool cut, gn_array *const *in) { return gn_max(part(cut, gn_abs(in[FUSE_X])), GN_ALL); }
static gn_array *fuse_argmax(bool cut, gn_array *const *in) {
    return gn_argmax(part(cut, gn_mul(in[FUSE_X], in[FUSE_Y])), 1);
}
static gn_array *fuse_mean_gelu(bool cut, gn_array *const *in) { return gn_mean(part(cut, gn_gelu(in[FUSE_X])), 1); }
static gn_array *fuse_softmax(bool cut, gn_array *const *in) {
    return gn_softmax(part(cut, gn_add(part(cut, gn_mul_s(in[FUSE_X], 0.125)), in[FUSE_Y])), 1);
}
static gn_array *fuse_softmax_columns(bool cut, gn_array *const *in) {
    return gn_softmax(part(cut, gn_mul_s(in[FUSE_X], 0.125)), 0);
}
static gn_array *fuse_scan(bool cut, gn_array *const *in) { return gn_cumsum(part(cut, gn_mul(in[FUSE_X], in[FUSE_Y])), 1); }
static gn_array *fuse_chain(bool cut, gn_array *const *in) {
    return gn_sigmoid(part(cut, gn_add(part(cut, gn_mul(part(cut, gn_sin(in[FUSE_X])), in[FUSE_Y])), in[FUSE_X])));
}
static gn_array *fuse_long_chain(bool cut, gn_array *const *in) {
    gn_array *a = in[FUSE_X];
    for (int i = 0; i < 6; i++) a = part(cut, gn_add(part(cut, gn_mul(a, in[FUSE_COLUMN])), in[FUSE_ROW]));
    return a;
}
static gn_array *fuse_gelu_gate(bool cut, gn_array *const *in) {
    return gn_mul(part(cut, gn_gelu(part(cut, gn_add(in[FUSE_X], in[FUSE_ROW])))), in[FUSE_Y]);
}
static gn_array *fuse_turned(bool cut, gn_array *const *in) {
    return gn_add(gn_transpose(part(cut, gn_tanh(in[FUSE_X]))), in[FUSE_Y]);
}

static const struct fusion {
    const char *name;
    fusion_fn run;
} fusions[] = {
    {"relu(a@b)", fuse_relu},           {"a@b+row", fuse_bias},
    {"relu(a@b+row)", fuse_bias_relu},  {"gelu(a@b+row)", fuse_bias_gelu},
    {"tanh(a@b+row)", fuse_bias_tanh},  {"silu(a@b+row)", fuse_bias_silu},
    {"a@b+row+c", fuse_bias_array},     {"a@b*column", fuse_column},
    {"a@b*.1+c", fuse_scaled},          {"silu(a@b)*c", fuse_gate},
    {"gelu(a@16)", fuse_gelu_narrow},   {"(sigmoid(a)*b)@16", fuse_made_narrow},
    {"(sigmoid(a)*b)@v", fuse_made_vector}, {"sum(exp(a))", fuse_sum},
    {"sum(a*b,1)", fuse_sum_rows},      {"sum((a-row)^2,0)", fuse_sum_columns},
    {"max(abs(a))", fuse_max},          {"argmax(a*b,1)", fuse_argmax},
    {"mean(gelu(a),1)", fuse_mean_gelu}, {"softmax(a*.125+b,1)", fuse_softmax},
    {"softmax(a*.125,0)", fuse_softmax_columns}, {"cumsum(a*b,1)", fuse_scan},
    {"sigmoid(sin(a)*b+a)", fuse_chain}, {"6 x (a*column+row)", fuse_long_chain},
    {"gelu(a+row)*b", fuse_gelu_gate},  {"tanh(a)^T+b", fuse_turned},
};

static gn_array *run_fusion(const bench_case *c, gn_array *const *in) {
    return fusions[c->k].run(c->turned != 0, in);
}

// Layers, of in[0] and weights; `m` of the case: with gradients.
static gn_array *layer_conv(bool cut, gn_array *const *in) { // x, w (out, in, 3, 3), b
    gn_conv_options o;
    memset(&o, 0, sizeof o);
    o.pad = 1;
    if (!cut) return gn_conv2d(in[0], in[1], in[2], &o);
    const int64_t pad[] = {0, 0, 0, 0, 1, 1, 1, 1}, n = gn_dim(in[0], 0), c = gn_dim(in[0], 1), h = gn_dim(in[0], 2), w = gn_dim(in[0], 3);
    gn_array *x = gn_sliding_window(gn_sliding_window(gn_eval(gn_pad(in[0], pad, 8, GN_PAD_CONSTANT, 0)), 3, 2), 3, 3); // (n, c, h, w, 3, 3)
    x = gn_eval(gn_reshape(gn_permute(x, 0, 2, 3, 1, 4, 5), GN_SHAPE(n * h * w, c * 9)));
    x = gn_eval(gn_matmul(x, gn_transpose(gn_reshape(in[1], GN_SHAPE(-1, c * 9)))));
    return gn_permute(gn_reshape(gn_eval(gn_add(x, in[2])), GN_SHAPE(n, h, w, -1)), 0, 3, 1, 2);
}
static gn_array *layer_affine(gn_array *x, gn_array *mean, gn_array *var, gn_array *w, gn_array *b) {
    x = gn_eval(gn_div(gn_eval(gn_sub(x, mean)), gn_eval(gn_sqrt(gn_add_s(var, 1e-5)))));
    return gn_add(gn_eval(gn_mul(x, w)), b);
}
static gn_array *layer_batch_norm(bool cut, gn_array *const *in) {
    if (!cut) return gn_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.1, 1e-5);
    gn_array *w = gn_expand_dims(in[1], GN_AXES(1, 2)), *b = gn_expand_dims(in[2], GN_AXES(1, 2));
    return layer_affine(in[0], gn_eval(gn_mean(in[0], GN_KEEP(GN_AXES(0, 2, 3)))), gn_eval(gn_var(in[0], GN_KEEP(GN_AXES(0, 2, 3)), 0)), w, b);
}
static gn_array *layer_group_norm(bool cut, gn_array *const *in) {
    if (!cut) return gn_group_norm(in[0], 8, in[1], in[2], 1e-5);
    gn_array *w = gn_reshape(in[1], GN_SHAPE(8, -1, 1, 1)), *b = gn_reshape(in[2], GN_SHAPE(8, -1, 1, 1));
    gn_array *x = gn_reshape(in[0], GN_SHAPE(gn_dim(in[0], 0), 8, -1, gn_dim(in[0], 2), gn_dim(in[0], 3)));
    x = layer_affine(x, gn_eval(gn_mean(x, GN_KEEP(GN_AXES(2, 3, 4)))), gn_eval(gn_var(x, GN_KEEP(GN_AXES(2, 3, 4)), 0)), w, b);
    return gn_reshape(x, gn_shape_of(in[0]));
}
static gn_array *layer_layer_norm(bool cut, gn_array *const *in) {
    if (!cut) return gn_layer_norm(in[0], 1, in[1], in[2], 1e-5);
    return layer_affine(in[0], gn_eval(gn_mean(in[0], GN_KEEP(-1))), gn_eval(gn_var(in[0], GN_KEEP(-1), 0)), in[1], in[2]);
}
static gn_array *layer_rms_norm(bool cut, gn_array *const *in) {
    if (!cut) return gn_rms_norm(in[0], 1, in[1], 1e-5);
    gn_array *mean = gn_eval(gn_mean(gn_eval(gn_square(in[0])), GN_KEEP(-1)));
    return gn_mul(gn_eval(gn_div(in[0], gn_eval(gn_sqrt(gn_add_s(mean, 1e-5))))), in[1]);
}
static gn_array *layer_attend(bool cut, gn_array *const *in, bool causal) {
    const gn_attention_options o = {0.0, causal, 0, 0.0};
    if (!cut) return gn_attention(in[0], in[1], in[2], NULL, &o);
    const int64_t n = gn_dim(in[0], -2);
    gn_array *s = gn_eval(gn_mul_s(gn_eval(gn_matmul(in[0], gn_swap_axes(in[1], -1, -2))), 1.0 / sqrt((double)gn_dim(in[0], -1))));
    if (causal) {
        gn_array *at = gn_arange(gn_context_of(s), GN_I32, 0, (double)n, 1), *seen = gn_ge(gn_expand_dims(at, 1), at);
        s = gn_eval(gn_where(seen, s, gn_scalar(gn_context_of(s), gn_dtype_of(s), -INFINITY)));
    }
    return gn_matmul(gn_eval(gn_softmax(s, -1)), in[2]);
}
static gn_array *layer_attention(bool cut, gn_array *const *in) { return layer_attend(cut, in, false); }
static gn_array *layer_causal(bool cut, gn_array *const *in) { return layer_attend(cut, in, true); }

static const struct layer {
    const char *name;
    fusion_fn run;
    int64_t x[4], w[4]; // shapes: x, and its weights or (norms) the size of both; attention: of all three
} layers[] = {
    {"conv2d+b 32x64x28x28", layer_conv, {32, 64, 28, 28}, {64, 64, 3, 3}},
    {"conv2d+b 8x16x56x56", layer_conv, {8, 16, 56, 56}, {32, 16, 3, 3}},
    {"batch_norm 32x64x28x28", layer_batch_norm, {32, 64, 28, 28}, {64}},
    {"batch_norm 128x32x14x14", layer_batch_norm, {128, 32, 14, 14}, {32}},
    {"group_norm 32x64x28x28", layer_group_norm, {32, 64, 28, 28}, {64}},
    {"layer_norm 4096x768", layer_layer_norm, {4096, 768}, {768}},
    {"layer_norm 512x128", layer_layer_norm, {512, 128}, {128}},
    {"rms_norm 4096x768", layer_rms_norm, {4096, 768}, {768}},
    {"attention 4x8x256x64", layer_attention, {4, 8, 256, 64}, {0}},
    {"attention 1x4x1024x64", layer_attention, {1, 4, 1024, 64}, {0}},
    {"causal 4x8x256x64", layer_causal, {4, 8, 256, 64}, {0}},
    {"causal 1x4x1024x64", layer_causal, {1, 4, 1024, 64}, {0}},
};
enum { LAYERS = (int)(sizeof layers / sizeof layers[0]) };

static gn_array *run_layer(const bench_case *c, gn_array *const *in) {
    const bool cut = c->turned != 0, rms = layers[c->k].run == layer_rms_norm;
    if (c->m == 0) gn_no_grad_begin(c->g);
    gn_array *y = layers[c->k].run(cut, in), *dx[3] = {NULL, NULL, NULL};
    if (c->m == 0) gn_no_grad_end(c->g);
    if (c->m == 0) return y;
    gn_gradients(gn_sum(gn_mul(part(cut, y), in[3]), GN_ALL), in, rms ? 2 : 3, false, dx);
    gn_eval_all(dx, rms ? 2 : 3);
    return dx[0];
}

static gn_shape shape_from(const int64_t *dim) {
    int rank = 0;
    while (rank < 4 && dim[rank] > 0) rank++;
    return gn_shape_from(rank, dim);
}

static gn_array *layer_operand(gn_context *g, gn_dtype t, gn_shape s) {
    return gn_requires_grad(gn_detach(gn_eval(gn_cast(gn_mul_s(gn_randn(g, GN_F32, s), s.rank == 4 && s.dim[3] == 3 ? 0.05 : 1.0), t))), true);
}

// The median of a few short batches.
static double time_briefly(gn_context *g, const bench_case *c, const bench_options *o) {
    double samples[7], aim = 0.2 * o->batch_seconds;
    int reps = 1;
    for (;;) {
        double start = now();
        for (int r = 0; r < reps; r++) GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
        const double spent = now() - start;
        if (spent > 0.5 * aim || reps >= 1 << 16) break;
        reps = (int)((double)reps * (spent > 0.15 * aim ? 1.0 + aim / spent : 8.0));
    }
    for (int i = 0; i < 7; i++) {
        double start = now();
        for (int r = 0; r < reps; r++) GN_SCOPE(g) { gn_eval(c->run(c, c->in)); }
        gn_sync(g);
        samples[i] = (now() - start) / reps;
    }
    qsort(samples, 7, sizeof samples[0], compare_doubles);
    return samples[3];
}

// Both ways in turn, and again where it looks as if the fusion lost.
static void time_fusion(gn_context *g, bench_case *c, const bench_options *o, bench_report *report) {
    double least[2] = {1e9, 1e9};
    bool loses = true;
    for (int round = 0; round < 5 && (round < 2 || loses); round++) {
        for (c->turned = 0; c->turned < 2; c->turned++) {
            const double seconds = time_briefly(g, c, o);
            if (seconds < least[c->turned]) least[c->turned] = seconds;
        }
        loses = least[0] > 1.07 * least[1] && least[0] > least[1] + 2e-6;
    }
    if (gn_status_get(g) != GN_OK) {
        printf("%-12s %-36s failed: %s\n", c->family, c->name, gn_error(g));
        gn_error_clear(g);
        report->lost++;
        return;
    }
    printf("%-12s %-36s %12.3f us  parts %12.3f us  %6.2fx%s\n", c->family, c->name, least[0] * 1e6, least[1] * 1e6,
           least[1] / least[0], loses ? "  LOSES" : "");
    fflush(stdout);
    report->lost += loses;
    if (report->json != NULL) {
        write_row(c, least[0], report);
        fprintf(report->json, ", \"parts_seconds\": %.9g}", least[1]);
    }
    report->rows++;
}

// In a context that waits for pipelines, so that only what stays is timed.
static void bench_fusions(const gn_options *options, const bench_options *o, bench_report *report) {
    static const gn_dtype dtypes[] = {GN_F32, GN_F16, GN_BF16, GN_F64};
    static const int64_t sizes[] = {128, 1024, 4096};
    const int count_fusions = (int)(sizeof fusions / sizeof fusions[0]);
    gn_options other = *options;
    // Of one dtype on request: `fusions float16`.
    if (o->only != NULL && strncmp(o->only, "fusions", 7) != 0) return;
    other.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES;
    gn_context *g = gn_open(&other);
    if (g == NULL) return;
    const size_t count = o->quick ? 2 : report->on_cpu ? 2 : 3;
    for (size_t d = 0; d < 4; d++)
        for (size_t k = 0; k < count; k++)
            GN_SCOPE(g) {
                const int64_t n = sizes[k];
                const gn_dtype t = dtypes[d];
                if (o->only != NULL && strlen(o->only) > 8 && strcmp(o->only + 8, gn_dtype_name(t)) != 0) continue;
                const gn_shape shape[FUSE_OPERANDS] = {GN_SHAPE(n, n), GN_SHAPE(n, n), GN_SHAPE(n, n),
                                                       GN_SHAPE(n),    GN_SHAPE(n, 1), GN_SHAPE(n, 16)};
                gn_array *in[FUSE_OPERANDS];
                bench_case c;
                char name[96];
                memset(&c, 0, sizeof c);
                for (int i = 0; i < FUSE_OPERANDS; i++) {
                    gn_array *x = gn_mul_s(gn_randn(g, GN_F32, shape[i]), i == FUSE_X || i == FUSE_W ? 0.1 : 1.0);
                    in[i] = gn_eval(gn_cast(x, t));
                }
                c.family = "fusions";
                c.m = c.n = n;
                c.run = run_fusion;
                memcpy(c.in, in, sizeof in);
                // All pipelines first, then work until the GPU's clock is up again.
                for (int i = 0; i < 4 * count_fusions; i++) {
                    c.k = i / 4;
                    c.turned = i % 2;
                    GN_SCOPE(g) { gn_eval(c.run(&c, in)); }
                }
                for (double start = now(); now() - start < 20.0 * o->batch_seconds; gn_sync(g))
                    GN_SCOPE(g) { gn_eval(fuse_chain(true, in)); }
                for (int i = 0; i < count_fusions; i++) {
                    snprintf(name, sizeof name, "%s %s %lld", gn_dtype_name(t), fusions[i].name, (long long)n);
                    c.name = name;
                    c.k = i;
                    time_fusion(g, &c, o, report);
                }
            }
    for (int d = 0; d < 3; d++) // layers, and these with gradients
        for (int k = 0; k < 2 * LAYERS; k++)
            GN_SCOPE(g) {
                const struct layer *l = &layers[k / 2];
                const gn_dtype t = dtypes[d];
                if (o->only != NULL && strlen(o->only) > 8 && strcmp(o->only + 8, gn_dtype_name(t)) != 0) continue;
                bench_case c;
                char name[96];
                memset(&c, 0, sizeof c);
                const gn_shape x = shape_from(l->x), w = l->w[0] > 0 ? shape_from(l->w) : x;
                c.in[0] = layer_operand(g, t, x);
                c.in[1] = layer_operand(g, t, w);
                c.in[2] = layer_operand(g, t, w.rank == 4 && l->w[0] > 0 ? GN_SHAPE(w.dim[0]) : w);
                snprintf(name, sizeof name, "%s %s%s", gn_dtype_name(t), l->name, k % 2 ? " gradients" : "");
                c.family = "fusions";
                c.name = name;
                c.run = run_layer;
                c.k = k / 2;
                c.m = k % 2;
                c.g = g;
                c.in[3] = c.in[0];
                gn_array *y = l->run(false, c.in);
                if (y == NULL) continue;
                c.in[3] = gn_detach(gn_eval(gn_cast(gn_randn(g, GN_F32, gn_shape_of(y)), t)));
                for (c.turned = 0; c.turned < 2; c.turned++) gn_eval(c.run(&c, c.in)); // pipelines
                time_fusion(g, &c, o, report);
            }
    gn_close(g);
}

static void find_fftw(fftw_library *w, int threads) {
#if defined(__unix__)
    void *lib = dlopen("libfftw3f_threads.so.3", RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) return;
    int (*start)(void);
    void (*limit)(double);
    *(void **)&start = dlsym(lib, "fftwf_init_threads");
    *(void **)&w->set_threads = dlsym(lib, "fftwf_plan_with_nthreads");
    *(void **)&limit = dlsym(lib, "fftwf_set_timelimit");
    *(void **)&w->r2c = dlsym(lib, "fftwf_plan_many_dft_r2c");
    *(void **)&w->c2r = dlsym(lib, "fftwf_plan_many_dft_c2r");
    *(void **)&w->execute = dlsym(lib, "fftwf_execute");
    *(void **)&w->destroy = dlsym(lib, "fftwf_destroy_plan");
    *(void **)&w->alloc = dlsym(lib, "fftwf_malloc");
    *(void **)&w->release = dlsym(lib, "fftwf_free");
    if (start == NULL || limit == NULL || w->set_threads == NULL || w->r2c == NULL || w->c2r == NULL ||
        w->execute == NULL || w->destroy == NULL || w->alloc == NULL || w->release == NULL || start() == 0)
        return;
    w->threads = threads;
    limit(20.0); // seconds of one plan
    *(void **)&w->c2c = dlsym(lib, "fftwf_plan_many_dft");
#else
    (void)w;
    (void)threads;
#endif
}

static sgemm_fn find_sgemm(int threads) {
#if defined(__unix__)
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) return NULL;
    void (*set)(int);
    sgemm_fn fn;
    // POSIX's way around the missing conversion from object to function pointers.
    *(void **)&set = dlsym(lib, "openblas_set_num_threads");
    *(void **)&fn = dlsym(lib, "cblas_sgemm");
    if (set != NULL) set(threads);
    return fn;
#else
    (void)threads;
    return NULL;
#endif
}

int main(int argc, char **argv) {
    gn_options options;
    bench_options o;
    memset(&options, 0, sizeof options);
    memset(&o, 0, sizeof o);
    o.batches = 21;
    o.batch_seconds = 0.02;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0) {
            o.quick = true;
            o.batches = 5;
            o.batch_seconds = 0.002;
            continue;
        }
        if (strcmp(argv[i], "--backend") == 0)
            options.backend = strcmp(value, "cpu") == 0      ? GN_BACKEND_CPU
                              : strcmp(value, "vulkan") == 0 ? GN_BACKEND_VULKAN
                                                             : GN_BACKEND_AUTO;
        else if (strcmp(argv[i], "--device") == 0) options.device = atoi(value);
        else if (strcmp(argv[i], "--threads") == 0) options.threads = atoi(value);
        else if (strcmp(argv[i], "--only") == 0) o.only = value;
        else if (strcmp(argv[i], "--json") == 0) o.json = value;
        else {
            fprintf(stderr, "usage: bench [--backend cpu|vulkan|auto] [--device N] [--threads N] [--only WORD] "
                            "[--quick] [--json FILE]\n");
            return 2;
        }
        i++;
    }
    options.placement = GN_PLACE_GPU; // all of it on the backend that is measured
    gn_context *g = gn_open(&options);
    if (g == NULL) {
        fprintf(stderr, "%s\n", gn_open_error());
        return 1;
    }
    gn_device_info info;
    gn_device_get(g, &info);
    printf("%s, %s; median of %d batches of about %g ms\n", info.name, info.driver[0] ? info.driver : "no driver",
           o.batches, o.batch_seconds * 1e3);
    bench_report report;
    memset(&report, 0, sizeof report);
    report.on_cpu = info.backend == GN_BACKEND_CPU;
    if (report.on_cpu) report.sgemm = find_sgemm(info.threads);
    if (report.on_cpu) find_fftw(&report.fftw, info.threads);
    if (o.json != NULL) report.json = fopen(o.json, "w");
    if (report.json != NULL) fprintf(report.json, "{\"device\": \"%s\", \"rows\": [", info.name);
    bench_all(g, &o, &report);
    if (!report.on_cpu && !o.quick) {
        bench_precision(&options, GN_PRECISION_HIGH, "high ", " high", &o, &report);
        bench_precision(&options, GN_PRECISION_FAST, "fast ", " fast", &o, &report);
    }
    bench_mlp(&options, &o, &report);
    bench_fusions(&options, &o, &report);
    if (report.lost > 0) printf("%d fusions are slower than their parts\n", report.lost);
    if (report.json != NULL) {
        fprintf(report.json, "\n]}\n");
        fclose(report.json);
    }
    gn_close(g);
    return report.lost > 0;
}
