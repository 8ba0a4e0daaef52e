// >>cpu_turned
// Elementwise programs on the CPU whose operands are transposed all alike. From outside: gni_map_turned.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu.h"
#endif

#ifndef __EMSCRIPTEN__

typedef struct gni_turned_job {
    gn_context *g;
    const gni_map *m;
    gni_map turned, copy; // to memory in the operands' order, and from there
    char *memory;         // of each worker
    size_t bytes;
    int along; // the outermost axis there, taken in parts
    int64_t part;
} gni_turned_job;

static void gni_turned_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_turned_job *j = (const gni_turned_job *)arg;
    const gni_map *m = j->m;
    gni_map turned = j->turned, copy = j->copy;
    gni_buffer spare = *m->out->buf;
    spare.host = j->memory + (size_t)worker * j->bytes;
    copy.in[0].buf = turned.out[0].buf = turned.out[1].buf = &spare;
    for (int64_t at = begin * j->part; at < GNI_MIN(end * j->part, m->dim[j->along]); at += j->part) {
        turned.dim[0] = copy.dim[j->along] = GNI_MIN(j->part, m->dim[j->along] - at);
        for (int k = 0; k < m->program.n_in; k++) turned.in[k].offset = m->in[k].offset + at * m->in[k].stride[j->along];
        copy.out[0].offset = (m->out->offset + at * m->out->stride[j->along]) / m->program.n_out;
        gni_cpu_map(j->g, &turned);
        gni_cpu_map(j->g, &copy);
    }
}

// Where all that is read lies in one order of axes, and it is not the result's: parts of the result in that order,
// which are then transposed as they are, whatever the program. False: the map stays to be done.
static bool gni_map_turned(gn_context *g, const gni_map *m) {
    enum { MANY = 4096, PART = 1 << 15 };
    const gni_operand *out = m->out;
    const int last = m->rank - 1, outs = m->program.n_out;
    int order[GN_MAX_RANK];
    int64_t want[GN_MAX_RANK], n = 1;
    if (last < 1 || outs > 2 || gni_is_copy(&m->program) || out->stride[last] != outs) return false;
    if (outs == 2 && (out[1].buf != out->buf || out[1].offset != out->offset + 1)) return false; // parts of complex numbers
    if (!gni_map_order(m, order) || order[last] == last) return false;
    for (int i = last; i >= 0; i--) want[order[i]] = n, n *= m->dim[order[i]];
    if (n < MANY) return false;
    gni_turned_job j;
    const gn_dtype t = outs == 1 ? out->dtype : out->dtype == GN_F32 ? GN_C64 : GN_C128;
    const int64_t wide = m->dim[order[0]];
    j.g = g, j.m = m, j.along = order[0];
    j.part = GNI_MIN(wide, GNI_MAX(PART / (n / wide), 16));
    j.bytes = (size_t)(n / wide * j.part) * gn_dtype_size(t);
    j.memory = (char *)gni_alloc(g, j.bytes * (size_t)gni_pool_threads(g->pool));
    if (j.memory == NULL) return false;
    j.turned = *m;
    memset(&j.copy, 0, sizeof j.copy);
    j.copy.rank = m->rank;
    memcpy(j.copy.dim, m->dim, sizeof j.copy.dim);
    j.copy.program.n_in = j.copy.program.n_out = 1;
    j.copy.in[0].dtype = j.copy.program.in_dtype[0] = j.copy.program.out_dtype[0] = t;
    j.copy.out[0] = *out;
    j.copy.out[0].dtype = t;
    for (int i = 0; i <= last; i++) {
        j.turned.dim[i] = m->dim[order[i]];
        for (int k = 0; k < m->program.n_in; k++) j.turned.in[k].stride[i] = m->in[k].stride[order[i]];
        for (int k = 0; k < outs; k++) j.turned.out[k].stride[i] = want[order[i]] * outs;
        j.copy.in[0].stride[i] = want[i];
        j.copy.out[0].stride[i] = out->stride[i] / outs;
    }
    for (int k = 0; k < outs; k++) j.turned.out[k].offset = k;
    gni_parallel(g->pool, (wide - 1) / j.part + 1, 1, gni_turned_task, &j);
    gni_free(g, j.memory);
    return true;
}

#endif // __EMSCRIPTEN__
