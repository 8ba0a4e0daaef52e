// >>gpu_order
// Scans, sorts, searches and counts on a GPU. From outside: gni_job_scan, gni_job_sort, gni_job_search, gni_job_count and
// what says whether they are done there.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_order.h"
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// Whether one dispatch reaches so many bytes.
static bool gni_order_reaches(const gni_gpu *gpu, int64_t count, int64_t bytes) {
    return count < INT32_MAX / 2 && (uint64_t)count * (uint64_t)bytes < (uint64_t)gni_job_most_bytes(gpu) - 256;
}

static bool gni_order_dispatch(gni_job_call *c, int kernel, int64_t groups) {
    const int64_t most = (int64_t)c->gpu->caps.max_groups[0];
    c->generic.module = kernel;
    return gni_job_dispatch(c, gni_gpu_pipeline_get(c->gpu, &c->generic, GNI_GPU_WAIT), GNI_MIN(groups, most),
                            gni_job_ceil(groups, most), 1);
}

static gni_gpu_use gni_order_use(const gni_gpu_mem *mem, uint64_t offset, uint64_t bytes) {
    gni_gpu_use use;
    use.mem = mem;
    use.offset = offset;
    use.bytes = bytes;
    use.write = true;
    return use;
}

// `count` elements of an operand as a buffer argument.
static bool gni_order_operand(const gni_gpu *gpu, const gni_operand *o, int64_t count, gni_gpu_use *use, uint32_t *base,
                              bool write) {
    const int64_t one = 1;
    if (!gni_job_reach(gpu, o, &count, &one, 1, use, base)) return false;
    use->write = write;
    return true;
}

// ---- scans

typedef struct gni_order_scan {
    gni_scan_op op;
    uint32_t dtype, flags; // GNI_T_C64: values of two words, or of four
    bool integer;
    bool four; // values have four words: the kernels of float64 arithmetic; `integer` says of complex numbers
    int64_t outer, n, inner;
    gni_gpu_use in, out;
    uint32_t in_base, out_base;
} gni_order_scan;

enum { GNI_ORDER_FEW = 1 << 21 }; // elements: fewer are scanned in smaller tiles

// How the kernels of scan_fast.comp share a scan out.
typedef struct gni_order_shape {
    int module;
    uint32_t threads, each; // of a workgroup, groups of four elements of one of them
    uint32_t lanes;         // of scan_columns: groups of four columns of a strip
} gni_order_shape;

static bool gni_order_scan_phase(gni_gpu *gpu, const gni_order_scan *s, const gni_gpu_use *parts, uint32_t phase,
                                 int64_t tiles, int64_t groups, const gni_order_shape *fast) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    c.use[0] = s->in;
    if (phase != GNI_F_SCAN_TOTALS) c.use[1] = s->out;
    else if (!GNI_TEXTS(gpu)) c.use[1] = *parts; // which is bound once there
    if (parts != NULL) c.use[2] = *parts;
    else if (!GNI_TEXTS(gpu)) c.use[2] = s->out;
    c.n_use = 3;
    c.generic.n_spec = fast != NULL ? GNI_S_SCAN_FAST_SPECS : GNI_S_SCAN_SPECS;
    c.generic.spec[GNI_S_SCAN_OP] = (uint32_t)s->op;
    c.generic.spec[GNI_S_SCAN_DTYPE] = s->dtype;
    c.generic.spec[GNI_S_SCAN_INTEGER] = s->integer;
    c.generic.spec[GNI_S_SCAN_PHASE] = phase;
    c.generic.spec[GNI_S_SCAN_FLAGS] =
        s->flags | gni_job_flag(parts != NULL && phase == GNI_F_SCAN_TILES, GNI_F_SCAN_CARRY);
    c.n_param = GNI_P_SCAN_WORDS;
    c.param[GNI_P_SCAN_OUTER] = (uint32_t)s->outer;
    c.param[GNI_P_SCAN_N] = (uint32_t)s->n;
    c.param[GNI_P_SCAN_INNER] = (uint32_t)s->inner;
    c.param[GNI_P_SCAN_IN_BASE] = s->in_base;
    c.param[GNI_P_SCAN_OUT_BASE] = s->out_base;
    c.param[GNI_P_SCAN_TILES] = (uint32_t)tiles;
    if (fast == NULL) return gni_order_dispatch(&c, s->four ? GNI_MODULE_scan_double : GNI_MODULE_scan, groups);
    c.generic.subgroup = gpu->caps.subgroup_control ? gpu->caps.subgroup : 0;
    c.generic.spec[GNI_S_SCAN_THREADS] = fast->threads;
    c.generic.spec[GNI_S_SCAN_EACH] = fast->each;
    c.generic.spec[GNI_S_SCAN_LANES] = fast->lanes;
    const gni_gpu_jobs *ops = gni_job_state(gpu); // which there is with posts, see gni_order_posts
    c.param[GNI_P_SCAN_EPOCH] = ops != NULL ? ops->scan_epoch : 0;
    return gni_order_dispatch(&c, fast->module, groups);
}

// Memory for the posts of so many tiles and blocks: none of them is of the epoch that begins with it. What a host records
// may run again, so that it gets memory of its own.
static bool gni_order_posts(gni_gpu *gpu, int64_t count, bool four, gni_gpu_mem *own, gni_gpu_use *use) {
    gni_gpu_jobs *ops = gni_job_state(gpu);
    const uint64_t bytes = (uint64_t)count * (four ? 32 : 16);
    memset(own, 0, sizeof *own);
    if (ops == NULL) return gni_fail_memory(gpu->g, "scan", sizeof(gni_gpu_jobs));
    if (gpu->g->host_recording) {
        if (ops->scan_epoch == 0) ops->scan_epoch = 1;
        if (!gni_gpu_need(gpu, bytes, own, "scan: device memory")) return false;
        *use = gni_order_use(own, 0, bytes);
        if (gni_gpu_fill(gpu, own, 0, bytes, 0)) return true;
        gni_gpu_free(gpu, own);
        return false;
    }
    if (ops->scan_bytes < bytes) {
        if (ops->scan_bytes > 0) gni_gpu_free(gpu, &ops->scan_posts);
        ops->scan_bytes = 0;
        const uint64_t size = GNI_MAX(bytes, (uint64_t)1 << 18);
        if (!gni_gpu_need(gpu, size, &ops->scan_posts, "scan: device memory")) return false;
        ops->scan_bytes = size;
        ops->scan_epoch = 0xffff;
    }
    if (++ops->scan_epoch > 0xffff) {
        ops->scan_epoch = 0xffff; // until that is done
        if (!gni_gpu_fill(gpu, &ops->scan_posts, 0, ops->scan_bytes, 0)) return false;
        ops->scan_epoch = 1;
    }
    *use = gni_order_use(&ops->scan_posts, 0, bytes);
    return true;
}

