// Random sequences of calls over the whole public interface: any dtypes, shapes from none to huge, views, gradients,
// scopes, optimizers, operands that are NULL, released or of another context, allocations that fail.
//
//   fuzz_calls [seconds [seed [sequences]]]
//
// Every sequence has a seed of its own, which is printed when something is wrong and repeats it:
// fuzz_calls 0 SEED 1. GN_FUZZ_TRACE=1 prints the calls. What is wrong: a crash, a hang, a sanitizer's report; NULL without
// an error or with one that does not name the function, an error beside a result, a status that the call cannot have; a
// shape that no array has; arrays, bytes or scopes that are left.
#include "fuzz.h"
#include "test_functions.h"

#include <signal.h>
#include <unistd.h>

enum { POOL = 24, CALLS_EACH = 120, HANGS = 60, MOST_ELEMENTS = 1 << 16 };

typedef struct entry {
    gn_array *a;
    int depth; // of the scope that owns it; 0: nobody but us
    int extra; // references by gn_retain
} entry;

typedef struct fuzz {
    calls c; // first: find gets a pointer to it
    entry pool[POOL];
    int count, depth, no_grad;
    bool odd,
        huge; // the call under way has an operand that is no array of this context, or one too large to compute
    bool huge_ok;    // it may have
    gn_array *stale; // released
    gn_context *other;
    gn_array *foreign; // of another context
    gn_optimizer *opt;
    uint64_t seed;
    int call;
    const char *name;
    bool trace;
    int64_t calls[FUNCTIONS], results[FUNCTIONS];
} fuzz;

static fuzz f;

static void report(const char *what) {
    fprintf(stderr, "fuzz_calls: %s in call %d, %s, of seed %llu (again: fuzz_calls 0 %llu 1)\n",
            what, f.call, f.name, (unsigned long long)f.seed, (unsigned long long)f.seed);
}

static void wrong(const char *what) {
    report(what);
    if (f.c.g != NULL)
        fprintf(stderr, "status %s: %s\n", gn_status_string(gn_status_get(f.c.g)), gn_error(f.c.g));
    fflush(stdout);
    _exit(1);
}

static void on_signal(int number) {
    report(number == SIGALRM ? "hang" : "crash");
    _exit(1);
}

#if defined(__GNUC__) && !defined(_WIN32)
// The sanitizers call this before they end the program.
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
static void on_report(void) { report("report of a sanitizer"); }
static void watch_sanitizers(void) {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(on_report);
}
#else
static void watch_sanitizers(void) {}
#endif

// ---- arrays

static bool is_float(gn_dtype t) {
    return t == GN_F32 || t == GN_F64 || t == GN_F16 || t == GN_BF16;
}
static bool is_complex(gn_dtype t) { return t == GN_C64 || t == GN_C128; }

static bool fits(gn_array *a, kind k) {
    gn_dtype t = gn_dtype_of(a);
    switch (k) {
    case FLOATS: return is_float(t) || is_complex(t);
    case ROW: return gn_rank(a) == 1;
    case INDEX: return t == GN_I32 || t == GN_I64;
    case TRUTH: return t == GN_BOOL;
    case INTEGERS: return !is_float(t) && !is_complex(t);
    case COMPLEXES: return is_complex(t);
    default: return true;
    }
}

// Few extents, so that shapes often fit each other.
static gn_shape usual_shape(void) {
    gn_shape s = GN_SHAPE();
    static const int64_t dims[] = {4, 4, 4, 1, 3, 0, 9};
    s.rank = draw(3) ? 2 : (int)draw(4);
    for (int i = 0; i < s.rank; i++) s.dim[i] = dims[draw(draw(6) ? 4 : 7)];
    return draw(20) ? s : shape(&f.c);
}

static gn_array *fresh(kind k) {
    static double data[256];
    static const gn_dtype of[KINDS][4] = {
        {GN_F32, GN_I32, GN_F64, GN_BOOL},  {GN_F32, GN_F32, GN_F64, GN_F16},
        {GN_F32, GN_F64, GN_C64, GN_BF16},  {GN_I32, GN_I64, GN_I32, GN_I64},
        {GN_BOOL, GN_BOOL, GN_BOOL, GN_U8}, {GN_I32, GN_U8, GN_I64, GN_U32},
        {GN_C64, GN_C64, GN_C128, GN_C64},  {GN_F32, GN_F32, GN_F32, GN_F32}};
    gn_shape s = k == ROW ? GN_SHAPE((int64_t)draw(6)) : usual_shape();
    double size = 1.0;
    for (int i = 0; i < s.rank && i < GN_MAX_RANK; i++) size *= (double)s.dim[i];
    for (int i = 0; i < 256; i++)
        data[i] = draw(9) ? 0.25 * ((double)draw(33) - 8.0) : number(&f.c, 1.0);
    gn_dtype t = draw(8) ? of[k][draw(4)] : (gn_dtype)draw(GN_DTYPE_COUNT);
    if (!(size >= 0.0 && size <= 256.0)) return gn_full(f.c.g, t, s, 0.5);
    gn_array *a = gn_array_from(f.c.g, GN_F64, s, data);
    return t == GN_F64 ? a : gn_eval(gn_cast(a, t));
}

