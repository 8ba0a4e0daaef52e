// >>platform
// Threads, locks, atomics and clocks. With GPUNUM_NO_THREADS locks vanish and threads do not start.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#endif

#if defined(_WIN32)
typedef CRITICAL_SECTION gni_mutex;
typedef CONDITION_VARIABLE gni_cond;
static bool gni_mutex_init(gni_mutex *m) {
    InitializeCriticalSection(m);
    return true;
}
static void gni_mutex_free(gni_mutex *m) { DeleteCriticalSection(m); }
static void gni_mutex_lock(gni_mutex *m) { EnterCriticalSection(m); }
static void gni_mutex_unlock(gni_mutex *m) { LeaveCriticalSection(m); }
static bool gni_cond_init(gni_cond *c) {
    InitializeConditionVariable(c);
    return true;
}
static void gni_cond_free(gni_cond *c) { GNI_UNUSED(c); }
static void gni_cond_wait(gni_cond *c, gni_mutex *m) { SleepConditionVariableCS(c, m, INFINITE); }
static void gni_cond_signal(gni_cond *c) { WakeConditionVariable(c); }
static void gni_cond_broadcast(gni_cond *c) { WakeAllConditionVariable(c); }
#elif defined(GPUNUM_NO_THREADS)
typedef int gni_mutex;
typedef int gni_cond;
static bool gni_mutex_init(gni_mutex *m) {
    *m = 0;
    return true;
}
static void gni_mutex_free(gni_mutex *m) { GNI_UNUSED(m); }
static void gni_mutex_lock(gni_mutex *m) { GNI_UNUSED(m); }
static void gni_mutex_unlock(gni_mutex *m) { GNI_UNUSED(m); }
#else
typedef pthread_mutex_t gni_mutex;
typedef pthread_cond_t gni_cond;
static bool gni_mutex_init(gni_mutex *m) { return pthread_mutex_init(m, NULL) == 0; }
static void gni_mutex_free(gni_mutex *m) { pthread_mutex_destroy(m); }
static void gni_mutex_lock(gni_mutex *m) { pthread_mutex_lock(m); }
static void gni_mutex_unlock(gni_mutex *m) { pthread_mutex_unlock(m); }
static bool gni_cond_init(gni_cond *c) { return pthread_cond_init(c, NULL) == 0; }
static void gni_cond_free(gni_cond *c) { pthread_cond_destroy(c); }
static void gni_cond_wait(gni_cond *c, gni_mutex *m) { pthread_cond_wait(c, m); }
static void gni_cond_signal(gni_cond *c) { pthread_cond_signal(c); }
static void gni_cond_broadcast(gni_cond *c) { pthread_cond_broadcast(c); }
#endif

#ifndef GPUNUM_NO_THREADS
typedef struct gni_thread {
    void (*fn)(void *arg);
    void *arg;
#ifdef _WIN32
    HANDLE handle;
#else
    pthread_t handle;
#endif
} gni_thread;

#ifdef _WIN32
static DWORD WINAPI gni_thread_main(LPVOID p) {
    gni_thread *t = (gni_thread *)p;
    t->fn(t->arg);
    return 0;
}
#else
static void *gni_thread_main(void *p) {
    gni_thread *t = (gni_thread *)p;
    t->fn(t->arg);
    return NULL;
}
#endif

// `t` must stay where it is until gni_thread_join.
static bool gni_thread_start(gni_thread *t, void (*fn)(void *arg), void *arg) {
    t->fn = fn;
    t->arg = arg;
#ifdef _WIN32
    t->handle = CreateThread(NULL, 0, gni_thread_main, t, 0, NULL);
    return t->handle != NULL;
#else
    return pthread_create(&t->handle, NULL, gni_thread_main, t) == 0;
#endif
}

static void gni_thread_join(gni_thread *t) {
#ifdef _WIN32
    WaitForSingleObject(t->handle, INFINITE);
    CloseHandle(t->handle);
#else
    pthread_join(t->handle, NULL);
#endif
}
#endif // GPUNUM_NO_THREADS

// Gives the processor to whoever else wants it.
GNI_MAYBE_UNUSED static void gni_thread_yield(void) {
#if defined(_WIN32)
    SwitchToThread();
#elif !defined(GPUNUM_NO_THREADS)
    sched_yield();
#endif
}