static bool gni_order_scan_run(gni_gpu *gpu, const gni_order_scan *s);

// Tiles' totals, their scan, then the tiles.
static bool gni_order_scan_parts(gni_gpu *gpu, const gni_order_scan *s, int64_t tiles, int64_t groups,
                                 const gni_order_shape *fast) {
    const uint64_t bytes = (uint64_t)(s->outer * tiles * s->inner) * (s->four ? 16 : 8);
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, bytes, &mem, "scan: device memory")) return false;
    const gni_gpu_use parts = gni_order_use(&mem, 0, bytes);
    gni_order_scan inner = *s;
    inner.dtype = GNI_T_C64;
    inner.flags = GNI_F_SCAN_EXCLUSIVE;
    inner.n = tiles;
    inner.in = inner.out = parts;
    inner.in.write = false;
    inner.in_base = inner.out_base = 0;
    const bool ok = gni_order_scan_phase(gpu, s, &parts, GNI_F_SCAN_TOTALS, tiles, groups, fast) &&
                    gni_order_scan_run(gpu, &inner) &&
                    gni_order_scan_phase(gpu, s, &parts, GNI_F_SCAN_TILES, tiles, groups, fast);
    gni_gpu_free(gpu, &mem);
    return ok;
}

static bool gni_order_has_fast(const gni_gpu_caps *c) {
    return c->addresses && c->subgroup_shuffle && c->subgroup_ballot && c->subgroup >= 4 && c->subgroup <= 64 &&
           (c->subgroup_control || c->subgroup_min == c->subgroup_max);
}

// Strips of columns, 128 bytes of float32 wide; where they are few, wider ones and several workgroups along each.
static bool gni_order_scan_columns(gni_gpu *gpu, const gni_order_scan *s) {
    const gni_gpu_caps *caps = &gpu->caps;
    const int64_t some = (int64_t)GNI_MAX(caps->multiprocessors, 1u), parts = s->dtype == GNI_T_C64 ? 1 : s->n / 1024;
    const bool few = parts > 1 && s->outer * gni_job_ceil(s->inner, 32) < some * 3 / 4;
    gni_order_shape shape;
    shape.module = s->four ? GNI_MODULE_scan_columns_double : GNI_MODULE_scan_columns;
    shape.lanes = GNI_MIN(few ? 16u : 8u, caps->subgroup);
    while (shape.lanes > 1 && s->inner <= 2 * (int64_t)shape.lanes) shape.lanes /= 2;
    // As some devices ask for.
    shape.threads = GNI_MIN(few ? 512u : 1024u, GNI_MIN(caps->max_invocations, 32 * caps->subgroup));
    shape.each = few ? 8 : 4;
    while (shape.threads / caps->subgroup * shape.lanes > GNI_SCAN_STRIP) shape.threads /= 2;
    while (shape.threads > caps->subgroup && s->n <= (int64_t)(shape.threads / 2 / shape.lanes * shape.each))
        shape.threads /= 2;
    const int64_t strips = s->outer * gni_job_ceil(s->inner, 4 * (int64_t)shape.lanes);
    const int64_t chunks = few ? GNI_MIN(gni_job_ceil(2 * some, strips), parts) : 1;
    if (chunks > 1) return gni_order_scan_parts(gpu, s, chunks, strips * chunks, &shape);
    return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_TILES, 1, strips, &shape);
}

// A workgroup for each row, or where rows are longer for each tile of them.
static bool gni_order_scan_rows(gni_gpu *gpu, const gni_order_scan *s, const gni_order_shape *shape, int64_t tiles) {
    gni_gpu_mem mem;
    gni_gpu_use posts;
    gni_order_scan one = *s;
    if (tiles == 1) return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_TILES, 1, s->outer, shape);
    const int64_t groups = s->outer * tiles, blocks = s->outer * ((tiles - 1) / gpu->caps.subgroup + 2);
    if (!gni_order_posts(gpu, groups + blocks, s->four, &mem, &posts)) return false;
    if (gni_job_state(gpu)->scan_stall) one.flags |= GNI_F_SCAN_STALL;
    const bool ok = gni_order_scan_phase(gpu, &one, &posts, GNI_F_SCAN_ONE_PASS, tiles, groups, shape);
    gni_gpu_free(gpu, &mem);
    return ok;
}

static bool gni_order_scan_run(gni_gpu *gpu, const gni_order_scan *s) {
    const bool even = s->in_base % 4 == 0 && (s->outer == 1 || s->n % 4 == 0);
    if (gni_order_has_fast(&gpu->caps) && s->inner > 1) return gni_order_scan_columns(gpu, s);
    // Products of parts that have exponents are scan.comp's.
    if (gni_order_has_fast(&gpu->caps) && !(s->dtype == GNI_T_C64 && s->op == GNI_SCAN_PROD)) {
        const int64_t n = s->n + (even ? 0 : 3); // tiles begin where groups of four do
        gni_order_shape shape;
        shape.module = s->four ? GNI_MODULE_scan_rows_double : GNI_MODULE_scan_rows;
        shape.lanes = 0;
        shape.threads = n <= 256 ? 64 : 256;
        while (gpu->caps.subgroup_control && shape.threads > gpu->caps.subgroup * gpu->caps.subgroups) shape.threads /= 2;
        shape.each = s->integer || s->four || s->op == GNI_SCAN_LOGSUMEXP || s->outer * n < GNI_ORDER_FEW ? 4 : 8;
        while (shape.each > 1 && n <= 2 * (int64_t)shape.threads * shape.each) shape.each /= 2;
        const int64_t tiles = gni_job_ceil(n, 4 * (int64_t)shape.threads * shape.each);
        // In place a tile that is looked at late may have been written. One may have to find out about all in front of it,
        // but lavapipe ends a workgroup's loops after 65535 rounds.
        const bool waits = s->in.mem != s->out.mem && (gpu->caps.kind != GNI_GPU_CPU || tiles <= 128);
        if (tiles == 1 || waits) return gni_order_scan_rows(gpu, s, &shape, tiles);
    }
    const int64_t tiles = gni_job_ceil(s->n, GNI_SCAN_TILE);
    if (s->inner > 1)
        return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_COLUMNS, 1, gni_job_ceil(s->outer * s->inner, 256), NULL);
    if (tiles > 1) return gni_order_scan_parts(gpu, s, tiles, s->outer * tiles, NULL);
    return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_TILES, 1, s->outer, NULL);
}

