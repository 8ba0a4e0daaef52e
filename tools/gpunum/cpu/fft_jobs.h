// >>fft_jobs
// Jobs of the FFT on the CPU: the rows or columns of an array, real data, threads.
// From outside: gni_kind_fft.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/array.h"
#include "../cpu/fft_cpu.h"
#endif

typedef struct gni_ft_run {
    const gni_fft *f;
    const gni_ft_plan *p, *fold; // fold: NULL unless the data is real and n even
    gni_pool *inner;             // threads inside each transform, or NULL
    const char *in;
    char *out;
    size_t real, in_item, out_item; // bytes
    int64_t batch, group;           // rows, and how many are done together
    int64_t in_row, out_row;        // complex numbers of a gathered row and of a finished one
    bool plain;                     // see gni_ft_is_plain
    bool ahead;                     // rows are fetched early
    char *work;                     // of each worker: gathered rows, finished rows, the plan's
    size_t in_bytes, out_bytes, work_bytes;
    // Columns: the dimension along which they lie, how many are done together and how often that goes into it,
    // and whether they are taken to a buffer first.
    int64_t axis, side, sets;
    bool packs;
} gni_ft_run;

static void gni_ft_offsets(const gni_fft *f, int64_t row, int skip, int64_t *in, int64_t *out) {
    *in = f->in.offset;
    *out = f->out.offset;
    for (int d = f->rank - 1; d >= 0; d--) {
        if (d == skip) continue;
        const int64_t at = d == 0 ? row : row % f->dim[d];
        row = d == 0 ? 0 : row / f->dim[d];
        *in += at * f->in.stride[d];
        *out += at * f->out.stride[d];
    }
}

// Of `count` rows from `first` on.
static void gni_ft_offsets_of(const gni_fft *f, int64_t first, int64_t count, int64_t *in,
                              int64_t *out) {
    const int d = f->rank - 1;
    int64_t at = d > 0 ? first % f->dim[d] : first;
    for (int64_t i = 0; i < count; i++, at++) {
        if (i == 0 || (d > 0 && at == f->dim[d])) {
            gni_ft_offsets(f, first + i, -1, &in[i], &out[i]);
            if (i > 0) at = 0;
        } else {
            in[i] = in[i - 1] + f->in.stride[d];
            out[i] = out[i - 1] + f->out.stride[d];
        }
    }
}

// Copies items of 4, 8 or 16 bytes; all steps in bytes.
static void gni_ft_copy(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n,
                        size_t item) {
    if (item == 4) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 4);
    } else if (item == 8) {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 8);
    } else {
        for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) memcpy(dst, src, 16);
    }
}

// Whether the offsets of `count` rows are evenly spaced, and by how much.
static bool gni_ft_even_rows(const int64_t *at, int64_t count, int64_t *ld) {
    *ld = count > 1 ? at[1] - at[0] : 0;
    for (int64_t i = 2; i < count; i++)
        if (at[i] - at[i - 1] != *ld) return false;
    return true;
}

