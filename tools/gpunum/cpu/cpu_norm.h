// >>cpu_norm
// Normalisation on the CPU, a row at a time while the caches have it. From outside: gni_norm_job, gni_cpu_norm.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#endif

// Of x, gy and y a row is n elements in pieces of `piece` neighbours, `apart` from each other; row r begins at r * step.
// Weights are those of a row's places (n), or `by_row` of rows, or `by_piece` of pieces: of `period` rows, then again. What
// is not there is NULL.
enum { GNI_NORM_BLOCK = 32 };
typedef struct gni_norm_job {
    int64_t rows, step, n, piece, apart;
    bool by_row, by_piece, centred;
    int64_t period;
    double eps;
    const float *x, *gy, *w, *b;
    float *y;                  // the result; with gy what comes to x
    float *mean, *scale, *var; // (rows), written; with gy read
    float *gw, *gb;            // with gy: what comes to weights, by_row, (rows, pieces) by_piece, else (blocks of rows, n)
    const gni_cpu_isa *isa;
} gni_norm_job;

// The weight of the piece that begins at `at`, by_piece.
static int64_t gni_norm_weight_at(const gni_norm_job *j, int64_t r, int64_t at) {
    return j->by_piece ? r % j->period * (j->n / j->piece) + at / j->apart : 0;
}

static void gni_norm_forward_row(const gni_norm_job *j, int64_t r) {
    const float *x = j->x + r * j->step;
    const int64_t end = j->n / j->piece * j->apart, line = j->by_piece ? j->n : j->piece,
                  next = j->by_piece ? j->n : j->apart; // pieces that follow each other are summed as one
    const double n = (double)j->n;
    double s[2] = {0.0, 0.0};
    gni_acc acc = {0, 0, 0, 0};
    for (int64_t at = 0; at < end && j->centred; at += next)
        j->isa->fold[(int)GNI_RED_SUM * 3 + (int)GNI_F](&acc, x + at, line, 0);
    const float mean = (float)((acc.d + acc.e) / n);
    for (int64_t at = 0; at < end; at += next) j->isa->norm_sums(s, x + at, NULL, NULL, line, mean);
    const double off = j->centred ? s[0] / n : 0.0; // what rounding took from the mean
    double var = s[1] / n - off * off;
    if (var < 0.0) var = 0.0;
    const double scale = 1.0 / sqrt(var + j->eps);
    float c[5] = {mean, (float)scale, 0.0f, 0.0f, 0.0f};
    const bool by_place = !j->by_row && !j->by_piece;
    for (int64_t at = 0; at < end; at += j->apart) {
        const int64_t i = j->by_row ? r : gni_norm_weight_at(j, r, at);
        if (!by_place && j->w != NULL) c[1] = (float)(scale * (double)j->w[i]);
        if (!by_place && j->b != NULL) c[2] = j->b[i];
        j->isa->norm_write(j->y + r * j->step + at, x + at, NULL, by_place ? j->w : NULL, by_place ? j->b : NULL, j->piece,
                           c);
    }
    if (j->mean != NULL) j->mean[r] = mean;
    j->scale[r] = (float)scale;
    j->var[r] = (float)var;
}

// With z = (x - mean) scale and h = gy w: scale (h - mean(h) - z mean(h z)).
static void gni_norm_back_row(const gni_norm_job *j, int64_t r) {
    const float *x = j->x + r * j->step, *gy = j->gy + r * j->step, *w = j->by_row || j->by_piece ? NULL : j->w;
    const int64_t end = j->n / j->piece * j->apart;
    const float mean = j->mean != NULL ? j->mean[r] : 0.0f;
    const double n = (double)j->n, scale = (double)j->scale[r],
                 factor = j->by_row && j->w != NULL ? scale * (double)j->w[r] : scale;
    double s[2] = {0.0, 0.0};
    for (int64_t at = 0; at < end; at += j->apart) {
        double part[2] = {0.0, 0.0};
        j->isa->norm_sums(j->by_piece ? part : s, x + at, gy + at, w, j->piece, mean);
        if (!j->by_piece) continue;
        const double weight = j->w != NULL ? (double)j->w[gni_norm_weight_at(j, r, at)] : 1.0;
        const int64_t i = r * (j->n / j->piece) + at / j->apart;
        s[0] += weight * part[0];
        s[1] += weight * part[1];
        if (j->gb != NULL) j->gb[i] = (float)part[0];
        if (j->gw != NULL) j->gw[i] = (float)(part[1] * scale);
    }
    // Of z, whose factor is 1 / std: that of x - mean would be its square, which may be no float.
    float c[5] = {mean, (float)scale, j->centred ? (float)(-factor * s[0] / n) : 0.0f, (float)factor,
                  (float)(-factor * scale * s[1] / n)};
    for (int64_t at = 0; at < end; at += j->apart) {
        if (j->by_piece && j->w != NULL) c[3] = (float)(scale * (double)j->w[gni_norm_weight_at(j, r, at)]);
        j->isa->norm_write(j->y + r * j->step + at, x + at, gy + at, w, NULL, j->piece, c);
    }
    if (j->by_piece) return;
    if (!j->by_row && (j->gw != NULL || j->gb != NULL)) {
        const int64_t at = r / GNI_NORM_BLOCK * j->n, bytes = j->n * (int64_t)sizeof(float);
        float *gw = j->gw != NULL ? j->gw + at : NULL, *gb = j->gb != NULL ? j->gb + at : NULL;
        if (r % GNI_NORM_BLOCK == 0 && gw != NULL) memset(gw, 0, (size_t)bytes);
        if (r % GNI_NORM_BLOCK == 0 && gb != NULL) memset(gb, 0, (size_t)bytes);
        j->isa->norm_add(gw, gb, x, gy, j->n, mean, (float)scale);
        return;
    }
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
    const int64_t grain = 1 + GNI_GRAIN / 4 / j->n;
    const int64_t blocks = (grain + GNI_NORM_BLOCK - 1) / GNI_NORM_BLOCK * GNI_NORM_BLOCK;
    gni_parallel(g->pool, j->rows, j->by_row || j->by_piece ? grain : blocks, gni_norm_task, j);
}