static bool gni_job_scan_ok(const gni_gpu *gpu, const gni_scan *s) {
    const gn_dtype t = s->in.dtype;
    const bool sums = s->op == GNI_SCAN_SUM || s->op == GNI_SCAN_PROD, pairs = gni_is_complex(t);
    if (t == GN_U64 && !sums) return false;
    if (t == GN_F64 && s->op == GNI_SCAN_LOGSUMEXP) return false;
    if ((pairs || (t == GN_F64 && sums)) && !gpu->caps.float64) return false;
    return (!pairs || s->op == GNI_SCAN_SUM) && gpu->caps.max_buffers >= 3 &&
           gni_order_reaches(gpu, s->outer * s->n * s->inner, GNI_MAX((int64_t)gn_dtype_size(t), 8));
}

static bool gni_job_scan(gni_gpu *gpu, const gni_scan *d) {
    GNI_ZEROED(gni_order_scan, s);
    const int64_t count = d->outer * d->n * d->inner;
    const gn_dtype t = d->in.dtype;
    const bool extreme = d->op == GNI_SCAN_MAX || d->op == GNI_SCAN_MIN; // of which smaller ones are compared as words
    s.op = d->op;
    s.dtype = t == GN_U64 ? GNI_T_I64 : t == GN_C64 ? GNI_T_F64 : t == GN_C128 ? GNI_T_C64 : (uint32_t)t;
    s.four = gni_is_complex(t) || (t == GN_F64 && !extreme);
    s.integer = extreme ? gni_is_wide(t) : !gni_is_float(t);
    s.outer = d->outer;
    s.n = d->n;
    s.inner = d->inner;
    return gni_order_operand(gpu, &d->in, count, &s.in, &s.in_base, false) &&
           gni_order_operand(gpu, &d->out, count, &s.out, &s.out_base, true) && gni_order_scan_run(gpu, &s);
}

// ---- sorts

static void gni_order_key(gni_gpu_kernel *k, gn_dtype t, bool descending, bool zeros) {
    const gni_key key = gni_key_of_dtype(t, descending);
    k->n_spec = GNI_S_ORDER_SPECS;
    k->spec[GNI_S_ORDER_LOG_BYTES] = (uint32_t)gni_job_log2_up(key.bytes);
    k->spec[GNI_S_ORDER_FLAGS] = gni_job_flag(key.is_float, GNI_F_ORDER_FLOAT) |
                                 gni_job_flag(key.sign != 0, GNI_F_ORDER_SIGNED) |
                                 gni_job_flag(descending, GNI_F_ORDER_DESCENDING) | gni_job_flag(zeros, GNI_F_ORDER_ZEROS);
    k->spec[GNI_S_ORDER_INF] = (uint32_t)(key.bytes == 8 ? key.inf >> 32 : key.inf);
}

static bool gni_job_sort_ok(const gni_gpu *gpu, const gni_sort *s) {
    const int64_t tiles = gni_job_ceil(s->n, GNI_SORT_TILE);
    return gpu->caps.max_buffers >= 6 && gpu->caps.shared_bytes >= 16384u && gni_order_reaches(gpu, s->rows * s->n, 8) &&
           gni_order_reaches(gpu, s->rows * 256 * tiles, 8);
}

// Rows that a workgroup does not hold: eight bits at a time, from `c`'s elements by way of scratch memory.
static bool gni_job_sort_long(gni_job_call *c, const gni_sort *s, const gni_gpu_use *out, const gni_gpu_use *index) {
    gni_gpu *gpu = c->gpu;
    const bool places = s->index.buf != NULL;
    const int bits = 8 * (int)gn_dtype_size(s->in.dtype);
    const int64_t total = s->rows * s->n, tiles = gni_job_ceil(s->n, GNI_SORT_TILE), groups = s->rows * tiles;
    const uint64_t keys = ((uint64_t)total * (bits == 64 ? 8 : 4) + 255) / 256 * 256;
    const uint64_t from = places ? ((uint64_t)total * 4 + 255) / 256 * 256 : 0, counts = (uint64_t)groups * 1024;
    const uint64_t bytes = 2 * keys + 2 * from + counts;
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, bytes, &mem, "sort: device memory")) return false;
    gni_gpu_use key[2] = {gni_order_use(&mem, 0, keys), gni_order_use(&mem, keys, keys)}, place[2];
    place[0] = places ? gni_order_use(&mem, 2 * keys, from) : key[0];
    place[1] = places ? gni_order_use(&mem, 2 * keys + from, from) : key[1];
    GNI_ZEROED(gni_order_scan, scan);
    scan.op = GNI_SCAN_SUM;
    scan.dtype = GNI_T_U32;
    scan.flags = GNI_F_SCAN_EXCLUSIVE;
    scan.integer = true;
    scan.outer = s->rows;
    scan.n = 256 * tiles;
    scan.inner = 1;
    scan.in = scan.out = gni_order_use(&mem, 2 * keys + 2 * from, counts);
    c->use[5] = scan.in;
    c->param[GNI_P_SORT_TILES] = (uint32_t)tiles;
    bool ok = true;
    int at = 0; // where the keys are, after the first pass
    for (int shift = 0; shift < bits && ok; shift += 8, at ^= 1) {
        c->generic.spec[GNI_S_SORT_FIRST] = shift == 0;
        c->param[GNI_P_SORT_SHIFT] = (uint32_t)shift;
        c->use[1] = key[at];
        c->use[2] = place[at];
        c->use[3] = key[at ^ 1];
        c->use[4] = place[at ^ 1];
        ok = gni_order_dispatch(c, GNI_MODULE_sort_count, groups) && gni_order_scan_run(gpu, &scan) &&
             gni_order_dispatch(c, GNI_MODULE_sort_move, groups);
    }
    c->use[1] = key[at];
    c->use[2] = place[at];
    c->use[3] = *out;
    c->use[4] = *index;
    c->generic.spec[GNI_S_SORT_FIRST] = 0;
    ok = ok && gni_order_dispatch(c, GNI_MODULE_sort_end, GNI_MIN(gni_job_ceil(s->rows * s->count, 1024), 16384));
    gni_gpu_free(gpu, &mem);
    return ok;
}

// ---- sorts by ballots (sweep.comp)

typedef struct gni_sweep_shape {
    uint32_t threads, subgroup, each; // of a workgroup, of a subgroup; elements of an invocation. threads 0: there is none
} gni_sweep_shape;