static gn_array *huge_array(void) {
    gn_shape s = GN_SHAPE((int64_t)1 << (10 + draw(25)), 4);
    if (draw(2)) return gn_broadcast_to(gn_ones(f.c.g, GN_F32, GN_SHAPE(4)), s);
    return gn_full(f.c.g, draw(2) ? GN_F32 : GN_F64, s, 1.0);
}

// An operand that could not be made explains what follows.
static gn_array *made(gn_array *a) {
    f.odd = f.odd || a == NULL;
    return a;
}

static gn_array *operand(kind k) {
    gn_array *a = NULL;
    if (draw(150) == 0) {
        f.odd = true;
        uint32_t which = draw(3);
        return which == 0 ? NULL : which == 1 ? f.stale : f.foreign;
    }
    if (f.huge_ok && draw(100) == 0) {
        f.huge = true;
        return made(huge_array());
    }
    for (int tries = 0; tries < 8 && f.count > 0; tries++) {
        a = f.pool[draw((uint32_t)f.count)].a;
        if (fits(a, k) || draw(12) == 0) return a;
    }
    return draw(3) || a == NULL ? made(fresh(k)) : a;
}

static gn_array *find(calls *c, kind k, int i) {
    gn_array *a = operand(k);
    (void)c, (void)i;
    if (f.trace) {
        gn_shape s = gn_shape_of(a);
        printf("    %s (", a == NULL ? "NULL" : gn_dtype_name(gn_dtype_of(a)));
        for (int d = 0; d < s.rank; d++) printf("%lld,", (long long)s.dim[d]);
        printf(")%s\n", gn_needs_grad(a) ? " with gradient" : "");
    }
    return a;
}

static void drop(int i) { f.pool[i] = f.pool[--f.count]; }

static void release(int i) {
    gn_array *a = f.pool[i].a;
    gn_release(a);
    if (f.pool[i].extra-- > 0) return;
    f.stale = a;
    drop(i);
}

static void add(gn_array *a) {
    if (f.count == POOL) release((int)draw(POOL));
    if (f.count == POOL)
        return; // it has more references; a scope or the end of the sequence takes `a`
    f.pool[f.count].a = a;
    f.pool[f.count].depth = f.depth;
    f.pool[f.count++].extra = 0;
}

// ---- what holds of every result

static void check_array(gn_array *a) {
    gn_shape s = gn_shape_of(a);
    int64_t n = 1;
    if (s.rank < 0 || s.rank > GN_MAX_RANK) wrong("rank out of range");
    for (int i = 0; i < s.rank; i++) {
        if (s.dim[i] < 0) wrong("negative dimension");
        n = s.dim[i] != 0 && n > INT64_MAX / 16 / s.dim[i] ? -1 : n * s.dim[i];
        if (n < 0) break;
    }
    for (int i = 0; i < s.rank; i++) n = s.dim[i] == 0 ? 0 : n;
    if (n < 0 || n != gn_size(a)) wrong("shape and size differ");
    if ((unsigned)gn_dtype_of(a) >= GN_DTYPE_COUNT) wrong("no such dtype");
}

static void read_array(gn_array *a) {
    static char data[MOST_ELEMENTS * 16];
    if (gn_size(a) > MOST_ELEMENTS) return;
    gn_status status = gn_read(a, data, gn_bytes(a));
    // An index that a device found out of bounds is told here.
    bool index = status == GN_ERROR_ARGUMENT && strstr(gn_error(f.c.g), "is out of bounds for axis") != NULL;
    if (status != GN_OK && status != GN_ERROR_OUT_OF_MEMORY && !index) wrong("a result cannot be read");
    if (status == GN_OK && gn_dtype_of(a) == GN_BOOL)
        for (int64_t i = 0; i < gn_size(a); i++)
            if ((unsigned char)data[i] > 1) wrong("neither true nor false");
    gn_error_clear(f.c.g);
}

