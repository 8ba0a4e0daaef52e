// >>gpu_conv
// Convolutions on the GPU: images with their channels last, and products that read windows of them.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../gpu/gpu_matmul.h"
#endif

#if GNI_GPU

static bool gni_job_has_windows(const gni_gpu *gpu) {
    return (gpu->caps.addresses || GNI_TEXTS(gpu)) && gni_job_has(gpu, GNI_MODULE_image);
}

// Products of up to m rows and n columns, and images of so many places.
static bool gni_job_windows_fit(const gni_gpu *gpu, int64_t m, int64_t n, int64_t places) {
    const int64_t most = (int64_t)gpu->caps.max_groups[0];
    return gni_job_ceil(m, 32) * gni_job_ceil(n, 32) <= most && gni_job_ceil(places, 64) <= most &&
           gni_job_ceil(m, 4) <= (int64_t)gpu->caps.max_groups[1];
}

// Workgroups of an image: places, channels.
static void gni_job_image_groups(const gni_image *m, int64_t *groups) {
    groups[0] = gni_job_ceil(m->n * gni_extent_product(m->size, 3), GNI_FLOATS_PLACES);
    groups[1] = gni_job_ceil(m->width, 32);
}

static bool gni_job_image(gni_gpu *gpu, const gni_image *m) {
    gni_job_call c;
    const int64_t places = m->n * gni_extent_product(m->size, 3), one = 1;
    int64_t groups[2];
    gni_job_image_groups(m, groups);
    const int64_t all = places * m->width + (m->tells ? groups[0] * groups[1] : 0);
    const int64_t dim[5] = {m->n, m->channels, m->have[0], m->have[1], m->have[2]};
    gni_job_open(&c, gpu);
    if (!gni_job_reach(gpu, &m->in, dim, m->in.stride, 5, &c.use[0], &c.param[GNI_P_IMAGE_IN_BASE]) ||
        !gni_job_reach(gpu, &m->out, &all, &one, 1, &c.use[1], &c.param[GNI_P_IMAGE_OUT_BASE]))
        return false;
    c.use[1].write = true;
    c.n_use = 2;
    c.n_param = GNI_P_IMAGE_WORDS;
    c.param[GNI_P_IMAGE_PLACES] = (uint32_t)places;
    c.param[GNI_P_IMAGE_CHANNELS] = (uint32_t)m->channels;
    c.param[GNI_P_IMAGE_WIDTH] = (uint32_t)m->width;
    c.param[GNI_P_IMAGE_STEP_CHANNEL] = (uint32_t)m->in.stride[1];
    c.param[GNI_P_IMAGE_STEP_IMAGE] = (uint32_t)m->in.stride[0];
    for (int i = 0; i < 3; i++) {
        uint32_t *w = &c.param[GNI_P_IMAGE_AXIS + 6 * i];
        gni_job_divider(m->size[2 - i], w);
        w[3] = (uint32_t)m->before[2 - i];
        w[4] = (uint32_t)m->have[2 - i];
        w[5] = (uint32_t)m->in.stride[4 - i];
    }
    c.param[GNI_P_IMAGE_LARGEST] = c.param[GNI_P_IMAGE_OUT_BASE] + (uint32_t)(places * m->width);
    c.generic.module = GNI_MODULE_image;
    c.generic.n_spec = GNI_S_IMAGE_SPECS;
    c.generic.spec[GNI_S_IMAGE_IN_DTYPE] = (uint32_t)m->in.dtype;
    c.generic.spec[GNI_S_IMAGE_OUT_DTYPE] = (uint32_t)m->out.dtype;
    c.generic.spec[GNI_S_IMAGE_LARGEST] = m->tells;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), groups[0], groups[1], 1);
}

// ---- groups of few channels

static bool gni_job_has_depth(const gni_gpu *gpu) { return gpu->caps.addresses && gni_job_has(gpu, GNI_MODULE_depth); }