// On an H200 the largest tiles with 64 registers, past which the driver gives twice as many, and rows from 512 on are sooner
// sorted in registers than by a network.
enum {
    GNI_SWEEP_THREADS = 512,
    GNI_SWEEP_EACH = 12,
    GNI_SWEEP_ALONE = 18, // of keys of a word, without places
    GNI_SWEEP_LOOKS = 1000,
    GNI_SWEEP_ROWS = 256, // longer ones are sorted in registers
    GNI_SWEEP_SPREAD = 512, // threads of a workgroup that holds a row, with few elements each
    GNI_COUNT_COPIES = 8,
    GNI_COUNT_GROUPS = 3 // for each multiprocessor: more of them have more to add up
};

// Words of shared memory for a tile, besides those for its digits.
static int64_t gni_sweep_pool(const gni_gpu *gpu) {
    return (int64_t)GNI_MIN(gpu->caps.shared_bytes, 49152u) / 4 - 256 - 64 - 8;
}

// Subgroups that sort together, 0 where they cannot.
static uint32_t gni_sweep_subgroup(const gni_gpu *gpu) {
    const gni_gpu_caps *c = &gpu->caps;
    if (c->texts || !c->subgroup_ballot || !c->subgroup_arithmetic || c->max_buffers < 8) return 0;
    uint32_t size = c->subgroup;
    if (c->subgroup_control) size = GNI_MIN(GNI_MAX(32u, c->subgroup_min), c->subgroup_max);
    else if (c->subgroup_min != c->subgroup_max) return 0;
    return size >= 4 && size <= 64 ? size : 0;
}

// For n elements. On a CPU a thread may begin in the middle and find out about all tiles in front of it: where they are many,
// in more rounds of loops than the 65535 that lavapipe runs.
static gni_sweep_shape gni_sweep_tile(const gni_gpu *gpu, int64_t n, bool alone) {
    gni_sweep_shape s;
    const int64_t pool = gni_sweep_pool(gpu);
    const bool slow = gpu->caps.kind == GNI_GPU_CPU;
    s.subgroup = gni_sweep_subgroup(gpu);
    s.threads = GNI_MIN(GNI_MIN((uint32_t)GNI_SWEEP_THREADS, 16 * s.subgroup), gpu->caps.max_invocations);
    while (s.threads > 0 && s.threads / s.subgroup * 256 > pool) s.threads /= 2;
    if (s.threads < 64) s.threads = s.each = 0; // an invocation has four digits at most
    // CPUs compile slowly.
    else s.each = (uint32_t)GNI_MIN(slow ? 4 : alone ? GNI_SWEEP_ALONE : GNI_SWEEP_EACH, 2 * pool / s.threads);
    if (slow && n > (int64_t)512 * s.threads * s.each) s.threads = 0;
    return s;
}

// A workgroup that holds a row of n.
static gni_sweep_shape gni_sweep_row(const gni_gpu *gpu, int64_t n) {
    gni_sweep_shape s;
    const int64_t pool = gni_sweep_pool(gpu);
    s.subgroup = gni_sweep_subgroup(gpu);
    s.threads = s.each = 0;
    if (s.subgroup == 0) return s;
    const bool slow = gpu->caps.kind == GNI_GPU_CPU; // to compile
    const uint32_t least = slow ? 4 : 8, most = slow ? 4 : 16;
    for (uint32_t each = least; each <= most; each += 8)
        for (uint32_t t = 4 * s.subgroup; t <= gpu->caps.max_invocations && t / s.subgroup * 256 <= pool; t *= 2) {
            const int64_t fits = GNI_MIN((int64_t)each, pool / t);
            if (t < 64 || fits * t < n || (each == least && t > GNI_SWEEP_SPREAD)) continue;
            s.threads = t;
            s.each = (uint32_t)fits;
            return s;
        }
    return s;
}

static void gni_sweep_shaped(gni_job_call *c, gni_sweep_shape s) {
    gni_gpu_kernel *k = &c->generic;
    k->n_spec = GNI_S_SWEEP_SPECS;
    k->subgroup = c->gpu->caps.subgroup_control ? s.subgroup : 0;
    k->spec[GNI_S_SWEEP_THREADS] = s.threads;
    k->spec[GNI_S_SWEEP_SUBGROUP] = s.subgroup;
    k->spec[GNI_S_SWEEP_EACH] = s.each;
    // So that tests see both ways.
    k->spec[GNI_S_SWEEP_LOOKS] = c->gpu->caps.kind == GNI_GPU_CPU ? 2u : (uint32_t)GNI_SWEEP_LOOKS;
    k->spec[GNI_S_SWEEP_ONE] = 0;
    c->n_use = 8;
}

// Counts the digits of `rows` rows of n in `bytes` of mem, from `at` on.
static bool gni_sweep_tally(gni_job_call *c, int64_t rows, int64_t n, gni_gpu_mem *mem, uint64_t at, uint64_t bytes) {
    const bool slow = c->gpu->caps.kind == GNI_GPU_CPU; // lavapipe: few rounds for each
    const int64_t most = slow ? n : 4 * (int64_t)GNI_MAX(c->gpu->caps.multiprocessors, 1u);
    const int64_t parts = GNI_MIN(gni_job_ceil(n, 8192), gni_job_ceil(most, rows));
    c->use[5] = gni_order_use(mem, at, bytes);
    c->param[GNI_P_SORT_TILES] = (uint32_t)parts;
    return gni_gpu_fill(c->gpu, mem, at, bytes, 0) && gni_order_dispatch(c, GNI_MODULE_sweep_tally, rows * parts);
}

static bool gni_job_sort_row(gni_job_call *c, const gni_sort *s, gni_sweep_shape shape, const gni_gpu_use *out,
                             const gni_gpu_use *index) {
    gni_sweep_shaped(c, shape);
    c->use[6] = *out;
    c->use[7] = *index;
    if (!c->gpu->caps.addresses) // where every place wants something
        for (int i = 1; i < 6; i++) c->use[i] = *out;
    return gni_order_dispatch(c, GNI_MODULE_sweep_rows, s->rows);
}

