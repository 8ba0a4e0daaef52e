// >>threads
// The CPU thread pool. From outside: gni_pool_open, gni_pool_close, gni_pool_threads, gni_parallel.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/memory.h"
#endif

typedef struct gni_pool gni_pool;
typedef void (*gni_task_fn)(void *arg, int64_t begin, int64_t end, int worker);

#ifdef GPUNUM_NO_THREADS

static gni_pool *gni_pool_open(gn_context *g, int threads) {
    GNI_UNUSED(g);
    GNI_UNUSED(threads);
    return NULL;
}

static void gni_pool_close(gni_pool *p) { GNI_UNUSED(p); }

static int gni_pool_threads(const gni_pool *p) {
    GNI_UNUSED(p);
    return 1;
}

static void gni_parallel(gni_pool *p, int64_t items, int64_t grain, gni_task_fn fn, void *arg) {
    GNI_UNUSED(p);
    GNI_UNUSED(grain);
    if (items > 0) fn(arg, 0, items, 0);
}

#else

#define GNI_POOL_MAX 256          // threads of one pool
#define GNI_POOL_CLOSED (1 << 20) // in `active`: no job is open, larger than any count of workers
#define GNI_POOL_SPIN_NS 40000u   // how long an idle worker looks for work before it sleeps
#define GNI_POOL_CHUNKS 8         // chunks per thread: enough to even out, few enough to stay cheap

// An atomic on a cache line of its own.
typedef struct gni_pool_atomic {
    gni_atomic value;
    char pad[64 - sizeof(gni_atomic)];
} gni_pool_atomic;

typedef struct gni_pool_worker {
    gni_pool *pool;
    gni_thread thread;
    int index;
} gni_pool_worker;

// One job at a time. Its fields are written while `active` holds GNI_POOL_CLOSED, which no worker
// reads past; taking GNI_POOL_CLOSED away publishes them.
struct gni_pool {
    gni_pool_atomic generation; // changes when a job opens or the pool closes
    gni_pool_atomic active;     // workers inside the job, plus GNI_POOL_CLOSED
    gni_pool_atomic next;       // first chunk that nobody has taken
    gni_pool_atomic busy;       // callers inside gni_parallel: all but the first run inline
    gni_pool_atomic sleeping;   // workers that wait on `wake`
    gni_pool_atomic waiting;    // the caller waits on `done`
    gni_pool_atomic quit;
    gni_task_fn fn;
    void *arg;
    int64_t items, chunk;
    int32_t chunks;
    int threads; // with the caller
    gni_mutex lock;
    gni_cond wake, done;
    gn_context *g;
    gni_pool_worker worker[GNI_POOL_MAX];
};

static void gni_pool_pause(int round) {
    // Yielding now and then lets a thread that has our core finish the work we wait for.
    if ((round & 63) == 63) {
        gni_thread_yield();
    } else {
        gni_cpu_pause();
    }
}

static void gni_pool_work(gni_pool *p, int worker) {
    for (;;) {
        int32_t i = gni_atomic_add(&p->next.value, 1);
        if (i >= p->chunks) return;
        int64_t begin = i * p->chunk;
        p->fn(p->arg, begin, GNI_MIN(begin + p->chunk, p->items), worker);
    }
}

// Takes part in the open job, if there is one.
static void gni_pool_join(gni_pool *p, int worker) {
    if (gni_atomic_add(&p->active.value, 1) < GNI_POOL_CLOSED) gni_pool_work(p, worker);
    gni_atomic_add(&p->active.value, -1);
    if (gni_atomic_load(&p->waiting.value) == 0) return;
    gni_mutex_lock(&p->lock);
    gni_cond_signal(&p->done);
    gni_mutex_unlock(&p->lock);
}

// Returns the generation once it differs from `seen`: spins first, as the next job of a training step
// is microseconds away, then sleeps.
static int32_t gni_pool_idle(gni_pool *p, int32_t seen) {
    uint64_t start = gni_now_ns();
    for (int round = 1;; round++) {
        int32_t now = gni_atomic_load(&p->generation.value);
        if (now != seen) return now;
        gni_pool_pause(round);
        if ((round & 31) == 0 && gni_now_ns() - start > GNI_POOL_SPIN_NS) break;
    }
    gni_mutex_lock(&p->lock);
    gni_atomic_add(&p->sleeping.value, 1);
    while (gni_atomic_load(&p->generation.value) == seen) gni_cond_wait(&p->wake, &p->lock);
    gni_atomic_add(&p->sleeping.value, -1);
    gni_mutex_unlock(&p->lock);
    return gni_atomic_load(&p->generation.value);
}