static bool gni_job_depth(gni_gpu *gpu, const gni_depth *d) {
    gni_job_call c;
    const bool weight = d->step == GNI_DEPTH_WEIGHT;
    const bool back = d->step == GNI_DEPTH_BACK;
    const int64_t made = weight ? d->c / d->read : d->c, read = made / d->made * d->read;
    const int64_t from[4] = {d->n, read, d->from[0], d->from[1]}, to[4] = {d->n, made, d->to[0], d->to[1]},
                  kernel[4] = {back ? read : made, back ? d->made : d->read, d->k[0], d->k[1]},
                  places = d->n * d->to[0] * d->to[1], one = 1,
                  results = weight ? d->parts * d->c * d->k[0] * d->k[1] : places * d->c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    if (!gni_job_reach(gpu, &d->in, from, d->in.stride, 4, &c.use[0], &p[GNI_P_DEPTH_IN]) ||
        !gni_job_reach(gpu, &d->other, weight ? to : kernel, d->other.stride, 4, &c.use[1], &p[GNI_P_DEPTH_OTHER]) ||
        !gni_job_reach(gpu, &d->out, &results, &one, 1, &c.use[2], &p[GNI_P_DEPTH_OUT]))
        return false;
    c.use[2].write = true;
    c.n_use = 3;
    c.n_param = GNI_P_DEPTH_WORDS;
    p[GNI_P_DEPTH_N] = (uint32_t)(weight ? places : results / d->block);
    p[GNI_P_DEPTH_PARTS] = (uint32_t)d->parts;
    for (int i = 0; i < 2; i++) {
        p[GNI_P_DEPTH_FROM + i] = (uint32_t)d->from[i];
        p[GNI_P_DEPTH_PAD + i] = (uint32_t)d->pad[i];
        p[GNI_P_DEPTH_DILATION + i] = (uint32_t)d->dilation[i];
        c.generic.spec[GNI_S_DEPTH_ROWS + i] = (uint32_t)d->k[i];
        c.generic.spec[GNI_S_DEPTH_DOWN + i] = (uint32_t)d->stride[i];
    }
    gni_job_divider(d->to[1], &p[GNI_P_DEPTH_TO_W]);
    gni_job_divider(d->to[0], &p[GNI_P_DEPTH_TO_H]);
    gni_job_divider(d->c / d->block, &p[GNI_P_DEPTH_CHANNELS]);
    for (int i = 0; i < 4; i++) {
        p[GNI_P_DEPTH_IN + 1 + i] = (uint32_t)d->in.stride[i];
        p[GNI_P_DEPTH_OTHER + 1 + i] = (uint32_t)d->other.stride[i];
    }
    c.generic.module = GNI_MODULE_depth;
    c.generic.n_spec = GNI_S_DEPTH_SPECS;
    c.generic.spec[GNI_S_DEPTH_STEP] = d->step;
    c.generic.spec[GNI_S_DEPTH_READ] = (uint32_t)d->read;
    c.generic.spec[GNI_S_DEPTH_MADE] = (uint32_t)d->made;
    c.generic.spec[GNI_S_DEPTH_BLOCK] = (uint32_t)d->block;
    c.generic.spec[GNI_S_DEPTH_IN] = (uint32_t)d->in.dtype;
    c.generic.spec[GNI_S_DEPTH_OUT] = (uint32_t)d->out.dtype;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            weight ? d->parts * d->c / d->block : gni_job_ceil(results / d->block, 1024), 1, 1);
}

// ---- pooling

static bool gni_job_pooling_ok(const gni_gpu *gpu, const gni_pooling *j) {
    bool fits = gpu->caps.addresses && gni_job_has(gpu, GNI_MODULE_pool);
    fits = fits && (j->in.dtype == GN_F32 || gni_job_is_half(j->in.dtype));
    for (int i = 0; i < 2; i++)
        fits = fits && GNI_MAX(j->size[i] * j->dilation[i], j->stride[i]) < INT32_MAX / 4 &&
               GNI_MAX(j->from[i], j->to[i]) < INT32_MAX / 4;
    return fits;
}