static bool gni_job_sort_sweeps(gni_job_call *c, const gni_sort *s, gni_sweep_shape shape, const gni_gpu_use *out,
                                const gni_gpu_use *index) {
    gni_gpu *gpu = c->gpu;
    const bool places = s->index.buf != NULL;
    const int size = (int)gn_dtype_size(s->in.dtype);
    const int64_t total = s->rows * s->n, tiles = gni_job_ceil(s->n, (int64_t)shape.threads * shape.each),
                  groups = s->rows * tiles;
    const uint64_t keys = ((uint64_t)total * (size == 8 ? 8 : 4) + 255) / 256 * 256;
    const uint64_t from = places ? ((uint64_t)total * 4 + 255) / 256 * 256 : 0;
    const uint64_t counts = (uint64_t)(s->rows + groups) * (uint64_t)size * 1024, bytes = 2 * keys + 2 * from + counts;
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, bytes, &mem, "sort: device memory")) return false;
    gni_sweep_shaped(c, shape);
    c->use[1] = gni_order_use(&mem, 0, keys);
    c->use[2] = gni_order_use(&mem, keys, keys);
    c->use[3] = places ? gni_order_use(&mem, 2 * keys, from) : c->use[1];
    c->use[4] = places ? gni_order_use(&mem, 2 * keys + from, from) : c->use[2];
    c->use[6] = *out;
    c->use[7] = *index;
    bool ok = gni_sweep_tally(c, s->rows, s->n, &mem, 2 * keys + 2 * from, counts);
    c->param[GNI_P_SORT_TILES] = (uint32_t)tiles;
    for (int shift = 0; shift < 8 * size && ok; shift += 8) {
        c->param[GNI_P_SORT_SHIFT] = (uint32_t)shift;
        ok = gni_order_dispatch(c, GNI_MODULE_sweep_move, groups);
    }
    gni_gpu_free(gpu, &mem);
    return ok;
}

// A call that sorts words `key` (n) by the 8 bits from `shift` on, and words `from` that go with them, into `to`: the sorted
// keys, and what goes with them `gap` bytes behind. All stay in order that have the same bits.
static void gni_part_call(gni_job_call *c, gni_gpu *gpu, int64_t n, int shift, const gni_gpu_use *key,
                          const gni_gpu_use *from, const gni_gpu_use *to, uint64_t gap) {
    gni_job_open(c, gpu);
    gni_order_key(&c->generic, GN_U32, false, false);
    gni_sweep_shaped(c, gni_sweep_tile(gpu, n, false));
    c->generic.spec[GNI_S_SORT_PLACES] = 1;
    c->generic.spec[GNI_S_SWEEP_ONE] = 1;
    c->use[0] = c->use[1] = *key;
    c->use[2] = c->use[4] = *to;
    c->use[2].bytes = gap;
    c->use[4].offset += gap;
    c->use[4].bytes -= gap;
    c->use[3] = *from;
    c->use[6] = c->use[2];
    c->use[7] = c->use[4];
    c->n_param = GNI_P_SORT_WORDS;
    c->param[GNI_P_SORT_ROWS] = 1;
    c->param[GNI_P_SORT_N] = (uint32_t)n;
    c->param[GNI_P_SORT_SHIFT] = (uint32_t)shift;
}

static int64_t gni_part_tiles(const gni_gpu *gpu, int64_t n) {
    const gni_sweep_shape shape = gni_sweep_tile(gpu, n, false);
    return gni_job_ceil(n, (int64_t)shape.threads * shape.each);
}

// Bytes of the counts: of all elements, and of each tile.
static uint64_t gni_part_counts(const gni_gpu *gpu, int64_t n) { return (uint64_t)(1 + gni_part_tiles(gpu, n)) * 1024; }

// With the counts of all elements in `counts`, and zeros behind them. What goes with the keys begins at element `base` of
// its buffer.
static bool gni_part_move(gni_job_call *c, const gni_gpu_use *counts, uint32_t base) {
    const int64_t tiles = gni_part_tiles(c->gpu, c->param[GNI_P_SORT_N]);
    c->use[5] = *counts;
    c->param[GNI_P_SORT_TILES] = (uint32_t)tiles;
    c->param[GNI_P_SORT_IN_BASE] = base;
    return gni_order_dispatch(c, GNI_MODULE_sweep_move, tiles);
}

static bool gni_job_part(gni_gpu *gpu, int64_t n, int shift, const gni_gpu_use *key, const gni_gpu_use *from, uint32_t base,
                         const gni_gpu_use *to, uint64_t gap) {
    const uint64_t counts = gni_part_counts(gpu, n);
    gni_job_call c;
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, counts, &mem, "sort: device memory")) return false;
    gni_part_call(&c, gpu, n, shift, key, from, to, gap);
    const gni_gpu_use all = gni_order_use(&mem, 0, counts);
    bool ok = gni_sweep_tally(&c, 1, n, &mem, 0, counts) && gni_part_move(&c, &all, base);
    gni_gpu_free(gpu, &mem);
    return ok;
}

// ---- selection

enum { GNI_SELECT_RUNS = 512, GNI_SELECT_LONG = 1 << 25 }; // of all rows; elements

// How many of the first elements a workgroup sorts.
static int64_t gni_order_slots(const gni_sort *s) { return gn_dtype_size(s->in.dtype) == 8 ? 1024 : 2048; }

// Whether rows are longer than a workgroup sorts.
static bool gni_order_is_long(const gni_gpu *gpu, const gni_sort *s) {
    return s->n > 4 * gni_order_slots(s) && gni_sweep_row(gpu, s->n).threads == 0;
}

// Workgroups that go through a row.
static int64_t gni_order_splits(const gni_gpu *gpu, const gni_sort *s) {
    const int64_t most = (s->n < GNI_SELECT_LONG ? 4 : 16) * (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u);
    return GNI_MAX(1, GNI_MIN(gni_job_ceil(s->n, 4096), gni_job_ceil(most, s->rows)));
}

// Whether the elements that are asked for are found without sorting all: one or two, or the first few.
static bool gni_job_selects(const gni_gpu *gpu, const gni_sort *s) {
    if (s->rows > 64 || !gni_order_is_long(gpu, s)) return false;
    return (s->count <= 2 && s->index.buf == NULL) || (s->first == 0 && s->count <= gni_order_slots(s));
}