// What the call left behind on the context.
static void check_status(const function *fn, gn_array *y, bool refused) {
    gn_status status = gn_status_get(f.c.g);
    const char *error = gn_error(f.c.g);
    size_t length = strcspn(error, ":"); // gn_einsum is gn_einsum_list's short form
    bool several = (fn->flags & (NO_ARRAY | SEVERAL)) != 0;
    if (status == GN_ERROR_DEVICE_LOST || status == GN_ERROR_VERSION)
        wrong("a status that cannot be");
    if (status == GN_ERROR_STALE && !f.odd) wrong("nothing was released");
    if (status == GN_ERROR_OUT_OF_MEMORY) return;
    if (status == GN_ERROR_IO && !refused) wrong("a file error");
    if (status != GN_OK && strncmp(error, "gn_", 3) != 0) wrong("a message without a function");
    if (several || f.odd || f.c.nowhere) return;
    if (y == NULL && status == GN_OK) wrong("NULL without an error");
    if (y != NULL && status != GN_OK) wrong("a result beside an error");
    if (status != GN_OK && strncmp(error, fn->name, length) != 0)
        wrong("a message of another function");
}

// ---- calls

static void call_function(const function *fn) {
    gn_context *g = f.c.g;
    int64_t had = test_heap.refused;
    f.name = fn->name;
    f.odd = f.huge = false;
    f.huge_ok = (fn->flags & HUGE_OK) != 0;
    gn_scope_begin(g);
    bool refuse = draw(12) == 0;
    if (refuse) test_refuse(draw(25), draw(2));
    gn_array *y = run_function(&f.c, fn);
    test_refuse(-1, false);
    if (f.trace)
        printf("%d %s%s: %s %s\n", f.call, fn->name, refuse ? ", allocations fail" : "",
               gn_status_string(gn_status_get(g)), gn_error(g));
    check_status(fn, y, test_heap.refused > had);
    f.calls[fn - functions]++;
    f.results[fn - functions] += gn_status_get(g) == GN_OK;
    gn_error_clear(g);
    gn_error_clear(f.other);
    bool keep = y != NULL && gn_context_of(y) == g && !f.odd && !f.huge;
    if (keep) check_array(y);
    keep = keep && gn_size(y) <= MOST_ELEMENTS;
    for (int i = 0; i < f.count; i++) keep = keep && f.pool[i].a != y; // some give back an operand
    if (keep && draw(3) == 0) read_array(y);
    if (keep && f.count < POOL - 1 && draw(3)) {
        gn_keep(y);
        if (draw(3) == 0 && is_float(gn_dtype_of(y))) gn_requires_grad(y, true), gn_error_clear(g);
    } else
        keep = false;
    gn_scope_end(g);
    if (keep) add(y);
}

static void call_scope(void) {
    f.name = "scopes";
    uint32_t what = draw(3);
    if (what == 0 && f.depth < 4) {
        gn_scope_begin(f.c.g);
        f.depth++;
    } else if (what == 1 && f.depth > 0) {
        gn_scope_end(f.c.g);
        for (int i = f.count - 1; i >= 0; i--) {
            if (f.pool[i].depth != f.depth) continue;
            f.pool[i].depth = 0;
            if (f.pool[i].extra-- == 0) drop(i);
        }
        f.depth--;
    } else if (what == 2 && f.count > 0) {
        entry *e = &f.pool[draw((uint32_t)f.count)];
        if (gn_keep(e->a) != e->a) wrong("gn_keep gave something else");
        if (e->depth > 0) e->depth--;
    }
}

static void call_owner(void) {
    f.name = "references";
    int i = (int)draw((uint32_t)f.count), k = (int)draw((uint32_t)f.count);
    entry *e = &f.pool[i];
    switch (draw(4)) {
    case 0: release(i); break;
    case 1:
        if (gn_retain(e->a) != e->a) wrong("gn_retain gave something else");
        e->extra++;
        break;
    case 2: // pool[i] becomes what pool[k] is
        if (i == k || e->extra || f.pool[k].extra) break;
        f.stale = e->a;
        gn_set(&e->a, f.pool[k].a);
        if (e->a != f.pool[k].a) wrong("gn_set did not set");
        drop(k);
        break;
    default: gn_to(e->a, draw(2) ? GN_DEVICE_CPU : GN_DEVICE_GPU); gn_error_clear(f.c.g);
    }
}

