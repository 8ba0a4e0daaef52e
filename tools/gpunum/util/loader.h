// >>loader
// Samples dealt out in batches. A thread fills slots in turn, gn_loader_next makes arrays of them: the thread knows the
// loader and nothing of the context, so that it never waits for a call, and no call for it while the context is locked.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_random.h"
#include "../ops/arrange.h"
#include "../util/stream.h"
#endif

typedef enum gni_slot_state { GNI_SLOT_EMPTY, GNI_SLOT_MADE, GNI_SLOT_TAKEN } gni_slot_state;

// One batch.
typedef struct gni_loader_slot {
    gni_slot_state state;
    int64_t count; // samples, or -1: `wrong` says why not
    int64_t epoch, batch;
    char wrong[256];
    void **data; // of each field
} gni_loader_slot;

typedef struct gni_loader_from {
    const unsigned char *data; // NULL: `fill` writes it
    void *copy;                // of an array, or NULL
    gn_dtype t;
    gn_shape s;                // of a batch, whose size is axis 0
    size_t bytes;              // of a sample
} gni_loader_from;

struct gn_loader {
    gni_handle handle;
    gn_loader *next;
    gn_loader_options options;
    gni_loader_from *field;
    int fields, slots, forks;
    int64_t samples, batches;
    int64_t *order, shuffled; // the epoch that `order` is for; whoever makes batches has these
    gni_loader_slot *slot;
    gni_mutex lock;           // of what follows, and the slots' states
    int64_t epoch, batch;     // the next to be handed out, from slot `take`
    int64_t make_epoch, make_batch; // the next to be made, in slot `make`
    int take, make;
    uint32_t seeks;
    bool locks, threaded, stop;
    gn_loader *outer; // during `fill`: whose fill it was called from
#ifndef GPUNUM_NO_THREADS
    gni_cond made, emptied;
    gni_thread thread;
#endif
};

// The order of an epoch (Fisher and Yates). Philox blocks of the seed with the epoch in the third word, and its upper half in
// the fourth above what says that the stream is the loader's.
static void gni_loader_shuffle(gn_loader *l, int64_t epoch) {
    const uint64_t e = (uint64_t)epoch, stream = (e >> 32 << GNI_STREAM_BITS | GNI_STREAM_LOADER) << 32 | (e & 0xffffffffu);
    uint64_t counter = 0, word[2];
    for (int64_t i = 0; i < l->samples; i++) l->order[i] = i;
    for (int64_t i = l->samples - 1; i > 0; i--) {
        const uint64_t choices = (uint64_t)i + 1, even = UINT64_MAX - UINT64_MAX % choices;
        uint64_t r;
        do { // until all choices are as likely
            gni_philox(counter++, stream, l->options.seed, word);
            r = word[0] << 32 | word[0] >> 32;
        } while (r >= even);
        const int64_t k = (int64_t)(r % choices), kept = l->order[i];
        l->order[i] = l->order[k];
        l->order[k] = kept;
    }
    l->shuffled = epoch;
}

// The loader whose `fill` this thread is in.
static GNI_THREAD_LOCAL gn_loader *gni_loader_filling;

// Fills a slot that is nobody else's.
static void gni_loader_make(gn_loader *l, gni_loader_slot *slot, int64_t epoch, int64_t batch) {
    if (l->options.shuffle && l->shuffled != epoch) gni_loader_shuffle(l, epoch);
    const int64_t first = batch * l->options.batch, *index = l->order + first;
    slot->count = GNI_MIN(l->options.batch, l->samples - first);
    slot->epoch = epoch;
    slot->batch = batch;
    for (int i = 0; i < l->fields; i++) {
        const gni_loader_from *f = &l->field[i];
        for (int64_t k = 0; k < slot->count && f->data != NULL; k++)
            memcpy((unsigned char *)slot->data[i] + (size_t)k * f->bytes, f->data + (size_t)index[k] * f->bytes, f->bytes);
    }
    if (l->options.fill == NULL) return;
    l->outer = gni_loader_filling;
    gni_loader_filling = l;
    const char *wrong = l->options.fill(l->options.user, index, slot->count, slot->data);
    gni_loader_filling = l->outer;
    if (wrong == NULL) return;
    slot->count = -1;
    snprintf(slot->wrong, sizeof slot->wrong, "%s", wrong);
}