// `from` is what the kernels of sorts would get. Values alone: each one by a search of its own. Places too: the last one by
// a search, and all up to there, which a workgroup sorts.
static bool gni_job_sort_some(gni_job_call *from, const gni_sort *s, const gni_gpu_use *out, const gni_gpu_use *index) {
    gni_gpu *gpu = from->gpu;
    const bool all = s->count > 2 || s->index.buf != NULL;
    const int bits = 8 * (int)gn_dtype_size(s->in.dtype), word = GNI_MIN(bits, 32);
    const int64_t searches = all ? 1 : s->count, total = s->rows * searches, tiles = gni_job_ceil(s->n, GNI_SORT_TILE);
    // So that tests see several tiles.
    const int64_t most_runs = GNI_MAX((gpu->caps.kind == GNI_GPU_CPU ? 4 : GNI_SELECT_RUNS) / s->rows, 1);
    const int64_t run = gni_job_ceil(tiles, most_runs), runs = gni_job_ceil(tiles, run);
    const int64_t splits = gni_order_splits(gpu, s); // each adds up its counts
    const uint64_t state = ((uint64_t)total * 16 + 255) / 256 * 256, counts = (uint64_t)total * (4 << GNI_SELECT_BITS) + 256;
    const uint64_t sums = all ? ((uint64_t)(2 * s->rows * runs) * 4 + 255) / 256 * 256 : 0;
    const int64_t room = all ? GNI_MIN(GNI_MAX(512, (int64_t)1 << gni_job_log2_up(2 * s->count)), gni_order_slots(s)) : 0;
    const uint64_t keys = ((uint64_t)(s->rows * room) * 8 + 255) / 256 * 256;
    const uint64_t bytes = state + counts + sums + 2 * keys;
    gni_job_call c = *from;
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, bytes, &mem, "select: device memory")) return false;
    bool ok = gni_gpu_fill(gpu, &mem, 0, state + counts, 0); // of what is searched for nothing is known
    c.use[1] = gni_order_use(&mem, 0, state);
    c.use[2] = gni_order_use(&mem, state, counts);
    c.use[3] = all ? gni_order_use(&mem, state + counts + sums, keys) : c.use[2];
    c.use[4] = all ? gni_order_use(&mem, state + counts + sums + keys, keys) : c.use[2];
    c.n_use = 5;
    c.generic.n_spec = GNI_S_ORDER_SPECS;
    c.n_param = GNI_P_SELECT_WORDS;
    uint32_t *p = c.param;
    p[GNI_P_SELECT_ROWS] = (uint32_t)s->rows;
    p[GNI_P_SELECT_N] = (uint32_t)s->n;
    p[GNI_P_SELECT_IN_BASE] = from->param[GNI_P_SORT_IN_BASE];
    p[GNI_P_SELECT_SEARCHES] = (uint32_t)searches;
    p[GNI_P_SELECT_SPLITS] = (uint32_t)splits;
    p[GNI_P_SELECT_OUT_BASE] = from->param[GNI_P_SORT_OUT_BASE];
    p[GNI_P_SELECT_TAKE] = (uint32_t)s->count;
    p[GNI_P_SELECT_ROOM] = (uint32_t)room;
    p[GNI_P_SELECT_PLACE] = (uint32_t)(all ? s->count - 1 : s->first);
    for (int high = bits; high > 0 && ok;) { // digits from the top, each in one word
        const int left = (high - 1) % word + 1, width = GNI_MIN(left, GNI_SELECT_BITS - (s->n < GNI_ORDER_FEW));
        const bool first = high == bits;
        high -= width;
        p[GNI_P_SELECT_SHIFT] = (uint32_t)high;
        p[GNI_P_SELECT_WIDTH] = (uint32_t)width;
        ok = gni_order_dispatch(&c, GNI_MODULE_select_count, total * splits);
        if (!gpu->caps.addresses) ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_pick, s->rows);
        if (all && first) ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_collect, total * splits);
    }
    if (!all) {
        c.use[2] = c.use[3] = c.use[4] = *out;
        ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_end, gni_job_ceil(total, 256));
        gni_gpu_free(gpu, &mem);
        return ok;
    }
    c.use[2] = gni_order_use(&mem, state + counts, sums);
    p[GNI_P_SELECT_SPLITS] = (uint32_t)runs;
    p[GNI_P_SELECT_RUN] = (uint32_t)run;
    ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_tally, s->rows * runs) &&
         gni_order_dispatch(&c, GNI_MODULE_select_keep, s->rows * runs);
    const int log_row = gni_job_log2_up(room);
    from->use[1] = c.use[3];
    from->use[2] = c.use[4];
    from->use[3] = *out;
    from->use[4] = from->use[5] = *index;
    from->param[GNI_P_SORT_N] = (uint32_t)room;
    from->generic.spec[GNI_S_SORT_LOG_ROW] = (uint32_t)log_row;
    ok = ok && gni_order_dispatch(from, bits == 64 ? GNI_MODULE_sort_rows64 : GNI_MODULE_sort_rows,
                                  gni_job_ceil(s->rows, gni_order_slots(s) >> log_row));
    gni_gpu_free(gpu, &mem);
    return ok;
}

// Whether the first few of long rows are asked for.
static bool gni_job_tops(const gni_gpu *gpu, const gni_sort *s) {
    enum { TAKE = 128, ROWS = 1024 };
    return gpu->caps.addresses && s->first == 0 && s->count <= TAKE && s->rows <= ROWS &&
           gni_order_is_long(gpu, s);
}

// gni_job_sort for these. Groups are so large that, of their first elements, the one in rank RANK has about GOAL elements up
// to it.
static bool gni_job_sort_top(gni_job_call *c, const gni_sort *s, const gni_gpu_use *out, const gni_gpu_use *index) {
    enum { GOAL = 700, RANK = 10 };
    gni_gpu *gpu = c->gpu;
    const gni_gpu_jobs *ops = gni_job_state(gpu);
    const uint64_t state = (uint64_t)s->rows * 16 * (GNI_TOP_GROUPS + 1), held = (uint64_t)s->rows * 16 * GNI_TOP_ROOM;
    const double share = (double)GOAL / (double)s->n;
    const int64_t each = (int64_t)ceil(-log1p(-(double)RANK / GNI_TOP_GROUPS) / share);
    const int64_t rank = (int64_t)(GNI_TOP_GROUPS * -expm1(-(double)each * share));
    const int64_t lanes = (int64_t)1 << GNI_MIN(gni_job_log2_up(gni_job_ceil(each, 8)), 8);
    const int64_t splits = gni_order_splits(gpu, s);
    const uint32_t out_base = c->param[GNI_P_SORT_OUT_BASE], index_base = c->param[GNI_P_SORT_INDEX_BASE];
    gni_gpu_mem mem;
    if (!gni_gpu_need(gpu, state + held, &mem, "select: device memory")) return false;
    c->use[1] = gni_order_use(&mem, 0, state);
    c->use[2] = gni_order_use(&mem, state, held);
    c->use[3] = *out;
    c->use[4] = *index;
    c->n_use = 5;
    c->generic.n_spec = GNI_S_SORT_FIRST;
    c->n_param = GNI_P_TOP_WORDS;
    uint32_t *p = c->param;
    p[GNI_P_TOP_ROWS] = (uint32_t)s->rows;
    p[GNI_P_TOP_N] = (uint32_t)s->n;
    p[GNI_P_TOP_EACH] = (uint32_t)each;
    p[GNI_P_TOP_LANES] = (uint32_t)lanes;
    p[GNI_P_TOP_RANK] = ops != NULL && ops->top_rank > 0 ? ops->top_rank : (uint32_t)rank - 1;
    p[GNI_P_TOP_SPLITS] = (uint32_t)splits;
    p[GNI_P_TOP_TAKE] = (uint32_t)s->count;
    p[GNI_P_TOP_OUT_BASE] = out_base;
    p[GNI_P_TOP_INDEX_BASE] = index_base;
    const bool ok = gni_order_dispatch(c, GNI_MODULE_top_sample, s->rows * lanes) &&
                    gni_order_dispatch(c, GNI_MODULE_top_catch, s->rows * splits) &&
                    gni_order_dispatch(c, GNI_MODULE_top_last, s->rows);
    gni_gpu_free(gpu, &mem);
    return ok;
}

