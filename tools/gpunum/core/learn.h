// >>learn
// Placement that learns: the rounds of a loop are timed, some of them on the GPU, and the loop stays where it was faster. A
// round is what a thread calls between two ends of scopes; rounds with the same calls are one loop. From outside:
// gni_learn_scope, gni_learn_side.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/log.h"
#endif

// A loop is on trial when it has taken that long, so that short programs do not wait for pipelines; a window is so many
// rounds.
enum { GNI_LEARN_WINDOW = 8, GNI_LEARN_CALLS = 4 };
#define GNI_LEARN_AFTER ((uint64_t)20000000) // ns

static bool gni_learn_settled(const gni_loop *p) { return p->state == GNI_LOOP_CPU || p->state == GNI_LOOP_GPU; }

// The window of `count` rounds that took `ns` is over. What the loop does next.
static void gni_learn_window(gni_loop *p, uint64_t ns, int count, bool by_rule) {
    const uint64_t each = ns / (uint64_t)count;
    const int side = p->state == GNI_LOOP_TRIED;
    if (p->state == GNI_LOOP_WATCHED && by_rule) { // work that has its place on the GPU already, or none that could go there
        p->windows = 0;
        p->spent = 0;
        return;
    }
    p->spent += ns;
    p->windows++;
    if (p->state == GNI_LOOP_WARMED) {
        p->state = GNI_LOOP_TRIED;
        p->windows = 0;
        return;
    }
    p->best[side] = p->windows == 1 ? each : GNI_MIN(p->best[side], each);
    if (p->windows < 2 || (side == 0 && p->spent < GNI_LEARN_AFTER)) return;
    p->windows = 0;
    if (side == 0) p->state = GNI_LOOP_WARMED;
    else p->state = p->best[1] < p->best[0] / 10 * 9 ? GNI_LOOP_GPU : GNI_LOOP_CPU;
}

// The loop with that round, which takes the place of the one that was met longest ago if it is new.
static gni_loop *gni_learn_find(gni_learn *l, uint64_t calls) {
    gni_loop *oldest = &l->loops[0];
    for (int i = 0; i < GNI_LOOPS; i++) {
        gni_loop *p = &l->loops[i];
        if (p->calls == calls) return p;
        if (p->met < oldest->met) oldest = p;
    }
    memset(oldest, 0, sizeof *oldest);
    oldest->calls = calls;
    return oldest;
}

// At the end of a scope that the caller opened.
static void gni_learn_scope(gn_context *g) {
    gni_learn *l = &g->learn;
    const uint64_t calls = l->calls;
    const int count = l->count;
    l->calls = 0;
    l->count = 0;
    // A GPU made of CPU threads is no other machine. Where programs are texts, waiting may not be possible.
    if (count < GNI_LEARN_CALLS || g->gpu == NULL || g->gpu->lost || g->placement != GN_PLACE_AUTO || g->host_recording ||
        g->gpu->caps.kind == GNI_GPU_CPU || GNI_TEXTS(g->gpu))
        return;
    gni_loop *p = gni_learn_find(l, calls);
    const bool again = p == l->current;
    gni_loop *was = l->current;
    // A trial that other rounds interrupt again and again is given up.
    if (!again && was != NULL && (was->state == GNI_LOOP_WARMED || was->state == GNI_LOOP_TRIED) && ++was->broken > 8)
        was->state = GNI_LOOP_CPU;
    const gni_loop_state state = p->state;
    p->met = ++l->rounds;
    l->current = p;
    l->limit = 4 * count;
    if (again && gni_learn_settled(p)) return;
    if (again && ++l->in_window < GNI_LEARN_WINDOW) return;
    if (state == GNI_LOOP_WARMED || state == GNI_LOOP_TRIED) g->gpu->layer->wait(g->gpu);
    const uint64_t now = gni_now_ns();
    if (again) gni_learn_window(p, now - l->begun, l->in_window, l->by_rule > 0 || l->little < l->in_window);
    l->begun = now;
    l->in_window = l->by_rule = l->little = 0;
    if (again && gni_learn_settled(p))
        gni_log(g, GN_LOG_INFO, "a loop of %d calls takes %.3g us on the CPU and %.3g us on the GPU: it stays on the %s",
                count, (double)p->best[0] * 1e-3, (double)p->best[1] * 1e-3, p->state == GNI_LOOP_GPU ? "GPU" : "CPU");
}

// Where the loop under way has its small work, 0: where the rules say.
static uint32_t gni_learn_side(const gn_context *g) {
    const gni_learn *l = &g->learn;
    const gni_loop_state state = l->current != NULL && l->count <= l->limit ? l->current->state : GNI_LOOP_WATCHED;
    return state == GNI_LOOP_WATCHED ? 0 : state == GNI_LOOP_CPU ? GNI_ON_CPU : GNI_ON_GPU;
}
