// >>schedules
// Learning rates as functions of the step's number. Nothing here is used elsewhere.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

GPUNUM_API double gn_lr_step(int64_t step, double lr, int64_t every, double gamma) {
    return every > 0 && step >= 0 ? lr * pow(gamma, (double)(step / every)) : GNI_NAN;
}

GPUNUM_API double gn_lr_multi_step(int64_t step, double lr, const int64_t *milestones, int count, double gamma) {
    int passed = 0;
    if (step < 0) return GNI_NAN;
    for (int i = 0; i < count && milestones != NULL; i++) passed += milestones[i] <= step;
    return lr * pow(gamma, (double)passed);
}

GPUNUM_API double gn_lr_exponential(int64_t step, double lr, double gamma) {
    return step >= 0 ? lr * pow(gamma, (double)step) : GNI_NAN;
}

// From `from` to `to` along half a wave.
static double gni_cosine_way(double from, double to, double part) {
    return to + (from - to) * 0.5 * (1.0 + cos(3.14159265358979323846 * part));
}

GPUNUM_API double gn_lr_cosine(int64_t step, double lr, int64_t steps, double least) {
    return steps > 0 && step >= 0 ? gni_cosine_way(lr, least, (double)step / (double)steps) : GNI_NAN;
}

GPUNUM_API double gn_lr_cosine_restarts(int64_t step, double lr, int64_t steps, int64_t factor, double least) {
    if (steps <= 0 || factor < 1 || step < 0) return GNI_NAN;
    if (factor == 1) step %= steps;
    while (step >= steps) {
        step -= steps;
        steps = steps > INT64_MAX / factor ? INT64_MAX : steps * factor;
    }
    return gn_lr_cosine(step, lr, steps, least);
}

GPUNUM_API double gn_lr_linear(int64_t step, double lr, double first, double last, int64_t steps) {
    if (steps <= 0 || step < 0) return GNI_NAN;
    const double part = (double)(step < steps ? step : steps) / (double)steps;
    return lr * (first + (last - first) * part);
}

GPUNUM_API double gn_lr_one_cycle(int64_t step, double most, int64_t steps) {
    const double peak = 0.3 * (double)steps - 1.0, end = (double)steps - 1.0, at = (double)(step < steps ? step : steps - 1);
    if (steps <= 0 || step < 0) return GNI_NAN;
    return at <= peak ? gni_cosine_way(most / 25.0, most, at / peak)
                      : gni_cosine_way(most, most / 25e4, (at - peak) / (end - peak));
}

GPUNUM_API double gn_lr_plateau(gn_plateau *p, double metric) {
    if (p == NULL) return GNI_NAN;
    const double threshold = p->threshold > 0.0 ? p->threshold : 1e-4, factor = p->factor > 0.0 ? p->factor : 0.1;
    const double bar = p->best * (p->rises ? 1.0 + threshold : 1.0 - threshold);
    if (p->begun ? (p->rises ? metric > bar : metric < bar) : metric == metric) { // NaN is never the best
        p->best = metric;
        p->bad = 0;
        p->begun = true;
    } else {
        p->bad++;
    }
    if (p->resting > 0) {
        p->resting--;
        p->bad = 0;
    }
    if (p->bad > (p->patience > 0 ? p->patience : 10)) {
        const double lower = p->lr * factor > p->least ? p->lr * factor : p->least;
        if (p->lr - lower > 1e-8) p->lr = lower;
        p->resting = p->cooldown;
        p->bad = 0;
    }
    return p->lr;
}