static bool gni_job_sort(gni_gpu *gpu, const gni_sort *s) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    const bool places = s->index.buf != NULL, values = s->out.buf != NULL, wide = gn_dtype_size(s->in.dtype) == 8;
    const int64_t took = s->rows * s->count, slots = gni_order_slots(s);
    gni_gpu_use out, index;
    uint32_t *p = c.param;
    if (!gni_order_operand(gpu, &s->in, s->rows * s->n, &c.use[0], &p[GNI_P_SORT_IN_BASE], false)) return false;
    if (values && !gni_order_operand(gpu, &s->out, took, &out, &p[GNI_P_SORT_OUT_BASE], true)) return false;
    if (places && !gni_order_operand(gpu, &s->index, took, &index, &p[GNI_P_SORT_INDEX_BASE], true)) return false;
    if (!values) out = index;
    if (!places) index = out;
    if (!values && GNI_TEXTS(gpu)) memset(&out, 0, sizeof out);
    if (!places && GNI_TEXTS(gpu)) memset(&index, 0, sizeof index);
    gni_order_key(&c.generic, s->in.dtype, s->descending, places);
    c.generic.n_spec = GNI_S_SORT_SPECS;
    c.generic.spec[GNI_S_SORT_PLACES] = places;
    c.generic.spec[GNI_S_SORT_VALUES] = values;
    c.n_use = 6;
    c.n_param = GNI_P_SORT_WORDS;
    p[GNI_P_SORT_ROWS] = (uint32_t)s->rows;
    p[GNI_P_SORT_N] = (uint32_t)s->n;
    p[GNI_P_SORT_SKIP] = (uint32_t)s->first;
    p[GNI_P_SORT_TAKE] = (uint32_t)s->count;
    p[GNI_P_SORT_ROW] = (uint32_t)s->n;
    if (gni_job_tops(gpu, s)) return gni_job_sort_top(&c, s, &out, &index);
    if (gni_job_selects(gpu, s)) return gni_job_sort_some(&c, s, &out, &index);
    if (s->n > GNI_SWEEP_ROWS) {
        const bool alone = !places && gn_dtype_size(s->in.dtype) <= 4;
        const gni_sweep_shape row = gni_sweep_row(gpu, s->n), tile = gni_sweep_tile(gpu, s->n, alone);
        if (row.threads > 0) return gni_job_sort_row(&c, s, row, &out, &index);
        if (tile.threads > 0 && s->n > slots) return gni_job_sort_sweeps(&c, s, tile, &out, &index);
        if (s->n > slots) return gni_job_sort_long(&c, s, &out, &index);
    }
    const int log_row = gni_job_log2_up(s->n);
    c.generic.spec[GNI_S_SORT_LOG_ROW] = (uint32_t)log_row;
    c.generic.spec[GNI_S_SORT_FIRST] = 1;
    c.use[3] = out;
    c.use[4] = index;
    if (!GNI_TEXTS(gpu)) { // where every place wants something
        c.use[1] = out;
        c.use[2] = c.use[5] = index;
    }
    return gni_order_dispatch(&c, wide ? GNI_MODULE_sort_rows64 : GNI_MODULE_sort_rows,
                              gni_job_ceil(s->rows, slots >> log_row));
}

// ---- searches and counts

static bool gni_job_search_ok(const gni_gpu *gpu, const gni_search *s) {
    return gpu->caps.max_buffers >= 3 && gni_order_reaches(gpu, s->n, 8) &&
           gni_order_reaches(gpu, s->count, 8);
}

static bool gni_job_search(gni_gpu *gpu, const gni_search *s) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    if (!gni_order_operand(gpu, &s->sorted, s->n, &c.use[0], &p[GNI_P_FIND_LINE_BASE], false) ||
        !gni_order_operand(gpu, &s->in, s->count, &c.use[1], &p[GNI_P_FIND_IN_BASE], false) ||
        !gni_order_operand(gpu, &s->out, s->count, &c.use[2], &p[GNI_P_FIND_OUT_BASE], true))
        return false;
    gni_order_key(&c.generic, s->in.dtype, false, true);
    c.n_use = 3;
    c.n_param = GNI_P_FIND_WORDS;
    p[GNI_P_FIND_N] = (uint32_t)s->count;
    p[GNI_P_FIND_LINE] = (uint32_t)s->n;
    p[GNI_P_FIND_RIGHT] = s->right;
    return gni_order_dispatch(&c, GNI_MODULE_find_search, GNI_MIN(gni_job_ceil(s->count, 256), 16384));
}

static bool gni_job_count_ok(const gni_gpu *gpu, const gni_count *d) {
    if (d->edges.buf != NULL && (GNI_TEXTS(gpu) || d->bins > GNI_COUNT_EDGES || d->in.dtype != GN_F32)) return false;
    if (!GNI_TEXTS(gpu) && gpu->caps.shared_bytes < 28680) return false; // count.comp's
    const bool weighs = gpu->caps.addresses && gpu->caps.float64 && gpu->caps.shared_bytes >= 16 * GNI_WEIGH_HOLDS;
    if (d->weight.buf != NULL && (!weighs || !gni_order_reaches(gpu, d->bins, 16))) return false;
    return d->least >= 0 && d->least < INT32_MAX && gpu->caps.max_buffers >= 3 &&
           gni_order_reaches(gpu, d->n, 8) && gni_order_reaches(gpu, d->bins, 8);
}