static bool gni_job_pooling(gni_gpu *gpu, const gni_pooling *j) {
    const gni_operand *const all[4] = {&j->in, &j->taps, &j->out, &j->places};
    const int64_t from = j->n * j->from[0] * j->from[1], to = j->n * j->to[0] * j->to[1], one = 1;
    gni_job_call c;
    gni_job_open(&c, gpu);
    uint32_t *p = c.param;
    for (int i = 0; i < 4; i++) {
        c.use[i] = c.use[0];
        const int64_t *n = i < 2 ? &from : &to;
        if (all[i]->buf != NULL && !gni_job_reach(gpu, all[i], n, &one, 1, &c.use[i], &p[GNI_P_POOL_BASE + i])) return false;
        c.use[i].write = i >= 2 && all[i]->buf != NULL;
    }
    c.n_use = 4;
    c.n_param = GNI_P_POOL_WORDS;
    p[GNI_P_POOL_N] = (uint32_t)to;
    memcpy(&p[GNI_P_POOL_VALUE], &j->value, sizeof j->value);
    for (int i = 0; i < 2; i++) {
        p[GNI_P_POOL_FROM + i] = (uint32_t)j->from[i];
        p[GNI_P_POOL_PAD + i] = (uint32_t)j->pad[i];
        c.generic.spec[GNI_S_POOL_ROWS + i] = (uint32_t)j->size[i];
        c.generic.spec[GNI_S_POOL_DOWN + i] = (uint32_t)j->stride[i];
        c.generic.spec[GNI_S_POOL_DILATION_H + i] = (uint32_t)j->dilation[i];
    }
    gni_job_divider(j->to[1], &p[GNI_P_POOL_TO_W]);
    gni_job_divider(j->to[0], &p[GNI_P_POOL_TO_H]);
    c.generic.module = GNI_MODULE_pool;
    c.generic.n_spec = GNI_S_POOL_SPECS;
    c.generic.spec[GNI_S_POOL_STEP] = j->step;
    c.generic.spec[GNI_S_POOL_DTYPE] = (uint32_t)j->in.dtype;
    c.generic.spec[GNI_S_POOL_HOW] =
        gni_job_flag(j->places.buf != NULL, GNI_F_POOL_TAPS) | gni_job_flag(j->inside, GNI_F_POOL_INSIDE);
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT),
                            gni_job_ceil(to, gni_job_is_half(j->in.dtype) ? 512 : 256), 1, 1);
}

// ---- by tiles of 4x4 results

#define GNI_WINOGRAD_BYTES 1073741824.0 // that what the tiles become may take

static bool gni_job_has_winograd(const gni_gpu *gpu) { return gpu->caps.addresses && gni_job_has(gpu, GNI_MODULE_winograd); }

// Eights of them, as matrix units read them: those behind the last image's are zeros.
static int64_t gni_winograd_tiles(const gni_winograd *m) {
    return 8 * gni_job_ceil(m->n * gni_job_ceil(m->out[0], 4) * gni_job_ceil(m->out[1], 4), 8);
}

// Images that go at once. 0: not one does.
static int64_t gni_winograd_images(gni_gpu *gpu, const gni_winograd *m) {
    const gni_gpu_jobs *ops = gni_job_state(gpu);
    const double most = GNI_MIN(GNI_WINOGRAD_BYTES, (double)gni_job_most_bytes(gpu) / 4.0),
                 each = 144.0 * (double)gni_winograd_tiles(m) / (double)m->n * (double)(m->c + m->o);
    const int64_t fit = (int64_t)(most / each), pieces = fit < 1 ? 0 : gni_job_ceil(m->n, fit);
    return fit < 1 ? 0 : ops != NULL && ops->winograd_force == 2 ? 1 : gni_job_ceil(m->n, pieces);
}

