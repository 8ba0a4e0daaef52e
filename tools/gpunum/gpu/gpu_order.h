// >>gpu_order
// Scans, sorts, searches and counts on a GPU. From outside: gni_job_scan, gni_job_sort, gni_job_search, gni_job_count and what
// says whether they are done there.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_order.h"
#include "../gpu/gpu_jobs.h"
#endif

#if GNI_GPU

// Whether one dispatch reaches so many bytes.
static bool gni_order_reaches(const gni_gpu *gpu, int64_t count, int64_t bytes) {
    uint64_t most = (uint64_t)GNI_GPU_REACH;
    if (!gpu->caps.addresses) most = GNI_MIN(gpu->caps.max_storage_range, most);
    return count < INT32_MAX / 2 && (uint64_t)count * (uint64_t)bytes < most - 512;
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
    uint32_t dtype, flags; // GNI_T_C64: values of two words
    bool integer;
    int64_t outer, n, inner;
    gni_gpu_use in, out;
    uint32_t in_base, out_base;
} gni_order_scan;

static bool gni_order_scan_phase(gni_gpu *gpu, const gni_order_scan *s, const gni_gpu_use *parts, uint32_t phase, int64_t tiles,
                                 int64_t groups) {
    gni_job_call c;
    memset(&c, 0, sizeof c);
    c.gpu = gpu;
    c.use[0] = s->in;
    if (phase != GNI_F_SCAN_TOTALS) c.use[1] = s->out;
    else if (!gpu->caps.texts) c.use[1] = *parts; // which is bound once there
    if (parts != NULL) c.use[2] = *parts;
    else if (!gpu->caps.texts) c.use[2] = s->out;
    c.n_use = 3;
    c.generic.n_spec = GNI_S_SCAN_SPECS;
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
    return gni_order_dispatch(&c, GNI_MODULE_scan, groups);
}

// Tiles' totals, their scan, then the tiles.
static bool gni_order_scan_run(gni_gpu *gpu, const gni_order_scan *s) {
    const int64_t tiles = gni_job_ceil(s->n, GNI_SCAN_TILE);
    gni_gpu_mem mem;
    if (s->inner > 1)
        return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_COLUMNS, 1, gni_job_ceil(s->outer * s->inner, 256));
    if (tiles == 1) return gni_order_scan_phase(gpu, s, NULL, GNI_F_SCAN_TILES, 1, s->outer);
    const uint64_t bytes = (uint64_t)(s->outer * tiles) * 8;
    if (!gni_gpu_alloc(gpu, bytes, &mem)) {
        gni_fail_memory(gpu->g, "scan: device memory", bytes);
        return false;
    }
    const gni_gpu_use parts = gni_order_use(&mem, 0, bytes);
    gni_order_scan inner = *s;
    inner.dtype = GNI_T_C64;
    inner.flags = GNI_F_SCAN_EXCLUSIVE;
    inner.n = tiles;
    inner.in = inner.out = parts;
    inner.in.write = false;
    inner.in_base = inner.out_base = 0;
    const bool ok = gni_order_scan_phase(gpu, s, &parts, GNI_F_SCAN_TOTALS, tiles, s->outer * tiles) &&
                    gni_order_scan_run(gpu, &inner) &&
                    gni_order_scan_phase(gpu, s, &parts, GNI_F_SCAN_TILES, tiles, s->outer * tiles);
    gni_gpu_free(gpu, &mem);
    return ok;
}

static bool gni_job_scan_ok(const gni_gpu *gpu, const gni_scan *s) {
    const gn_dtype t = s->in.dtype;
    const bool sums = s->op == GNI_SCAN_SUM || s->op == GNI_SCAN_PROD, has = t != GN_F64 && (t != GN_U64 || sums);
    return has && gpu->caps.max_buffers >= 3 &&
           gni_order_reaches(gpu, s->outer * s->n * s->inner, GNI_MAX((int64_t)gn_dtype_size(t), 8));
}