#ifndef GPUNUM_NO_THREADS
static void gni_loader_main(void *arg) {
    gn_loader *l = (gn_loader *)arg;
    gni_mutex_lock(&l->lock);
    while (!l->stop) {
        gni_loader_slot *slot = &l->slot[l->make];
        if (slot->state != GNI_SLOT_EMPTY) {
            gni_cond_wait(&l->emptied, &l->lock);
            continue;
        }
        const uint32_t seeks = l->seeks;
        const int64_t epoch = l->make_epoch, batch = l->make_batch;
        gni_mutex_unlock(&l->lock);
        gni_loader_make(l, slot, epoch, batch);
        gni_mutex_lock(&l->lock);
        if (seeks != l->seeks) continue; // nobody wants it any more
        slot->state = GNI_SLOT_MADE;
        l->make = (l->make + 1) % l->slots;
        if (++l->make_batch == l->batches) {
            l->make_batch = 0;
            l->make_epoch++;
        }
        gni_cond_broadcast(&l->made);
    }
    gni_mutex_unlock(&l->lock);
}
#endif

// The next batch's slot, taken; NULL: the epoch has ended.
static gni_loader_slot *gni_loader_take(gn_loader *l) {
    gni_loader_slot *slot = NULL;
    gni_mutex_lock(&l->lock);
#ifndef GPUNUM_NO_THREADS
    // Several threads may wait for one slot.
    while (l->batch < l->batches && l->slot[l->take].state != (l->threaded ? GNI_SLOT_MADE : GNI_SLOT_EMPTY))
        gni_cond_wait(&l->made, &l->lock);
#endif
    if (l->batch >= l->batches) {
        l->batch = 0;
        l->epoch++;
    } else {
        slot = &l->slot[l->take];
        if (!l->threaded) gni_loader_make(l, slot, l->epoch, l->batch);
        slot->state = GNI_SLOT_TAKEN;
        l->take = (l->take + 1) % l->slots;
        l->batch++;
    }
    gni_mutex_unlock(&l->lock);
    return slot;
}

static void gni_loader_give_back(gn_loader *l, gni_loader_slot *slot) {
    gni_mutex_lock(&l->lock);
    slot->state = GNI_SLOT_EMPTY;
#ifndef GPUNUM_NO_THREADS
    gni_cond_broadcast(&l->emptied);
    gni_cond_broadcast(&l->made);
#endif
    gni_mutex_unlock(&l->lock);
}

// Memory and thread; whatever of them there is.
static void gni_loader_release(gn_loader *l) {
    gn_context *g = l->handle.ctx;
    gn_loader **at = &g->loaders;
    while (*at != NULL && *at != l) at = &(*at)->next;
    if (*at == l) *at = l->next;
    for (int i = 0; i < l->slots && l->slot != NULL; i++) {
        for (int k = 0; k < l->fields && l->slot[i].data != NULL; k++) gni_free(g, l->slot[i].data[k]);
        gni_free(g, l->slot[i].data);
    }
    for (int i = 0; i < l->fields && l->field != NULL; i++) gni_free(g, l->field[i].copy);
    gni_free(g, l->slot);
    gni_free(g, l->field);
    gni_free(g, l->order);
    if (l->locks && l->forks == gni_forks) {
#ifndef GPUNUM_NO_THREADS
        gni_cond_free(&l->emptied);
        gni_cond_free(&l->made);
#endif
        gni_mutex_free(&l->lock);
    }
    l->handle.magic = 0;
    gni_free(g, l);
}

static void *gni_loader_room(gn_context *g, uint64_t bytes) {
    void *p = bytes <= SIZE_MAX / 2 ? gni_calloc(g, (size_t)GNI_MAX(bytes, 1)) : NULL;
    if (p == NULL) gni_fail_memory(g, g->call, bytes);
    return p;
}

// Field i as it is read. False after gni_fail.
static bool gni_loader_field(gn_loader *l, int i, const gn_loader_field *from) {
    gn_context *g = l->handle.ctx;
    gni_loader_from *f = &l->field[i];
    gn_array *a = from->array;
    gn_shape s = from->s;
    char text[200];
    if (a != NULL && (a->shape.rank == 0 || a->shape.dim[0] != l->samples))
        return gni_fail(g, GN_ERROR_SHAPE, "%s: the array of field %d is %s, not of %lld samples", g->call, i,
                        gni_shape_text(text, sizeof text, &a->shape), (long long)l->samples);
    if (a != NULL) {
        s.rank = a->shape.rank - 1;
        memcpy(s.dim, a->shape.dim + 1, sizeof(int64_t) * (size_t)s.rank);
    }
    f->t = a != NULL ? a->dtype : from->t;
    if (!gni_shape_ok(g, g->call, f->t, &s)) return false;
    if (s.rank == GN_MAX_RANK)
        return gni_fail(g, GN_ERROR_SHAPE, "%s: samples of rank %d leave no axis for the batch", g->call, s.rank);
    f->s.rank = s.rank + 1;
    f->s.dim[0] = l->options.batch;
    memcpy(f->s.dim + 1, s.dim, sizeof(int64_t) * (size_t)s.rank);
    if (!gni_shape_ok(g, g->call, f->t, &f->s)) return false;
    f->bytes = (size_t)gni_elements(&s) * gn_dtype_size(f->t);
    f->data = (const unsigned char *)from->data;
    if (a == NULL) {
        if (f->data == NULL && l->options.fill == NULL)
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: field %d has no samples, and there is no fill", g->call, i);
        return f->data != NULL || l->options.fill != NULL;
    }
    const void *data;
    gn_array *c = gni_file_data(g, a, &data);
    if (c == NULL) return false;
    f->copy = gni_loader_room(g, gn_bytes(c));
    if (f->copy != NULL) memcpy(f->copy, data, gn_bytes(c));
    f->data = (const unsigned char *)f->copy;
    gni_unref(g, c);
    return f->copy != NULL;
}