static void call_gradient(void) {
    f.name = "gradients";
    gn_context *g = f.c.g;
    gn_array *a = f.pool[draw((uint32_t)f.count)].a, *grad = gn_grad(a), *both[2];
    switch (draw(7)) {
    case 0: gn_requires_grad(a, draw(4) != 0); break;
    case 1: gn_zero_grad(a); break;
    case 2:
        if (grad != NULL) gn_scope_begin(g), read_array(grad), gn_scope_end(g);
        break;
    case 3: // lent: nobody gives it away
        for (int i = 0; i < f.count; i++) grad = f.pool[i].a == grad ? NULL : grad;
        if (grad == NULL) break;
        gn_release(grad);
        if (gn_status_get(g) != GN_ERROR_ARGUMENT || gn_grad(a) != grad)
            wrong("gn_release took a gradient");
        break;
    case 4:
        for (int i = 0; i < f.count; i++) grad = f.pool[i].a == grad ? NULL : grad;
        if (grad == NULL || f.count == POOL) break;
        gn_retain(grad);
        add(grad);
        f.pool[f.count - 1].depth = 0;
        break;
    case 5:
        if (f.opt != NULL) gn_step(f.opt);
        break;
    default:
        both[0] = a, both[1] = f.pool[draw((uint32_t)f.count)].a;
        gn_optimizer_free(f.opt);
        f.opt = draw(2) ? gn_adam(both, 1 + (int)draw(2), NULL) : gn_sgd(both, 1, NULL);
    }
    gn_error_clear(g);
}

static void run_sequence(uint64_t seed, bool slow) {
    gn_context *g = f.c.g;
    test_lot = seed * 0x9e3779b97f4a7c15u + 1;
    draw(2);
    f.seed = seed;
    f.stale = NULL;
    f.count = f.depth = 0;
    gn_seed(g, seed);
    gn_scope_begin(f.other);
    f.foreign = gn_ones(f.other, GN_F32, GN_SHAPE(4));
    for (f.call = 0; f.call < CALLS_EACH; f.call++) {
        alarm(HANGS);
        uint32_t what = draw(20);
        if (what < 2)
            call_scope();
        else if (what < 5 && f.count > 0)
            call_owner();
        else if (what < 7 && f.count > 0)
            call_gradient();
        else {
            const function *fn = &functions[draw(FUNCTIONS)];
            if (slow || !(fn->flags & SLOW)) call_function(fn);
        }
        if (gn_status_get(g) != GN_OK) wrong("an error where none can be");
    }
    f.name = "the end";
    alarm(HANGS);
    while (f.count > 0) release(f.count - 1);
    for (; f.depth > 0; f.depth--) gn_scope_end(g);
    gn_optimizer_free(f.opt);
    f.opt = NULL;
    gn_scope_end(f.other);
    gn_sync(g);
    gn_memory_stats stats;
    gn_memory_get(g, &stats);
    if (stats.arrays != 0) wrong("arrays are left");
    gn_scope_end(g);
    if (gn_status_get(g) != GN_ERROR_ARGUMENT) wrong("a scope is left");
    gn_error_clear(g);
}

static void open_contexts(void) {
    gn_options o = test_options();
    // Allocations in a fixed order, programs that need no compiler, and memory that huge arrays do not fit.
    o.vulkan_flags |= GN_VULKAN_NO_ASYNC_PIPELINES | GN_VULKAN_NO_SPECIALIZATION;
    o.memory_limit = (uint64_t)128 << 20;
    o.threads = 7; // more than there are rows or parts of most work
    test_heap.most = (int64_t)192 << 20;
    f.c.g = test_open_with(&o);
    o.backend = GN_BACKEND_CPU;
    o.placement = GN_PLACE_AUTO;
    f.other = test_open_with(&o);
}

static void close_contexts(void) {
    f.name = "gn_close";
    alarm(HANGS);
    gn_close(f.other);
    gn_close(f.c.g);
    f.c.g = NULL;
    if (test_heap.blocks != 0) wrong("memory is left");
}

int main(int argc, char **argv) {
    fuzz_run run = fuzz_begin(argc, argv);
    long done = 0;
    static const int signals[] = {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], on_signal);
    watch_sanitizers();
    f.c.find = find;
    f.c.wild = true;
    f.name = "gn_open";
    f.trace = getenv("GN_FUZZ_TRACE") != NULL;
    if (f.trace) setvbuf(stdout, NULL, _IONBF, 0);
    while (fuzz_goes_on(&run, done)) {
        open_contexts();
        for (int i = 0; i < 100 && fuzz_goes_on(&run, done); i++)
            run_sequence(run.seed + (uint64_t)done++, !test_on_vulkan() || run.seconds > 300.0);
        close_contexts();
    }
    alarm(0);
    int64_t all = 0, results = 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        all += f.calls[i];
        results += f.results[i];
        if (f.calls[i] >= 50 && f.results[i] == 0) printf("%s never worked\n", functions[i].name);
    }
    printf("%ld sequences, %lld calls, %lld of them without an error\n", done, (long long)all, (long long)results);
    return 0;
}