// Microseconds of `batches` products of float32, exact or taken apart.
static double gni_job_conv_time(gni_gpu *gpu, int64_t m, int64_t n, int64_t k, int64_t batches, bool parts) {
    gni_matmul like;
    int64_t splits;
    memset(&like, 0, sizeof like);
    like.m = m;
    like.n = n;
    like.k = k;
    like.in_parts = parts;
    const gni_job_tile *t = gni_job_pick_tile(gpu, &like, batches, &splits);
    return gni_job_tile_time(gpu, t, &like, batches, splits);
}

// Whether kernels are to take the images of such products apart: GN_PRECISION_HIGH.
static bool gni_job_wants_parts(gni_gpu *gpu, int64_t m, int64_t n, int64_t k, int64_t batches) {
    const gni_gpu_jobs *ops = gni_job_state(gpu);
    const int force = ops != NULL ? ops->split_force : 0;
    if (force > 1 || force < 0 || (force == 0 && gpu->g->precision != GN_PRECISION_HIGH)) return false;
    if (!gni_job_has_units(gpu, GN_F16) || gpu->caps.max_buffers < 7) return false;
    if (force == 1) return true;
    // Shorter sums would show that parts hold an element to 2^-23 only; what should be less than a sixth faster was slower.
    return k >= 64 && 1.2 * gni_job_conv_time(gpu, m, n, k, batches, true) < gni_job_conv_time(gpu, m, n, k, batches, false);
}

// Whether a convolution of kernels 3x3 goes by tiles, or the gradient of its kernels: GN_PRECISION_HIGH, where the device is
// faster so.
static bool gni_job_winograd_pays(gni_gpu *gpu, const gni_winograd *d, bool kernel) {
    const gni_gpu_jobs *ops = gni_job_state(gpu);
    const int64_t tiles = gni_winograd_tiles(d), places = d->n * d->out[0] * d->out[1];
    const double become = 144.0 * (double)tiles * (double)(d->c + d->o);
    const int force = ops != NULL ? ops->winograd_force : 0;
    if (!gni_job_has_winograd(gpu) || force < 0 || GNI_MAX(d->c, d->o) > 65535 ||
        144.0 * (double)d->c * (double)d->o > GNI_WINOGRAD_BYTES || gni_winograd_images(gpu, d) == 0)
        return false;
    if (force > 0) return true;
    if (gpu->g->precision != GN_PRECISION_HIGH || (ops != NULL && ops->split_force != 0)) return false;
    if (GNI_MIN(d->c, d->o) >= 8 && tiles >= 256) return true; // measured: in all of 14 shapes
    const int64_t n = kernel ? 9 * d->c : places, k = kernel ? places : 9 * d->c;
    const double bytes = 4.0 * (double)places * (double)(d->c + d->o);
    const double direct = gni_job_conv_time(gpu, d->o, n, k, 1, gni_job_has_units(gpu, GN_F16)) + 5.0 + bytes / 2e6;
    return gni_job_conv_time(gpu, d->o, kernel ? d->c : tiles, kernel ? tiles : d->c, 36, false) + 10.0 +
               (bytes + 2.0 * become) / 4e6 < direct;
}