// In one pass, the low words of the counts where they stay.
static bool gni_job_count_once(gni_gpu *gpu, const gni_count *d) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    const bool edges = d->edges.buf != NULL;
    if (!gni_order_operand(gpu, &d->in, d->n, &c.use[0], &p[GNI_P_FIND_IN_BASE], false) ||
        !gni_order_operand(gpu, &d->out, d->bins, &c.use[1], &p[GNI_P_FIND_OUT_BASE], true) ||
        (edges && !gni_order_operand(gpu, &d->edges, d->bins + 1, &c.use[2], &p[GNI_P_FIND_LINE_BASE], false)))
        return false;
    if (!edges) c.use[2] = c.use[0];
    if (!gni_gpu_fill(gpu, c.use[1].mem, c.use[1].offset + (uint64_t)p[GNI_P_FIND_OUT_BASE] * 8, (uint64_t)d->bins * 8, 0))
        return false;
    c.n_use = 3;
    gni_order_key(&c.generic, GN_F32, false, true);
    c.generic.n_spec = GNI_S_FIND_SPECS;
    int64_t copies = GNI_COUNT_COPIES;
    while (copies > 1 && copies * d->bins > GNI_COUNT_HOLDS) copies /= 2;
    c.generic.spec[GNI_S_FIND_COPIES] = (uint32_t)copies;
    c.generic.spec[GNI_S_FIND_EDGES] = edges;
    c.n_param = GNI_P_FIND_WORDS;
    p[GNI_P_FIND_N] = (uint32_t)d->n;
    p[GNI_P_FIND_LINE] = (uint32_t)d->bins;
    p[GNI_P_FIND_LEAST] = (uint32_t)d->least;
    const float start = (float)d->start, scale = (float)d->scale;
    if (scale - scale == 0.0f && start - start == 0.0f) { // else edges are searched
        memcpy(&p[GNI_P_FIND_START], &start, 4);
        memcpy(&p[GNI_P_FIND_SCALE], &scale, 4);
    }
    const int64_t units = (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u), few = GNI_MIN(gni_job_ceil(d->n, 1024), units);
    const int64_t most = gpu->caps.kind == GNI_GPU_CPU ? gni_job_ceil(d->n, 65536) : GNI_COUNT_GROUPS * units;
    return gni_order_dispatch(&c, GNI_MODULE_count, GNI_MAX(few, GNI_MIN(gni_job_ceil(d->n, 4096), most)));
}

// Sums of weights: how large they are, the sums as fixed-point numbers, and the results (weigh.comp).
static bool gni_job_weigh(gni_gpu *gpu, const gni_count *d) {
    gni_job_call c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    if (!gni_order_operand(gpu, &d->in, d->n, &c.use[0], &p[GNI_P_FIND_IN_BASE], false) ||
        !gni_order_operand(gpu, &d->weight, d->n, &c.use[1], &p[GNI_P_FIND_LINE_BASE], false) ||
        !gni_order_operand(gpu, &d->out, d->bins, &c.use[2], &p[GNI_P_FIND_OUT_BASE], true))
        return false;
    c.n_use = 3;
    const uint64_t bytes = (uint64_t)d->bins * 16;
    bool ok = gni_job_scratch(&c, bytes, "gn_bincount") && gni_gpu_fill(gpu, &c.scratch[0], 0, bytes, 0);
    gni_order_key(&c.generic, GN_F64, false, true);
    c.generic.n_spec = GNI_S_FIND_SPECS;
    int64_t copies = 16;
    while (copies > 0 && copies * d->bins > GNI_WEIGH_HOLDS) copies /= 2;
    c.generic.spec[GNI_S_FIND_COPIES] = (uint32_t)copies;
    c.n_param = GNI_P_FIND_WORDS;
    p[GNI_P_FIND_N] = (uint32_t)d->n;
    p[GNI_P_FIND_LINE] = (uint32_t)d->bins;
    p[GNI_P_FIND_LEAST] = (uint32_t)d->least;
    p[GNI_P_FIND_BITS] = (uint32_t)(94 - gni_job_log2_up(d->n));
    const int64_t units = GNI_MAX(gpu->caps.multiprocessors, 1u), most = gpu->caps.kind == GNI_GPU_CPU ? 65535 : 4 * units;
    for (uint32_t step = 0; step < 3; step++) {
        c.generic.spec[GNI_S_FIND_STEP] = step;
        ok = ok && gni_order_dispatch(&c, GNI_MODULE_weigh, GNI_MIN(gni_job_ceil(step < 2 ? d->n : d->bins, 256), most));
    }
    gni_job_drop_scratch(&c);
    return ok;
}

static bool gni_job_count(gni_gpu *gpu, const gni_count *d) {
    if (d->weight.buf != NULL) return gni_job_weigh(gpu, d);
    if (!GNI_TEXTS(gpu)) return gni_job_count_once(gpu, d);
    gni_job_call c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    gni_gpu_use out;
    gni_gpu_mem mem;
    const uint64_t bytes = (uint64_t)d->bins * 4;
    if (!gni_order_operand(gpu, &d->in, d->n, &c.use[0], &p[GNI_P_FIND_IN_BASE], false) ||
        !gni_order_operand(gpu, &d->out, d->bins, &out, &p[GNI_P_FIND_OUT_BASE], true))
        return false;
    if (!gni_gpu_need(gpu, bytes, &mem, "count: device memory")) return false;
    p[GNI_P_FIND_N] = (uint32_t)d->n;
    p[GNI_P_FIND_LINE] = (uint32_t)d->bins;
    p[GNI_P_FIND_LEAST] = (uint32_t)d->least;
    c.n_use = 3;
    c.n_param = GNI_P_FIND_WORDS;
    c.use[1] = c.use[2] = gni_order_use(&mem, 0, bytes);
    const int64_t most = 8 * (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u);
    bool ok = gni_gpu_fill(gpu, &mem, 0, bytes, 0) &&
              gni_order_dispatch(&c, GNI_MODULE_find_count, GNI_MIN(gni_job_ceil(d->n, 1024), most));
    c.use[0] = c.use[1];
    c.use[0].write = false;
    c.use[1] = c.use[2] = out;
    ok = ok && gni_order_dispatch(&c, GNI_MODULE_find_widen, GNI_MIN(gni_job_ceil(d->bins, 256), 16384));
    gni_gpu_free(gpu, &mem);
    return ok;
}

#endif // GNI_GPU