// Rows to contiguous memory, behind their end zeros; real data becomes complex where that is needed.
static void gni_ft_gather(const gni_ft_run *r, const int64_t *at, int64_t count, char *dst) {
    const gni_fft *f = r->f;
    const bool widen = r->in_item == r->real && r->fold == NULL;
    const int64_t step = (int64_t)(widen ? 2 * r->real : r->in_item),
                  src_step = f->in_step * (int64_t)r->in_item;
    const size_t row = (size_t)r->in_row * 2 * r->real;
    if (widen || f->n_in * step < (int64_t)row) memset(dst, 0, row * (size_t)count);
    int64_t ld;
    if (gni_ft_even_rows(at, count, &ld) && count > 1 &&
        llabs((long long)ld) < llabs((long long)f->in_step)) {
        for (int64_t j = 0; j < f->n_in; j++)
            gni_ft_copy(dst + j * step, (int64_t)row,
                        r->in + at[0] * (int64_t)r->in_item + j * src_step,
                        ld * (int64_t)r->in_item, count, r->in_item);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        gni_ft_copy(dst + (size_t)i * row, step, r->in + at[i] * (int64_t)r->in_item, src_step,
                    f->n_in, r->in_item);
}

// The first `n` items of finished rows to where they belong.
static void gni_ft_scatter(const gni_ft_run *r, const int64_t *at, int64_t count, const char *src,
                           size_t row, int64_t src_step, int64_t n) {
    const int64_t step = r->f->out_step * (int64_t)r->out_item;
    int64_t ld;
    if (gni_ft_even_rows(at, count, &ld) && count > 1 &&
        llabs((long long)ld) < llabs((long long)r->f->out_step)) {
        for (int64_t j = 0; j < n; j++)
            gni_ft_copy(r->out + at[0] * (int64_t)r->out_item + j * step, ld * (int64_t)r->out_item,
                        src + j * src_step, (int64_t)row, count, r->out_item);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        gni_ft_copy(r->out + at[i] * (int64_t)r->out_item, step, src + (size_t)i * row, src_step, n,
                    r->out_item);
}

static void gni_ft_put_ends(char *dst, const char *src, int64_t h, bool wide, bool back) {
    const double *d = (const double *)(const void *)src;
    const float *s = (const float *)(const void *)src;
    int64_t last = back ? 2 * h : 1; // x[h], or the imaginary part of z[0]
    if (wide) {
        double *y = (double *)(void *)dst, sum = d[0] + d[last], difference = d[0] - d[last];
        y[0] = sum;
        if (back)
            y[1] = difference;
        else
            y[1] = 0.0, y[2 * h] = difference, y[2 * h + 1] = 0.0;
    } else {
        float *y = (float *)(void *)dst, sum = s[0] + s[last], difference = s[0] - s[last];
        y[0] = sum;
        if (back)
            y[1] = difference;
        else
            y[1] = 0.0f, y[2 * h] = difference, y[2 * h + 1] = 0.0f;
    }
}

// Between the spectrum of 2 h real numbers and that of h complex ones.
static void gni_ft_fold_row(const gni_ft_run *r, char *dst, const char *src, bool back, bool conj) {
    const int64_t h = r->fold->n, end = h / 2 + 1;
    for (int64_t from = 0; from < end; from += GNI_FT_FOLD_BLOCK) {
        double cr = 1.0, ci = 0.0;
        int64_t skip = from == 0 ? 1 : 0;
        if (from > 0) gni_ft_twiddle(from, 2 * h, &cr, &ci);
        r->fold->isa->fold(dst, src, (const char *)r->fold->twiddle + (size_t)skip * 2 * r->real,
                           from + skip, GNI_MIN(from + GNI_FT_FOLD_BLOCK, end), h, cr, ci, back,
                           conj);
    }
    gni_ft_put_ends(dst, src, h, r->p->wide, back);
}

// The other half of the spectrum of real data.
static void gni_ft_mirror(const gni_ft_run *r, char *row) {
    const int64_t n = r->f->n;
    for (int64_t k = 1; 2 * k < n + (n & 1); k++) {
        if (r->p->wide) {
            double *x = (double *)(void *)row;
            x[2 * (n - k)] = x[2 * k];
            x[2 * (n - k) + 1] = -x[2 * k + 1];
        } else {
            float *x = (float *)(void *)row;
            x[2 * (n - k)] = x[2 * k];
            x[2 * (n - k) + 1] = -x[2 * k + 1];
        }
    }
}

// Transforms rows that lie in `src`; the results go to `dst`, both with their distances in complex numbers. `reach` as
// in gni_ft_rows.
static void gni_ft_do_rows(const gni_ft_run *r, const char *src, int64_t src_ld, char *dst,
                           int64_t dst_ld, int64_t count, int64_t reach, char *middle, char *work) {
    const gni_fft *f = r->f;
    const size_t item = 2 * r->real;
    const int64_t h = f->n / 2;
    if (f->kind == GNI_FFT_C2R && r->fold != NULL) {
        for (int64_t i = 0; i < count; i++)
            gni_ft_fold_row(r, middle + (size_t)(i * h) * item, src + (size_t)(i * src_ld) * item,
                            true, !f->inverse);
        gni_ft_rows(r->p, r->inner, middle, h, dst, dst_ld, count, 0, f->scale, true, work);
        return;
    }
    if (r->fold == NULL) {
        gni_ft_rows(r->p, r->inner, src, src_ld, dst, dst_ld, count, reach, f->scale, f->inverse,
                    work);
        return;
    }
    gni_ft_rows(r->p, r->inner, src, src_ld, dst, dst_ld, count, reach, f->scale, false, work);
    for (int64_t i = 0; i < count; i++) {
        char *row = dst + (size_t)(i * dst_ld) * item;
        gni_ft_fold_row(r, row, row, false, f->inverse);
        if (f->kind == GNI_FFT_C2C) gni_ft_mirror(r, row);
    }
}

// ---- lines with an infinity or NaN: NaN throughout, whatever became of it on its way

// Whether the parts of a number of 1 or 2 of them are.
static bool gni_ft_finite(const char *p, int parts, bool wide) {
    const double *d = (const double *)(const void *)p;
    const float *s = (const float *)(const void *)p;
    if (wide) return d[0] - d[0] == 0.0 && (parts == 1 || d[1] - d[1] == 0.0);
    return s[0] - s[0] == 0.0f && (parts == 1 || s[1] - s[1] == 0.0f);
}

// Whether the first two parts of lines are all finite, `apart` and `step` in bytes. Every number of a line goes into its
// first result, or into the second one of a real result.
static bool gni_ft_all_finite(const char *y, int64_t step, int64_t count, int64_t apart, bool wide) {
    const uint64_t narrow = (uint64_t)0x7f800000 << 32 | 0x7f800000, one = (uint64_t)0x00800000 << 32 | 0x00800000;
    uint64_t seen = 0, u; // where exponents are the largest they carry into the place of the sign
    if (wide || apart != 4) {
        bool all = true;
        for (int64_t i = 0; i < count; i++, y += step)
            all = all && gni_ft_finite(y, 1, wide) && gni_ft_finite(y + apart, 1, wide);
        return all;
    }
    for (int64_t i = 0; i < count; i++, y += step) {
        memcpy(&u, y, sizeof u);
        seen |= (u & narrow) + one;
    }
    return (seen & ((uint64_t)1 << 63 | (uint64_t)1 << 31)) == 0;
}

// The line that starts at `in` and gave that at `out`, both in numbers.
static void gni_ft_check_line(const gni_ft_run *r, int64_t in, int64_t out) {
    const gni_fft *f = r->f;
    const bool wide = r->p->wide, c2r = f->kind == GNI_FFT_C2R;
    const int64_t item = (int64_t)r->out_item, step = f->out_step * item, n = f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n;
    const int parts = c2r ? 1 : 2, in_parts = (int)(r->in_item / r->real);
    char *y = r->out + out * item;
    bool spoilt = r->in == r->out;
    for (int64_t j = 0; j < f->n_in && r->in != r->out && !spoilt; j++) {
        const char *x = r->in + (in + j * f->in_step) * (int64_t)r->in_item;
        spoilt = !gni_ft_finite(x, c2r && (j == 0 || 2 * j == n) ? 1 : in_parts, wide);
    }
    // In place what comes of finite numbers that overflow has finite ones among it.
    for (int64_t k = 0; k < n && r->in == r->out; k++) spoilt = spoilt && !gni_ft_finite(y + k * step, parts, wide);
    for (int64_t k = 0; k < n && spoilt; k++) memset(y + k * step, 0xff, r->out_item); // the bits of a NaN
}

// Complex lines so far apart, fresh from their transform.
static void gni_ft_check(const gni_ft_run *r, int64_t in, int64_t in_ld, int64_t out, int64_t out_ld, int64_t count) {
    const int64_t item = (int64_t)r->out_item;
    if (gni_ft_all_finite(r->out + out * item, out_ld * item, count, (int64_t)r->real, r->p->wide)) return;
    for (int64_t i = 0; i < count; i++) gni_ft_check_line(r, in + i * in_ld, out + i * out_ld);
}

static void gni_ft_group(const gni_ft_run *r, int64_t first, int64_t count, char *work) {
    const gni_fft *f = r->f;
    const int64_t per = (int64_t)(2 * r->real); // bytes of a complex number
    int64_t in[16], out[16], in_ld = 0, out_ld = 0;
    gni_ft_offsets_of(f, first, count, in, out);
    char *rows = work, *done = work + r->in_bytes, *middle = done + r->out_bytes;
    char *rest = middle + (f->kind == GNI_FFT_C2R ? r->in_bytes : 0);
    const bool odd_c2r = f->kind == GNI_FFT_C2R && r->fold == NULL;
    // A row is used where it lies when it is whole and its numbers follow each other.
    const bool packs =
        r->fold != NULL && f->kind != GNI_FFT_C2R; // pairs of real numbers as complex ones
    bool direct = f->in_step == 1 && !odd_c2r &&
                  (packs ? f->n_in == f->n : r->in_item == 2 * r->real && f->n_in == r->in_row) &&
                  gni_ft_even_rows(in, count, &in_ld) && (in_ld * (int64_t)r->in_item) % per == 0 &&
                  in_ld >= 0;
    const char *src = direct ? r->in + in[0] * (int64_t)r->in_item : rows;
    int64_t src_ld = direct ? in_ld * (int64_t)r->in_item / per : r->in_row;
    if (!direct) gni_ft_gather(r, in, count, rows);
    if (odd_c2r) // the rest of the spectrum follows from the first half
        for (int64_t i = 0; i < count; i++) {
            char *row = rows + (size_t)(i * r->in_row * per);
            memset(row + r->real, 0, r->real);
            gni_ft_mirror(r, row);
        }
    bool whole =
        f->kind == GNI_FFT_C2R ? r->fold != NULL : f->kind == GNI_FFT_C2C || r->fold != NULL;
    bool put = whole && f->out_step == 1 && gni_ft_even_rows(out, count, &out_ld) &&
               (out_ld * (int64_t)r->out_item) % per == 0 && out_ld >= 0;
    char *dst = put ? r->out + out[0] * (int64_t)r->out_item : done;
    int64_t dst_ld = put ? out_ld * (int64_t)r->out_item / per : r->out_row;
    // Groups of rows follow each other at the same distance when there is one dimension of them.
    const int64_t reach = r->ahead && direct && put ? f->rank == 1 ? r->batch - first : count : 0;
    gni_ft_do_rows(r, src, src_ld, dst, dst_ld, count, reach, middle, rest);
    const int64_t n = f->kind == GNI_FFT_R2C ? f->n / 2 + 1 : f->n;
    const int64_t step = f->kind == GNI_FFT_C2R && r->fold != NULL ? (int64_t)r->real : per;
    if (!put) gni_ft_scatter(r, out, count, done, (size_t)(r->out_row * per), step, n);
    const int64_t apart = f->kind == GNI_FFT_C2C ? (int64_t)r->real : f->kind == GNI_FFT_C2R && f->n > 1 ? step : 0;
    if (gni_ft_all_finite(dst, dst_ld * per, count, apart, r->p->wide)) return;
    for (int64_t i = 0; i < count; i++) gni_ft_check_line(r, in[i], out[i]);
}

// Whether rows are transformed where they lie and all are evenly spaced, on both sides.
static bool gni_ft_is_plain(const gni_ft_run *r) {
    const gni_fft *f = r->f;
    return f->kind == GNI_FFT_C2C && r->fold == NULL && f->rank <= 1 && f->n_in == f->n &&
           r->in_item == 2 * r->real && f->in_step == 1 && f->out_step == 1 &&
           (f->rank == 0 || (f->in.stride[0] >= 0 && f->out.stride[0] >= 0));
}

static void gni_ft_plain(const gni_ft_run *r, int64_t first, int64_t count, char *work) {
    const gni_fft *f = r->f;
    const int64_t item = (int64_t)r->in_item, src_ld = f->rank > 0 ? f->in.stride[0] : 0,
                  dst_ld = f->rank > 0 ? f->out.stride[0] : 0;
    // Few enough to be in the first cache when they are looked at.
    const int64_t each = GNI_MAX(1, 65536 / (f->n * item * r->group)) * r->group;
    for (int64_t end = first + count; first < end; first += each) {
        const int64_t in = f->in.offset + first * src_ld, out = f->out.offset + first * dst_ld,
                      lines = GNI_MIN(each, end - first);
        gni_ft_rows(r->p, r->inner, r->in + in * item, src_ld, r->out + out * item, dst_ld, lines,
                    r->ahead ? r->batch - first : 0, f->scale, f->inverse, work);
        gni_ft_check(r, in, src_ld, out, dst_ld, lines);
    }
}

static void gni_ft_groups(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_run *r = (const gni_ft_run *)arg;
    char *work = r->work + (size_t)worker * r->work_bytes;
    if (r->plain) {
        const int64_t first = begin * r->group;
        gni_ft_plain(r, first, GNI_MIN(end * r->group, r->batch) - first, work);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        gni_ft_group(r, i * r->group, GNI_MIN(r->group, r->batch - i * r->group), work);
}

// Columns of a large array lie far apart: rows of many of them are copied, which reads and writes longer runs
// of memory, and transformed in the second-level cache. `work` has room for two of those blocks.
static void gni_ft_columns_packed(const gni_ft_run *r, const char *src, char *dst, int64_t count,
                                  char *work) {
    const gni_fft *f = r->f;
    const gni_ft_isa *isa = r->p->isa;
    const int64_t item = (int64_t)r->in_item, ld = r->side + isa->lanes, w = isa->lanes;
    char *in = work + r->p->each, *out = in + f->n * ld * item;
    for (int64_t j = 0; j < f->n; j++)
        memcpy(in + j * ld * item, src + j * f->in_step * item, (size_t)(count * item));
    for (int64_t c = 0; c < count; c += w) {
        const int64_t at = GNI_MIN(c, count - w) * item;
        isa->columns(&r->p->b, in + at, ld, out + at, ld, f->scale, f->inverse, work);
    }
    for (int64_t j = 0; j < f->n; j++)
        memcpy(dst + j * f->out_step * item, out + j * ld * item, (size_t)(count * item));
}

static void gni_ft_column_sets(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_ft_run *r = (const gni_ft_run *)arg;
    const gni_fft *f = r->f;
    const gni_ft_isa *isa = r->p->isa;
    const int64_t width = f->dim[r->axis], w = isa->lanes;
    char *work = r->work + (size_t)worker * r->work_bytes;
    for (int64_t i = begin; i < end; i++) {
        int64_t in, out, at = i % r->sets * r->side;
        gni_ft_offsets(f, i / r->sets, (int)r->axis, &in, &out);
        const int64_t stop = i % r->sets == r->sets - 1 ? width : at + r->side;
        for (; at < stop; at += r->side) {
            // Fewer than W at the end reach back.
            const int64_t from = GNI_MIN(at, width - w), count = GNI_MIN(stop - from, r->side);
            const char *src = r->in + (in + from) * (int64_t)r->in_item;
            char *dst = r->out + (out + from) * (int64_t)r->out_item;
            if (r->packs)
                gni_ft_columns_packed(r, src, dst, count, work);
            else
                isa->columns(&r->p->b, src, f->in_step, dst, f->out_step, f->scale, f->inverse,
                             work);
            gni_ft_check(r, in + from, 1, out + from, 1, count);
        }
    }
}

// The dimension along which both sides have their numbers next to each other, or -1. Passes take a step of 0 for none.
static int gni_ft_column_axis(const gni_fft *f, const gni_ft_isa *isa) {
    int radix[64];
    if (f->kind != GNI_FFT_C2C || f->n_in != f->n || f->n < 2 || f->n > 8192) return -1;
    if (f->in_step == 0 || f->in_step == 1 || gni_ft_radices(f->n, isa->max_radix, radix) == 0) return -1;
    for (int d = 0; d < f->rank; d++)
        if (f->in.stride[d] == 1 && f->out.stride[d] == 1 && f->dim[d] >= isa->lanes) return d;
    return -1;
}

static bool gni_ft_reserve(gn_context *g, size_t bytes) {
    gni_fft_state *s = g->fft;
    if (bytes <= s->work_bytes) return true;
    gni_free(g, s->work);
    s->work_bytes = 0;
    s->work = gni_alloc(g, bytes);
    if (s->work == NULL) return false;
    s->work_bytes = bytes;
    return true;
}

static bool gni_ft_prepare(gn_context *g, gni_ft_run *r) {
    const gni_fft *f = r->f;
    const bool wide = f->out.dtype == GN_F64 || f->out.dtype == GN_C128;
    const int threads = gni_pool_threads(g->pool);
    r->real = wide ? 8 : 4;
    r->in_item = gn_dtype_size(f->in.dtype);
    r->out_item = gn_dtype_size(f->out.dtype);
    r->batch = gni_extent_product(f->dim, f->rank);
    r->axis =
        r->in_item == 2 * r->real ? gni_ft_column_axis(f, gni_ft_isa_of((int)g->isa, wide)) : -1;
    if (r->axis >= 0) {
        r->p = gni_ft_plan_get(g, GNI_FT_COLUMNS, f->n, wide);
        if (r->p == NULL) return false;
        const int64_t w = r->p->isa->lanes, width = f->dim[r->axis];
        const int64_t most = GNI_FT_PACK_BYTES / (f->n * (int64_t)r->in_item);
        r->side = GNI_MIN(most, width) / w * w;
        r->packs =
            (uint64_t)(r->batch * f->n) * r->in_item >= GNI_FT_PACK_LEAST && r->side >= 4 * w;
        if (!r->packs) r->side = w;
        r->sets = GNI_MAX(width / r->side, 1);
        r->work_bytes = r->p->each;
        if (r->packs) r->work_bytes += 2 * (size_t)(f->n * (r->side + w)) * r->in_item;
        return gni_ft_reserve(g, r->work_bytes * (size_t)threads);
    }
    const bool halves = f->n % 2 == 0 && (f->kind != GNI_FFT_C2C || r->in_item == r->real);
    const bool many = r->batch >= gni_ft_isa_of((int)g->isa, wide)->lanes;
    r->p = gni_ft_plan_get(g, many ? GNI_FT_BATCH : GNI_FT_ROWS, halves ? f->n / 2 : f->n, wide);
    r->fold = halves ? gni_ft_plan_get(g, GNI_FT_FOLD, f->n / 2, wide) : NULL;
    if (r->p == NULL || (halves && r->fold == NULL)) return false;
    r->in_row = !halves ? f->n : f->kind == GNI_FFT_C2R ? f->n / 2 + 1 : f->n / 2;
    r->out_row = !halves || f->kind == GNI_FFT_C2C ? f->n
                 : f->kind == GNI_FFT_R2C          ? f->n / 2 + 1
                                                   : f->n / 2;
    r->group = f->n * (int64_t)r->real > 65536 ? 1 : GNI_MIN(r->p->isa->lanes, 16);
    if (r->group < 4 && f->n * (int64_t)r->real <= 65536) r->group = 4;
    const uint64_t row = (uint64_t)f->n * (r->in_item + r->out_item);
    r->plain = gni_ft_is_plain(r);
    r->ahead = row <= GNI_FT_AHEAD_MOST && row * (uint64_t)r->batch >= GNI_FT_AHEAD_LEAST;
    const int64_t groups = r->batch <= r->group ? 1 : (r->batch + r->group - 1) / r->group;
    if (groups < 2 * threads && f->n >= 16384) r->inner = g->pool;
    r->in_bytes = ((size_t)(r->group * r->in_row) * 2 * r->real + 127) & ~(size_t)63;
    r->out_bytes = ((size_t)(r->group * r->out_row) * 2 * r->real + 127) & ~(size_t)63;
    r->work_bytes = (f->kind == GNI_FFT_C2R ? 2 : 1) * r->in_bytes + r->out_bytes + r->p->shared +
                    r->p->each * (size_t)(r->inner != NULL ? threads : 1);
    return gni_ft_reserve(g, r->work_bytes * (size_t)(r->inner != NULL ? 1 : threads));
}

static bool gni_cpu_takes_fft(const gn_context *g, const void *job) {
    GNI_UNUSED(g);
    const gni_fft *f = (const gni_fft *)job;
    const bool wide = f->out.dtype == GN_F64 || f->out.dtype == GN_C128;
    return wide ? f->in.dtype == GN_F64 || f->in.dtype == GN_C128
                : f->in.dtype == GN_F32 || f->in.dtype == GN_C64;
}

// Operands are on the CPU.
static bool gni_cpu_fft(gn_context *g, const void *job) {
    const gni_fft *f = (const gni_fft *)job;
    gni_ft_run r;
    if (g->fft == NULL) g->fft = (gni_fft_state *)gni_calloc(g, sizeof(gni_fft_state));
    r.f = f;
    r.fold = NULL;
    r.inner = NULL;
    bool ok = g->fft != NULL;
    if (ok) g->fft->call++;
    if (!ok || !gni_ft_prepare(g, &r)) return gni_fail_memory(g, "gn_fft", (uint64_t)f->n * 16);
    if (r.batch == 0) return true;
    r.in = (const char *)f->in.buf->host;
    r.out = (char *)f->out.buf->host;
    r.work = (char *)g->fft->work;
    if (r.axis >= 0) {
        const int64_t each = f->n * r.side;
        gni_parallel(g->pool, r.batch / f->dim[r.axis] * r.sets, 1 + 16384 / each,
                     gni_ft_column_sets, &r);
    } else if (r.batch <= r.group && !r.plain) {
        gni_ft_group(&r, 0, r.batch, r.work);
    } else if (r.batch <= r.group || r.inner != NULL) {
        gni_ft_groups(&r, 0, (r.batch + r.group - 1) / r.group, 0);
    } else {
        gni_parallel(g->pool, (r.batch + r.group - 1) / r.group, 1 + 16384 / (f->n * r.group),
                     gni_ft_groups, &r);
    }
    if (g->fft->work_bytes > GNI_FT_WORK_BYTES) {
        gni_free(g, g->fft->work);
        g->fft->work = NULL;
        g->fft->work_bytes = 0;
    }
    return true;
}