static bool gni_job_winograd(gni_gpu *gpu, const gni_winograd *m) {
    gni_job_call c;
    const bool kernel = m->step == GNI_WINOGRAD_KERNEL || m->step == GNI_WINOGRAD_KERNEL_RESULT,
               result = m->step == GNI_WINOGRAD_RESULT, image = m->step == GNI_WINOGRAD_IMAGE,
               back = m->step > GNI_WINOGRAD_KERNEL;
    const int64_t tiles = kernel ? m->c : gni_winograd_tiles(m), channels = image ? m->c : m->o,
                  lines = gni_job_ceil(tiles, GNI_FLOATS_LINE), all = channels * (36 * tiles + (back ? 0 : lines)), one = 1,
                  x[4] = {m->n, m->c, m->in[0], m->in[1]}, y[4] = {m->n, m->o, m->out[0], m->out[1]},
                  w[4] = {m->o, m->c, 3, 3}, *dim[4];
    dim[back] = kernel ? w : image ? x : y;
    dim[2] = x;
    dim[3] = result ? w : y;
    gni_job_open(&c, gpu);
    c.n_use = back ? 4 : 2;
    c.n_param = GNI_P_WINOGRAD_WORDS;
    uint32_t *q = c.param;
    for (int i = 0; i < c.n_use; i++) {
        const gni_operand *o = &m->use[i];
        if (i == !back) { // the 36
            if (!gni_job_reach(gpu, o, &all, &one, 1, &c.use[i], &q[GNI_P_WINOGRAD_TO])) return false;
            continue;
        }
        uint32_t *to = &q[i == 2 ? GNI_P_WINOGRAD_X : i == 3 ? GNI_P_WINOGRAD_W : GNI_P_WINOGRAD_PLAIN];
        if (!gni_job_reach(gpu, o, dim[i], o->stride, 4, &c.use[i], to)) return false;
        for (int k = 0; k < 4; k++) to[1 + k] = (uint32_t)o->stride[k];
    }
    c.use[1].write = true;
    q[GNI_P_WINOGRAD_TILES] = (uint32_t)tiles;
    q[GNI_P_WINOGRAD_CHANNELS] = (uint32_t)channels;
    gni_job_divider(gni_job_ceil(m->out[1], 4), &q[GNI_P_WINOGRAD_OF_X]);
    gni_job_divider(gni_job_ceil(m->out[0], 4), &q[GNI_P_WINOGRAD_OF_Y]);
    for (int i = 0; i < 2; i++) {
        q[GNI_P_WINOGRAD_BEFORE + i] = (uint32_t)m->before[1 - i];
        q[GNI_P_WINOGRAD_HAVE + i] = (uint32_t)dim[back][3 - i];
        q[GNI_P_WINOGRAD_X_HAVE + i] = (uint32_t)m->in[1 - i];
        q[GNI_P_WINOGRAD_PLACES + i] = (uint32_t)m->out[1 - i];
    }
    q[GNI_P_WINOGRAD_IMAGES] = (uint32_t)m->n;
    q[GNI_P_WINOGRAD_DEPTH] = (uint32_t)(result ? m->c : m->n);
    const gni_operand *plain = &m->use[back];
    bool groups = !kernel && plain->stride[3] == 1 && dim[back][3] % 4 == 0 && q[GNI_P_WINOGRAD_PLAIN] % 4 == 0;
    for (int i = 0; i < 3; i++) groups = groups && plain->stride[i] % 4 == 0;
    if (image) groups = groups && m->before[1] == 1 && m->out[1] <= m->in[1];
    c.generic.module = GNI_MODULE_winograd;
    c.generic.n_spec = GNI_S_WINOGRAD_SPECS;
    c.generic.spec[GNI_S_WINOGRAD_STEP] = (uint32_t)m->step;
    c.generic.spec[GNI_S_WINOGRAD_GROUPS] = groups;
    return gni_job_dispatch(&c, gni_gpu_pipeline_get(gpu, &c.generic, GNI_GPU_WAIT), lines, channels, 1);
}

// Divisions and steps of up to four indices, of which some may be one.
static void gni_job_put_window(const int64_t *dim, const int64_t *step, uint32_t *w) {
    int64_t d[4], s[4];
    int n = 0;
    for (int i = 3; i >= 0; i--) {
        if (dim[i] == 1) continue;
        if (n > 0 && step[i] == d[n - 1] * s[n - 1]) {
            d[n - 1] *= dim[i];
            continue;
        }
        d[n] = dim[i];
        s[n++] = step[i];
    }
    if (n == 0) {
        d[0] = s[0] = 1;
        n = 1;
    }
    w[0] = (uint32_t)(n - 1);
    w[1] = (uint32_t)s[0];
    for (int i = 0; i + 1 < n; i++) {
        gni_job_divider(d[i], &w[2 + 4 * i]);
        w[5 + 4 * i] = (uint32_t)s[i + 1];
    }
}