static bool gni_job_scan(gni_gpu *gpu, const gni_scan *d) {
    gni_order_scan s;
    memset(&s, 0, sizeof s);
    const int64_t count = d->outer * d->n * d->inner;
    s.op = d->op;
    s.dtype = d->in.dtype == GN_U64 ? GNI_T_I64 : (uint32_t)d->in.dtype;
    s.integer = !gni_is_float(d->in.dtype);
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
    if (!gni_gpu_alloc(gpu, bytes, &mem)) {
        gni_fail_memory(gpu->g, "sort: device memory", bytes);
        return false;
    }
    gni_gpu_use key[2], place[2];
    key[0] = gni_order_use(&mem, 0, keys);
    key[1] = gni_order_use(&mem, keys, keys);
    place[0] = places ? gni_order_use(&mem, 2 * keys, from) : key[0];
    place[1] = places ? gni_order_use(&mem, 2 * keys + from, from) : key[1];
    gni_order_scan scan;
    memset(&scan, 0, sizeof scan);
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

// ---- selection

// How many of the first elements a workgroup sorts.
static int64_t gni_order_slots(const gni_sort *s) { return gn_dtype_size(s->in.dtype) == 8 ? 1024 : 2048; }

// Whether the elements that are asked for are found without sorting all: one or two, or the first few.
static bool gni_job_selects(const gni_sort *s) {
    if (s->n <= 4 * gni_order_slots(s) || s->rows > 64) return false;
    return (s->count <= 2 && s->index.buf == NULL) || (s->first == 0 && s->count <= gni_order_slots(s));
}

// `from` is what the kernels of sorts would get. Values alone: each one by a search of its own. Places too: the last one by a
// search, and all up to there, which a workgroup sorts.
static bool gni_job_sort_some(gni_job_call *from, const gni_sort *s, const gni_gpu_use *out, const gni_gpu_use *index) {
    static const int step[] = {GNI_MODULE_select_count, GNI_MODULE_select_pick};
    gni_gpu *gpu = from->gpu;
    const bool all = s->count > 2 || s->index.buf != NULL;
    const int bits = 8 * (int)gn_dtype_size(s->in.dtype), word = GNI_MIN(bits, 32);
    const int64_t searches = all ? 1 : s->count, total = s->rows * searches, tiles = gni_job_ceil(s->n, GNI_SORT_TILE);
    const int64_t most = 16 * (int64_t)GNI_MAX(gpu->caps.multiprocessors, 1u);
    const int64_t splits = GNI_MAX(1, GNI_MIN(gni_job_ceil(s->n, 4096), gni_job_ceil(most, total)));
    const uint64_t state = ((uint64_t)total * 16 + 255) / 256 * 256, counts = (uint64_t)total * 8192;
    const uint64_t sums = all ? ((uint64_t)(2 * s->rows * tiles) * 4 + 255) / 256 * 256 : 0;
    const uint64_t keys = all ? ((uint64_t)(s->rows * s->count) * 8 + 255) / 256 * 256 : 0;
    const uint64_t bytes = state + counts + sums + 2 * keys;
    gni_job_call c = *from;
    gni_gpu_mem mem;
    if (!gni_gpu_alloc(gpu, bytes, &mem)) {
        gni_fail_memory(gpu->g, "select: device memory", bytes);
        return false;
    }
    // What is searched for: two words of nothing yet, its place, and a word that nobody reads.
    bool ok = gni_gpu_fill(gpu, &mem, 0, state + counts, 0);
    for (int64_t i = 0; i < total && ok; i++) {
        const uint64_t place = (uint64_t)(all ? s->count - 1 : s->first + i / s->rows);
        ok = gni_gpu_fill(gpu, &mem, (uint64_t)i * 16 + 8, 4, (uint32_t)place);
    }
    c.use[1] = gni_order_use(&mem, 0, state);
    c.use[2] = gni_order_use(&mem, state, counts);
    c.use[3] = c.use[4] = c.use[2];
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
    for (int high = bits; high > 0 && ok;) { // digits of 11 bits from the top, each in one word
        const int left = (high - 1) % word + 1, width = GNI_MIN(left, 11);
        high -= width;
        p[GNI_P_SELECT_SHIFT] = (uint32_t)high;
        p[GNI_P_SELECT_WIDTH] = (uint32_t)width;
        for (int i = 0; i < 2 && ok; i++) ok = gni_order_dispatch(&c, step[i], i == 0 ? total * splits : total);
    }
    if (!all) {
        c.use[2] = c.use[3] = c.use[4] = *out;
        ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_end, gni_job_ceil(total, 256));
        gni_gpu_free(gpu, &mem);
        return ok;
    }
    gni_order_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.op = GNI_SCAN_SUM;
    scan.dtype = GNI_T_U32;
    scan.flags = GNI_F_SCAN_EXCLUSIVE;
    scan.integer = true;
    scan.outer = 2 * s->rows;
    scan.n = tiles;
    scan.inner = 1;
    scan.in = scan.out = c.use[2] = gni_order_use(&mem, state + counts, sums);
    c.use[3] = gni_order_use(&mem, state + counts + sums, keys);
    c.use[4] = gni_order_use(&mem, state + counts + sums + keys, keys);
    p[GNI_P_SELECT_SPLITS] = (uint32_t)tiles;
    ok = ok && gni_order_dispatch(&c, GNI_MODULE_select_tally, s->rows * tiles) && gni_order_scan_run(gpu, &scan) &&
         gni_order_dispatch(&c, GNI_MODULE_select_keep, s->rows * tiles);
    const int log_row = gni_job_log2_up(s->count);
    from->use[1] = c.use[3];
    from->use[2] = c.use[4];
    from->use[3] = *out;
    from->use[4] = from->use[5] = *index;
    from->param[GNI_P_SORT_N] = (uint32_t)s->count;
    from->generic.spec[GNI_S_SORT_LOG_ROW] = (uint32_t)log_row;
    ok = ok && gni_order_dispatch(from, bits == 64 ? GNI_MODULE_sort_rows64 : GNI_MODULE_sort_rows,
                                  gni_job_ceil(s->rows, gni_order_slots(s) >> log_row));
    gni_gpu_free(gpu, &mem);
    return ok;
}

