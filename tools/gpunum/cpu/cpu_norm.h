// >>cpu_norm
// Normalisation on the CPU, a row at a time while the caches have it. From outside: gni_norm_job, gni_cpu_norm.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#endif

// Of x, gy and y a row is n elements in pieces of `piece` neighbours, `apart` from each other; row r begins at r * step.
// Weights are those of a row's places (n), or `by_row` of rows. What is not there is NULL.
typedef struct gni_norm_job {
    int64_t rows, step, n, piece, apart;
    bool by_row, centred;
    double eps;
    const float *x, *gy, *w, *b;
    float *y;                  // the result; with gy what comes to x
    float *mean, *scale, *var; // (rows), written; with gy read
    float *gw, *gb;            // with gy and by_row: what comes to the weights
    const gni_cpu_isa *isa;
} gni_norm_job;

static void gni_norm_forward_row(const gni_norm_job *j, int64_t r) {
    const float *x = j->x + r * j->step;
    const int64_t end = j->n / j->piece * j->apart;
    const double n = (double)j->n;
    double s[2] = {0.0, 0.0};
    gni_acc acc = {0, 0, 0, 0};
    for (int64_t at = 0; at < end && j->centred; at += j->apart)
        j->isa->fold[(int)GNI_RED_SUM * 3 + (int)GNI_F](&acc, x + at, j->piece, 0);
    const float mean = (float)((acc.d + acc.e) / n);
    for (int64_t at = 0; at < end; at += j->apart) j->isa->norm_sums(s, x + at, NULL, NULL, j->piece, mean);
    const double off = j->centred ? s[0] / n : 0.0; // what rounding took from the mean
    double var = s[1] / n - off * off;
    if (var < 0.0) var = 0.0;
    const double scale = 1.0 / sqrt(var + j->eps);
    float c[5] = {mean, (float)scale, 0.0f, 0.0f, 0.0f};
    if (j->by_row && j->w != NULL) c[1] = (float)(scale * (double)j->w[r]);
    if (j->by_row && j->b != NULL) c[2] = j->b[r];
    for (int64_t at = 0; at < end; at += j->apart)
        j->isa->norm_write(j->y + r * j->step + at, x + at, NULL, j->by_row ? NULL : j->w, j->by_row ? NULL : j->b, j->piece,
                           c);
    if (j->mean != NULL) j->mean[r] = mean;
    j->scale[r] = (float)scale;
    j->var[r] = (float)var;
}

// With z = (x - mean) scale and h = gy w: scale (h - mean(h) - z mean(h z)).
static void gni_norm_back_row(const gni_norm_job *j, int64_t r) {
    const float *x = j->x + r * j->step, *gy = j->gy + r * j->step, *w = j->by_row ? NULL : j->w;
    const int64_t end = j->n / j->piece * j->apart;
    const float mean = j->mean != NULL ? j->mean[r] : 0.0f;
    const double n = (double)j->n, scale = (double)j->scale[r],
                 factor = j->by_row && j->w != NULL ? scale * (double)j->w[r] : scale;
    double s[2] = {0.0, 0.0};
    for (int64_t at = 0; at < end; at += j->apart) j->isa->norm_sums(s, x + at, gy + at, w, j->piece, mean);
    // Of z, whose factor is 1 / std: that of x - mean would be its square, which may be no float.
    const float c[5] = {mean, (float)scale, j->centred ? (float)(-factor * s[0] / n) : 0.0f, (float)factor,
                        (float)(-factor * scale * s[1] / n)};
    for (int64_t at = 0; at < end; at += j->apart)
        j->isa->norm_write(j->y + r * j->step + at, x + at, gy + at, w, NULL, j->piece, c);
    if (j->gb != NULL) j->gb[r] = (float)s[0];
    if (j->gw != NULL) j->gw[r] = (float)(s[1] * scale);
}

static void gni_norm_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_norm_job *j = (const gni_norm_job *)arg;
    GNI_UNUSED(worker);
    for (int64_t r = begin; r < end; r++) {
        if (j->gy != NULL)
            gni_norm_back_row(j, r);
        else
            gni_norm_forward_row(j, r);
    }
}

static void gni_cpu_norm(gn_context *g, gni_norm_job *j) {
    j->isa = gni_cpu_isa_of(g->isa);
    gni_parallel(g->pool, j->rows, 1 + GNI_GRAIN / 4 / j->n, gni_norm_task, j);
}
