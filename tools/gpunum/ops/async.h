// >>async
// gn_read_async: reads that do not wait. Callbacks run inside later calls on the context.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/access.h"
#include "../gpu/gpu_places.h"
#endif

static void gni_read_finish(gn_context *g, gni_read *r, bool ok) {
    gn_status status = ok ? GN_OK : g->status != GN_OK ? g->status : GN_ERROR_DEVICE_LOST;
    gni_unref(g, r->array);
    bool failed = g->call_failed; // of the call that delivers, not of those that `done` makes
    const gni_away away = gni_away_begin(g);
    g->call_failed = false;
    r->done(r->user, status);
    gni_away_end(g, away);
    g->call_failed = failed;
    gni_free(g, r);
}

// Whether a read's data and flags are there. False after an error, too.
static bool gni_read_ready(gn_context *g, gni_read *r, bool wait) {
    if (!r->on_gpu) return true;
    if (g->gpu == NULL || !g->gpu->layer->ticket_ready(g->gpu, &r->ticket, wait)) return false;
    return wait || !r->watched || g->gpu->layer->ticket_ready(g->gpu, &r->faults, false);
}

// Calls back for reads that are there, in order; with `wait` for all of them.
static void gni_deliver_reads(gn_context *g, bool wait) {
    if (g->delivering) return; // a callback called us
    g->delivering = true;
    while (g->reads != NULL) {
        gni_read *r = g->reads;
        if (!gni_read_ready(g, r, wait)) {
            if (!wait && g->gpu != NULL && !g->gpu->lost) break;
            g->reads = r->next;
            if (g->gpu != NULL) g->gpu->layer->ticket_release(g->gpu, &r->ticket);
            if (r->watched) gni_faults_end(g, &r->faults);
            gni_read_finish(g, r, false);
            continue;
        }
        g->reads = r->next;
        if (r->on_gpu) {
            memcpy(r->dst, r->ticket.data, r->bytes);
            g->gpu->layer->ticket_release(g->gpu, &r->ticket);
        }
        gni_read_finish(g, r, !r->watched || gni_faults_end(g, &r->faults));
    }
    g->delivering = false;
}

GPUNUM_API int gn_poll(gn_context *g) {
    int left = 0;
    if (!gni_begin_context("gn_poll", g)) return 0;
    gni_deliver_reads(g, false);
    for (const gni_read *r = g->reads; r != NULL; r = r->next) left++;
    gni_end_plain(g);
    return left;
}

GPUNUM_API void gn_read_async(gn_array *a, void *dst, size_t bytes, gn_done_fn done, void *user) {
    gn_context *g = gni_begin("gn_read_async", &a, 1);
    if (g == NULL || done == NULL) {
        if (g != NULL) {
            gni_fail(g, GN_ERROR_ARGUMENT, "gn_read_async: done is NULL");
            gni_end_plain(g);
        }
        if (done != NULL) done(user, gni_null_status(a));
        return;
    }
    gni_read *r = NULL;
    gn_array *c = NULL;
    if (gni_bytes_fit(g, "gn_read_async", a, dst, bytes)) c = gni_contiguous(g, a);
    if (c != NULL) r = (gni_read *)gni_calloc(g, sizeof(gni_read));
    if (c != NULL && r == NULL) gni_fail_memory(g, "gn_read_async", sizeof(gni_read));
    if (r != NULL && c->buf->where == GNI_ON_GPU && bytes > 0) {
        uint64_t at = (uint64_t)c->offset * gn_dtype_size(c->dtype);
        r->on_gpu = gni_gpu_reached(g) &&
                    g->gpu->layer->download_begin(g->gpu, &c->buf->device, at, bytes, &r->ticket);
        if (!r->on_gpu) {
            gni_fail(g, GN_ERROR_DEVICE_LOST,
                     "gn_read_async: copying from the GPU could not start");
            gni_free(g, r);
            r = NULL;
        } else {
            r->watched = gni_faults_begin(g, &r->faults);
        }
    } else if (r != NULL && !gni_copy_out(g, c, dst, bytes)) { // now: later it may have been written to
        gni_free(g, r);
        r = NULL;
    }
    if (r == NULL) {
        gn_status status = g->status;
        gni_unref(g, c);
        gni_end_plain(g);
        done(user, status);
        return;
    }
    r->array = c;
    r->dst = dst;
    r->bytes = bytes;
    r->done = done;
    r->user = user;
    gni_read **end = &g->reads;
    while (*end != NULL) end = &(*end)->next;
    *end = r;
    if (r->on_gpu) g->gpu->layer->flush(g->gpu);
    gni_end_plain(g);
}