static void gni_pool_main(void *arg) {
    gni_pool_worker *w = (gni_pool_worker *)arg;
    gni_pool *p = w->pool;
    for (int32_t seen = 0;;) {
        seen = gni_pool_idle(p, seen);
        if (gni_atomic_load(&p->quit.value) != 0) return;
        gni_pool_join(p, w->index);
    }
}

static void gni_pool_wake(gni_pool *p) {
    gni_atomic_add(&p->generation.value, 1);
    if (gni_atomic_load(&p->sleeping.value) == 0) return;
    gni_mutex_lock(&p->lock);
    gni_cond_broadcast(&p->wake);
    gni_mutex_unlock(&p->lock);
}

static void gni_pool_close(gni_pool *p) {
    if (p == NULL) return;
    gni_atomic_store(&p->quit.value, 1);
    gni_pool_wake(p);
    for (int i = 1; i < p->threads; i++) gni_thread_join(&p->worker[i].thread);
    gni_cond_free(&p->done);
    gni_cond_free(&p->wake);
    gni_mutex_free(&p->lock);
    gni_free(p->g, p);
}

// `threads` counts the caller's own; 0 means one for each CPU. NULL (no memory, or one thread only) is
// a pool too: everything then runs inline.
static gni_pool *gni_pool_open(gn_context *g, int threads) {
    int count = threads > 0 ? threads : gni_cpu_count();
    count = GNI_MIN(count, GNI_POOL_MAX);
    if (count < 2) return NULL;
    gni_pool *p = (gni_pool *)gni_calloc(g, sizeof *p);
    if (p == NULL) return NULL;
    p->g = g;
    gni_mutex_init(&p->lock);
    gni_cond_init(&p->wake);
    gni_cond_init(&p->done);
    gni_atomic_store(&p->active.value, GNI_POOL_CLOSED);
    for (p->threads = 1; p->threads < count; p->threads++) {
        gni_pool_worker *w = &p->worker[p->threads];
        w->pool = p;
        w->index = p->threads;
        if (!gni_thread_start(&w->thread, gni_pool_main, w)) break; // fewer threads will do
    }
    return p;
}

static int gni_pool_threads(const gni_pool *p) { return p == NULL ? 1 : p->threads; }

// Waits until no worker is inside the closed job.
static void gni_pool_drain(gni_pool *p) {
    uint64_t start = gni_now_ns();
    for (int round = 1;; round++) {
        if (gni_atomic_load(&p->active.value) == GNI_POOL_CLOSED) return;
        gni_pool_pause(round);
        if ((round & 31) == 0 && gni_now_ns() - start > GNI_POOL_SPIN_NS) break;
    }
    gni_atomic_store(&p->waiting.value, 1);
    gni_mutex_lock(&p->lock);
    while (gni_atomic_load(&p->active.value) != GNI_POOL_CLOSED) gni_cond_wait(&p->done, &p->lock);
    gni_mutex_unlock(&p->lock);
    gni_atomic_store(&p->waiting.value, 0);
}

// Calls fn on parts of [0, items) and returns when all are done. `begin` is always a multiple of `grain`.
// `worker` is below gni_pool_threads(p) and no two calls of one job run under the same number at the same
// time: scratch memory that belongs to this job may be indexed by it. Runs inline, as worker 0, when
// items <= grain, without a pool, and inside of another gni_parallel of the same pool.
// How the parts are cut depends on the number of threads: what fn computes must not depend on it.
static void gni_parallel(gni_pool *p, int64_t items, int64_t grain, gni_task_fn fn, void *arg) {
    if (items <= 0) return;
    if (grain < 1) grain = 1;
    if (p == NULL || p->threads < 2 || items <= grain) {
        fn(arg, 0, items, 0);
        return;
    }
    if (gni_atomic_add(&p->busy.value, 1) != 0) {
        fn(arg, 0, items, 0);
        gni_atomic_add(&p->busy.value, -1);
        return;
    }
    int64_t grains = (items - 1) / grain + 1;
    int64_t most = (int64_t)p->threads * GNI_POOL_CHUNKS;
    p->chunk = grains <= most ? grain : ((grains - 1) / most + 1) * grain;
    p->chunks = (int32_t)((items - 1) / p->chunk + 1);
    p->items = items;
    p->fn = fn;
    p->arg = arg;
    gni_atomic_store(&p->next.value, 0);
    gni_atomic_add(&p->active.value, -GNI_POOL_CLOSED);
    gni_pool_wake(p);
    gni_pool_work(p, 0);
    gni_atomic_add(&p->active.value, GNI_POOL_CLOSED);
    gni_pool_drain(p);
    gni_atomic_add(&p->busy.value, -1);
}

#endif