// All that a loader has but for its thread. False after gni_fail.
static bool gni_loader_set_up(gn_loader *l, const gn_loader_field *fields) {
    gn_context *g = l->handle.ctx;
    l->field = (gni_loader_from *)gni_loader_room(g, sizeof(gni_loader_from) * (uint64_t)l->fields);
    l->slot = (gni_loader_slot *)gni_loader_room(g, sizeof(gni_loader_slot) * (uint64_t)l->slots);
    l->order =
        l->field != NULL && l->slot != NULL ? (int64_t *)gni_loader_room(g, sizeof(int64_t) * (uint64_t)l->samples) : NULL;
    if (l->order == NULL) return false;
    for (int64_t i = 0; i < l->samples; i++) l->order[i] = i;
    for (int i = 0; i < l->fields; i++)
        if (!gni_loader_field(l, i, &fields[i])) return false;
    for (int k = 0; k < l->slots; k++) {
        l->slot[k].data = (void **)gni_loader_room(g, sizeof(void *) * (uint64_t)l->fields);
        for (int i = 0; i < l->fields; i++) {
            if (l->slot[k].data != NULL)
                l->slot[k].data[i] = gni_loader_room(g, (uint64_t)l->options.batch * l->field[i].bytes);
            if (g->call_failed) return false;
        }
    }
    l->locks = gni_mutex_init(&l->lock);
#ifndef GPUNUM_NO_THREADS
    if (l->locks && !gni_cond_init(&l->made)) {
        gni_mutex_free(&l->lock);
        l->locks = false;
    } else if (l->locks && !gni_cond_init(&l->emptied)) {
        gni_cond_free(&l->made);
        gni_mutex_free(&l->lock);
        l->locks = false;
    }
#endif
    if (!l->locks) gni_fail_memory(g, g->call, sizeof(gni_mutex));
    return l->locks;
}

GPUNUM_API gn_loader *gn_loader_new(gn_context *g, const gn_loader_field *fields, int count, int64_t samples,
                                    const gn_loader_options *options) {
    if (!gni_begin_context("gn_loader_new", g)) return NULL;
    GNI_OPTIONS(gn_loader_options, o, options);
    if (o.batch == 0) o.batch = 1;
    if (fields == NULL || count < 1 || samples < 0 || samples > INT64_MAX / 16 || o.batch < 0)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_loader_new: %d fields, %lld samples in batches of %lld",
                 fields != NULL ? count : 0, (long long)samples, (long long)o.batch);
    for (int i = 0; i < count && !g->call_failed; i++) {
        const gn_array *a = fields[i].array;
        if (a != NULL && (gni_home_of(a, GNI_IS_ARRAY) != g || a->user_refs <= 0))
            gni_fail(g, GN_ERROR_STALE, "gn_loader_new: the array of field %d was released or is another context's", i);
    }
    gn_loader *l = g->call_failed ? NULL : (gn_loader *)gni_loader_room(g, sizeof(gn_loader));
    if (l == NULL) {
        gni_end_plain(g);
        return NULL;
    }
    l->batches = o.drop_last ? samples / o.batch : samples / o.batch + (samples % o.batch != 0);
    o.batch = GNI_MAX(GNI_MIN(o.batch, samples), 1);
    gni_handle_init(g, l, GNI_IS_LOADER);
    l->options = o;
    l->fields = count;
    l->samples = samples;
    l->shuffled = -1;
    l->forks = gni_forks;
    l->slots = (int)GNI_MIN(o.prefetch == 0 ? 2 : GNI_MAX(o.prefetch, 1), l->batches + 1);
    bool ok = gni_loader_set_up(l, fields);
#ifndef GPUNUM_NO_THREADS
    if (ok && o.prefetch >= 0 && l->batches > 0) ok = l->threaded = gni_thread_start(&l->thread, gni_loader_main, l);
    if (!ok && !g->call_failed) gni_fail(g, GN_ERROR_OUT_OF_MEMORY, "gn_loader_new: the system starts no thread");