// Tells the processor that this is a waiting loop.
GNI_INLINE void gni_cpu_pause(void) {
#if defined(__x86_64__) && defined(GNI_GNU)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(GNI_GNU)
    __asm__ volatile("yield");
#endif
}

// Sequentially consistent 32-bit atomics.
#ifdef GNI_GNU
typedef int32_t gni_atomic;
#define gni_atomic_load(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define gni_atomic_store(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define gni_atomic_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST) // returns the old value
#else
typedef volatile LONG gni_atomic;
#define gni_atomic_load(p) InterlockedCompareExchange((p), 0, 0)
#define gni_atomic_store(p, v) ((void)InterlockedExchange((p), (v)))
#define gni_atomic_add(p, v) InterlockedExchangeAdd((p), (v))
#endif

// Of pointers to what is constant.
#ifdef GNI_GNU
#define gni_pointer_load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define gni_pointer_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#else
#define gni_pointer_load(p) (*(p))
#define gni_pointer_store(p, v) (*(p) = (v))
#endif

#if defined(__cplusplus)
#define GNI_THREAD_LOCAL thread_local
#elif defined(GNI_GNU)
#define GNI_THREAD_LOCAL __thread
#else
#define GNI_THREAD_LOCAL __declspec(thread)
#endif

// A recursive lock: public functions call each other. The owner is known by the address of a variable
// of its thread, since strict ISO modes hide POSIX's own recursive mutexes.
typedef struct gni_lock {
    gni_mutex mutex;
#ifdef GNI_GNU
    const void *owner;
#else
    void *volatile owner;
#endif
    int depth;
} gni_lock;

static void gni_lock_enter(gni_lock *l) {
    static GNI_THREAD_LOCAL char self;
#ifdef GNI_GNU
    bool mine = __atomic_load_n(&l->owner, __ATOMIC_RELAXED) == (const void *)&self;
#else
    bool mine = l->owner == (void *)&self;
#endif
    if (!mine) {
        gni_mutex_lock(&l->mutex);
#ifdef GNI_GNU
        __atomic_store_n(&l->owner, (const void *)&self, __ATOMIC_RELAXED);
#else
        l->owner = (void *)&self;
#endif
    }
    l->depth++;
}

static void gni_lock_leave(gni_lock *l) {
    if (--l->depth > 0) return;
#ifdef GNI_GNU
    __atomic_store_n(&l->owner, (const void *)NULL, __ATOMIC_RELAXED);
#else
    l->owner = NULL;
#endif
    gni_mutex_unlock(&l->mutex);
}

#if defined(_WIN32) || defined(GPUNUM_NO_THREADS)
enum { gni_forks };
static void gni_watch_forks(void) {}
#else
// Of this process and its parents: a context of another number lost its threads and its GPU to the parent.
static int gni_forks;
static void gni_forked(void) { gni_forks++; }

static void gni_watch_forks(void) {
    static gni_atomic watched;
    if (gni_atomic_load(&watched) == 0 && gni_atomic_add(&watched, 1) == 0)
        pthread_atfork(NULL, NULL, gni_forked);
}
#endif

static uint64_t gni_now_ns(void) {
#ifdef _WIN32
    LARGE_INTEGER f, t;
    QueryPerformanceFrequency(&f);
    QueryPerformanceCounter(&t);
    return (uint64_t)((double)t.QuadPart * 1e9 / (double)f.QuadPart);
#elif defined(CLOCK_MONOTONIC)
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#else
    // Strict ISO modes hide clock_gettime.
    struct timeval t;
    gettimeofday(&t, NULL);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
#endif
}

static int gni_cpu_count(void) {
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
#elif defined(_SC_NPROCESSORS_ONLN)
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
#else
    return 1;
#endif
}

static gni_isa gni_isa_best(void) {
#ifdef GNI_X86
#ifdef GNI_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return GNI_ISA_AVX512;
#endif
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return GNI_ISA_AVX2;
    return GNI_ISA_BASE;
#elif defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
    return GNI_ISA_BASE;
#else
    return GNI_ISA_PLAIN;
#endif
}