static bool gni_job_sort(gni_gpu *gpu, const gni_sort *s) {
    gni_job_call c;
    memset(&c, 0, sizeof c);
    c.gpu = gpu;
    const bool places = s->index.buf != NULL, values = s->out.buf != NULL, wide = gn_dtype_size(s->in.dtype) == 8;
    const int64_t took = s->rows * s->count, slots = gni_order_slots(s);
    gni_gpu_use out, index;
    uint32_t *p = c.param;
    if (!gni_order_operand(gpu, &s->in, s->rows * s->n, &c.use[0], &p[GNI_P_SORT_IN_BASE], false)) return false;
    if (values && !gni_order_operand(gpu, &s->out, took, &out, &p[GNI_P_SORT_OUT_BASE], true)) return false;
    if (places && !gni_order_operand(gpu, &s->index, took, &index, &p[GNI_P_SORT_INDEX_BASE], true)) return false;
    if (!values) out = index;
    if (!places) index = out;
    if (!values && gpu->caps.texts) memset(&out, 0, sizeof out);
    if (!places && gpu->caps.texts) memset(&index, 0, sizeof index);
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
    if (gni_job_selects(s)) return gni_job_sort_some(&c, s, &out, &index);
    if (s->n > slots) return gni_job_sort_long(&c, s, &out, &index);
    const int log_row = gni_job_log2_up(s->n);
    c.generic.spec[GNI_S_SORT_LOG_ROW] = (uint32_t)log_row;
    c.generic.spec[GNI_S_SORT_FIRST] = 1;
    c.use[3] = out;
    c.use[4] = index;
    if (!gpu->caps.texts) { // where every place wants something
        c.use[1] = out;
        c.use[2] = c.use[5] = index;
    }
    return gni_order_dispatch(&c, wide ? GNI_MODULE_sort_rows64 : GNI_MODULE_sort_rows, gni_job_ceil(s->rows, slots >> log_row));
}

// ---- searches and counts

static bool gni_job_search_ok(const gni_gpu *gpu, const gni_search *s) {
    return gpu->caps.max_buffers >= 3 && gni_order_reaches(gpu, s->n, 8) &&
           gni_order_reaches(gpu, s->count, 8);
}

static bool gni_job_search(gni_gpu *gpu, const gni_search *s) {
    gni_job_call c;
    memset(&c, 0, sizeof c);
    c.gpu = gpu;
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
    return d->weight.buf == NULL && d->least >= 0 && d->least < INT32_MAX && gpu->caps.max_buffers >= 3 &&
           gni_order_reaches(gpu, d->n, 8) && gni_order_reaches(gpu, d->bins, 8);
}

static bool gni_job_count(gni_gpu *gpu, const gni_count *d) {
    gni_job_call c;
    memset(&c, 0, sizeof c);
    c.gpu = gpu;
    uint32_t *p = c.param;
    gni_gpu_use out;
    gni_gpu_mem mem;
    const uint64_t bytes = (uint64_t)d->bins * 4;
    if (!gni_order_operand(gpu, &d->in, d->n, &c.use[0], &p[GNI_P_FIND_IN_BASE], false) ||
        !gni_order_operand(gpu, &d->out, d->bins, &out, &p[GNI_P_FIND_OUT_BASE], true))
        return false;
    if (!gni_gpu_alloc(gpu, bytes, &mem)) {
        gni_fail_memory(gpu->g, "count: device memory", bytes);
        return false;
    }
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