#endif
    if (ok) {
        l->next = g->loaders;
        g->loaders = l;
    } else {
        gni_loader_release(l);
        l = NULL;
    }
    gni_end_plain(g);
    return l;
}

// A thread does not come through a fork, and `fill` would wait for itself.
static bool gni_loader_ready(gn_loader *l, const char *fn, bool living) {
    if (!gni_is_a(fn, l, GNI_IS_LOADER)) return false;
    const gn_loader *at = gni_loader_filling;
    while (at != NULL && at != l) at = at->outer;
    if (at == NULL && (!living || l->forks == gni_forks)) return true;
    if (gni_begin_context(fn, l->handle.ctx)) {
        gni_fail(l->handle.ctx, GN_ERROR_UNSUPPORTED, "%s: the loader %s", fn,
                 at != NULL ? "is waiting for this fill" : "is of the process that forked: make one here");
        gni_end_plain(l->handle.ctx);
    }
    return false;
}

GPUNUM_API bool gn_loader_next(gn_loader *l, gn_array **batch) {
    if (!gni_is_a("gn_loader_next", l, GNI_IS_LOADER)) return false;
    for (int i = 0; i < l->fields && batch != NULL; i++) batch[i] = NULL;
    if (!gni_loader_ready(l, "gn_loader_next", true)) return false;
    gn_context *g = l->handle.ctx;
    gni_loader_slot *slot = batch != NULL ? gni_loader_take(l) : NULL; // not inside the context's lock
    if ((batch != NULL && slot == NULL) || !gni_begin_context("gn_loader_next", g)) return false;
    if (batch == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_loader_next: no room for the arrays");
    else if (slot->count < 0)
        gni_fail(g, GN_ERROR_IO, "gn_loader_next: batch %lld of epoch %lld: %s", (long long)slot->batch,
                 (long long)slot->epoch, slot->wrong);
    for (int i = 0; i < l->fields && !g->call_failed; i++) {
        gn_shape s = l->field[i].s;
        s.dim[0] = slot->count;
        batch[i] = gni_adopt(g, gni_from_bytes(g, "gn_loader_next", l->field[i].t, &s, slot->data[i]));
    }
    const bool ok = gni_end_several(g, batch, batch != NULL ? l->fields : 0) == GN_OK;
    if (slot != NULL) gni_loader_give_back(l, slot);
    return ok;
}

GPUNUM_API int64_t gn_loader_batches(const gn_loader *l) {
    return gni_is_a("gn_loader_batches", l, GNI_IS_LOADER) ? l->batches : 0;
}

GPUNUM_API gn_status gn_loader_seek(gn_loader *l, int64_t epoch, int64_t batch) {
    if (!gni_is_a("gn_loader_seek", l, GNI_IS_LOADER)) return GN_ERROR_ARGUMENT;
    if (!gni_loader_ready(l, "gn_loader_seek", true)) return GN_ERROR_UNSUPPORTED;
    gn_context *g = l->handle.ctx;
    if (epoch < 0 || epoch > INT64_MAX / 2 || batch < 0 || batch > l->batches) { // epochs are made ahead
        if (!gni_begin_context("gn_loader_seek", g)) return GN_ERROR_ARGUMENT;
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_loader_seek: there is no batch %lld of epoch %lld: an epoch has %lld",
                 (long long)batch, (long long)epoch, (long long)l->batches);
        return gni_end_status(g);
    }
    gni_mutex_lock(&l->lock);
    const bool over = batch == l->batches && batch > 0; // the next call ends the epoch
    l->seeks++;
    l->epoch = epoch;
    l->batch = batch;
    l->make_epoch = over ? epoch + 1 : epoch;
    l->make_batch = over ? 0 : batch;
    l->take = l->make; // a slot that is under way becomes one of these batches instead
    for (int i = 0; i < l->slots; i++)
        if (l->slot[i].state == GNI_SLOT_MADE) l->slot[i].state = GNI_SLOT_EMPTY;
#ifndef GPUNUM_NO_THREADS
    gni_cond_broadcast(&l->emptied);
#endif
    gni_mutex_unlock(&l->lock);
    return GN_OK;
}

GPUNUM_API void gn_loader_free(gn_loader *l) {
    if (!gni_loader_ready(l, "gn_loader_free", false)) return;
    gn_context *g = l->handle.ctx;
#ifndef GPUNUM_NO_THREADS
    if (l->threaded && l->forks == gni_forks) { // `fill` may be inside a call
        gni_mutex_lock(&l->lock);
        l->stop = true;
        gni_cond_broadcast(&l->emptied);
        gni_mutex_unlock(&l->lock);
        gni_thread_join(&l->thread);
    }
#endif
    if (!gni_begin_context("gn_loader_free", g)) return;
    gni_loader_release(l);
    gni_end_plain(g);
}