static void gni_job_put_windows(gni_job_call *c, const gni_job_tile *t, uint32_t *layout) {
    const gni_conv *d = c->windows;
    uint32_t *w = c->param;
    gni_job_put_window(d->k_dim, d->b_k, &w[GNI_P_WINDOWS_K]);
    gni_job_put_window(d->n_dim, d->b_n, &w[GNI_P_WINDOWS_N]);
    gni_job_divider(d->c_run, &w[GNI_P_WINDOWS_C]);
    w[GNI_P_WINDOWS_C + 3] = (uint32_t)(d->c_jump - d->c_run);
    c->n_param = GNI_P_WINDOWS_WORDS;
    *layout |= GNI_F_MATMUL_WINDOWS;
    const int64_t inner = w[GNI_P_WINDOWS_K] == 0 ? d->k : (int64_t)w[GNI_P_WINDOWS_K + 2];
    if (inner % t->bk == 0) *layout |= GNI_F_MATMUL_EVEN;
    if (d->c_run % 4 != 0) *layout &= ~GNI_F_MATMUL_C_GROUPS;
    if (d->c_run % 8 != 0) *layout &= ~GNI_F_MATMUL_C_EIGHTS;
}

// b has its channels last, as gni_job_image leaves them.
static bool gni_job_conv(gni_gpu *gpu, const gni_conv *d) {
    gni_job_call c;
    gni_gpu_use use[4];
    gni_matmul m;
    uint32_t base[4] = {0, 0, 0, 0};
    int64_t dim[10], step[10];
    memset(&m, 0, sizeof m);
    gni_job_open(&c, gpu);
    m.m = d->m;
    m.n = d->n;
    m.k = d->k;
    m.a_rs = d->a_rs;
    m.a_cs = d->a_cs;
    m.batch_rank = 1;
    m.batch_dim[0] = d->batch_dim[1];
    m.a_batch[0] = d->a_batch[1];
    m.b_batch[0] = d->b_batch[1];
    m.a = d->a;
    m.b = d->b;
    m.c = d->c;
    const bool along_k = d->b_k[3] == 1 && d->k_dim[3] > 1; // else along n
    m.b_rs = along_k ? 1 : 8;
    m.b_cs = along_k ? 8 : 1;
    m.in_parts = d->in_parts;
    for (int i = 0; i < 4; i++) {
        dim[i] = d->n_dim[i];
        step[i] = d->b_n[i];
        dim[4 + i] = d->k_dim[i];
        step[4 + i] = d->b_k[i];
    }
    dim[8] = d->batch_dim[1];
    step[8] = d->b_batch[1];
    if (!gni_job_reach(gpu, &d->b, dim, step, 9, &use[1], &base[1])) return false;
    dim[0] = d->batch_dim[1];
    dim[1] = d->m;
    dim[2] = d->k;
    step[0] = d->a_batch[1];
    step[1] = d->a_rs;
    step[2] = d->a_cs;
    if (!gni_job_reach(gpu, &d->a, dim, step, 3, &use[0], &base[0])) return false;
    dim[0] = d->batch_dim[1] * d->m;
    dim[1] = d->n / d->c_run;
    dim[2] = d->c_run;
    step[0] = d->c_row;
    step[1] = d->c_jump;
    step[2] = 1;
    if (!gni_job_reach(gpu, &d->c, dim, step, 3, &use[2], &base[2])) return false;
    use[2].write = true;
    for (int i = 0; i < 2 && d->in_parts; i++) { // with what tells of them
        const gni_operand *o = i == 0 ? &d->a : &d->b;
        gni_operand all = *o;
        const int64_t words = (int64_t)(o->buf->bytes / 4), one = 1;
        all.offset = 0;
        if (!gni_job_reach(gpu, &all, &words, &one, 1, &use[i], &base[i])) return false;
        base[i] = (uint32_t)o->offset;
    }
    use[3] = use[1];
    gni_job_matrix_params(&c, &m, d->batch_dim[1], use, base);
    c.windows = d;
    return gni_job_matmul_tiled(&c, &m, d->batch_dim[1], d->c_row);
}

#endif // GNI_GPU
