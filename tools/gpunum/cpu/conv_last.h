// >>conv_last
// Convolutions on the CPU of images with channels last: tiles of products whose rows are places, so that no window is copied.
// From outside: gni_conv_last, gni_conv_last_begin, gni_conv_last_room, gni_conv_last_run.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../cpu/cpu_conv.h"
#endif

enum {
    GNI_CONV_PHASES = 4,   // of an axis, at most
    GNI_CONV_NEAR = 1 << 15, // floats that a task works on at a time
    GNI_CONV_IMAGES = 1 << 16, // floats of images that are there at a time, of a thread
    GNI_CONV_ROWS = 192,   // of weights that are turned at a time
    GNI_CONV_LINE = 256    // places of a row that are summed at a time
};

// Of an axis: place q of a phase takes elements first + q stride + t spread of the image, t < taps, by the kernel's at + t
// by.
typedef struct gni_conv_taps {
    int64_t first, taps, spread, at, by;
} gni_conv_taps;

// Axes are the last ones of three. Phases of the result are the remainders of its places by `step`; for the gradient of w
// the result is what comes in.
typedef struct gni_conv_last {
    const gni_gemm_isa *isa;
    int64_t n, groups, c, o;             // channels of the image and columns, of a group
    int64_t have[3], before[3], size[3]; // of x, and of its image, which begins so many places before
    int64_t kernel[3], out[3], step[3], stride[3];
    gni_conv_taps of[3][GNI_CONV_PHASES];
    bool each;       // depthwise: of o groups, a channel and a column each; groups and c are 1 then
    bool turned;     // w is (groups, c, o, kernel...), else (groups, o, c, kernel...)
    const float *x;  // (n, groups, c, have...)
    const float *w;
    const float *gy; // (n, groups, o, out...): then it is the gradient of w
    float *y;        // (n, groups, o, out...) or w's gradient
    int64_t width, taps, band; // columns of whole panels; of the kernel; rows of a task
    int64_t beside;            // images that take weights of a panel one after the other
    int64_t first, some, unit; // images that are there; those whose sums are taken together
    int64_t all, all_gy;       // channels of images in memory, and of those of gy
    int64_t at[GNI_CONV_PHASES * GNI_CONV_PHASES * GNI_CONV_PHASES]; // where weights of phases begin
    float *image, *image_gy;   // (some, size..., all), (some, out..., all_gy)
    float *rows, *panels;      // weights of each worker (some of c and kernel, panel); (group, phase, panel, tap, c, column)
    float *scratch;            // (band, panel) of each worker
} gni_conv_last;

static int64_t gni_conv_last_places(const int64_t *dim) { return dim[0] * dim[1] * dim[2]; }

// Whether taps of a row are neighbours, channels included, or it is depthwise: a sum then goes along all of them at once.
static bool gni_conv_last_whole(const gni_conv_last *j, const gni_conv_taps *row) {
    return j->each || (row->spread == 1 && j->groups == 1);
}

// Floats of an image, and what packing writes past its end.
static int64_t gni_conv_last_image(const int64_t *size, int64_t channels) {
    return gni_conv_last_places(size) * channels + GNI_GEMM_MAX_LANES;
}

// An image of x (channels, have...) in `to` (size..., width): channel by channel of a vector's, so that x is read along its
// planes.
static void gni_conv_last_turn(const gni_conv_last *j, const float *x, float *to, const int64_t *have, const int64_t *before,
                               const int64_t *size, int64_t channels, int64_t width) {
    const int64_t places = gni_conv_last_places(have), lo = GNI_MIN(GNI_MAX(before[2], 0), size[2]),
                  hi = GNI_MAX(GNI_MIN(have[2] + before[2], size[2]), lo), lanes = j->isa->f32->lanes;
    const bool whole = memcmp(have, size, 3 * sizeof *have) == 0 && (before[0] | before[1] | before[2]) == 0;
    GNI_ZEROED(gni_gemm_tile, t);
    t.c_rs = width;
    if (channels != width) memset(to, 0, (size_t)(gni_conv_last_places(size) * width) * sizeof *to);
    for (int64_t c = 0; c < channels; c += lanes, x += lanes * places) {
        for (int64_t f = 0; f < lanes * places && places <= 256; f += 16) // the next one's
            GNI_FT_PREFETCH(x + lanes * places + f);
        for (int64_t r = 0; r < (whole ? 1 : size[0] * size[1]); r++) {
            const int64_t i0 = r / size[1] - before[0], i1 = r % size[1] - before[1];
            float *row = to + r * size[2] * width;
            if (i0 < 0 || i0 >= have[0] || i1 < 0 || i1 >= have[1]) continue; // never read
            if (c == 0 && !whole) {
                memset(row, 0, (size_t)(lo * width) * sizeof *row);
                memset(row + hi * width, 0, (size_t)((size[2] - hi) * width) * sizeof *row);
            }
            t.c = row + lo * width + c;
            j->isa->put_transposed(&t, x + (i0 * have[1] + i1) * have[2] + lo - before[2], GNI_MIN(lanes, channels - c),
                                   whole ? places : hi - lo, places);
        }
    }
}

// Items are images of x.
static void gni_conv_last_turn_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_last *j = (const gni_conv_last *)arg;
    static const int64_t none[3] = {0, 0, 0};
    const int64_t columns = j->groups * j->o, channels = j->each ? columns : j->groups * j->c;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < end; i++) {
        gni_conv_last_turn(j, j->x + (j->first + i) * channels * gni_conv_last_places(j->have),
                           j->image + i * gni_conv_last_image(j->size, j->all), j->have, j->before, j->size, channels,
                           j->all);
        if (j->gy != NULL)
            gni_conv_last_turn(j, j->gy + (j->first + i) * columns * gni_conv_last_places(j->out),
                               j->image_gy + i * gni_conv_last_image(j->out, j->all_gy), j->out, none, j->out, columns,
                               j->all_gy);
    }
}

// Tiles of `rows` rows, whose lines follow each other.
static void gni_conv_last_tile(const gni_conv_last *j, gni_gemm_tile *t, int64_t rows) {
    const int64_t lines = t->lines;
    const char *a = (const char *)t->a, *b = (const char *)t->b;
    if (j->each) {
        j->isa->channels(t, rows);
        return;
    }
    const gni_gemm_tile_fn tile = gni_gemm_tiles_of(j->isa->f32, t->cols)[rows];
    if ((rows >= j->isa->f32->lined && t->cols >= j->isa->f32->lanes) || lines < 2) {
        tile(t);
        return;
    }
    t->lines = 1;
    for (int64_t i = 0; i < lines; i++, t->add = true) {
        tile(t);
        t->a = a += (t->k * t->a_cs + t->a_jump) * (int64_t)sizeof(float);
        t->b = b += (t->k * t->b_rs + t->b_jump) * (int64_t)sizeof(float);
    }
    t->lines = lines;
}

// Rows [first, first + count), each of a channel and a tap, of the columns from `col` on: from `rows` to panels of a group,
// of the gradient of w from there.
static void gni_conv_last_panel(const gni_conv_last *j, float *panels, float *rows, int64_t first, int64_t count, int64_t col,
                                int64_t cols) {
    const bool back = j->gy != NULL;
    for (int64_t ph = 0; ph < j->step[0] * j->step[1] * j->step[2]; ph++) {
        const gni_conv_taps *f0 = &j->of[0][ph / j->step[2] / j->step[1]], *f1 = &j->of[1][ph / j->step[2] % j->step[1]],
                            *f2 = &j->of[2][ph % j->step[2]];
        const int64_t taps = f0->taps * f1->taps * f2->taps;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t k0 = f0->at + t / f2->taps / f1->taps * f0->by, k1 = f1->at + t / f2->taps % f1->taps * f1->by,
                          k2 = f2->at + t % f2->taps * f2->by, tap = (k0 * j->kernel[1] + k1) * j->kernel[2] + k2;
            float *panel = panels + j->at[ph] + (col * taps + t * cols) * j->c;
            for (int64_t q = (first - tap + j->taps - 1) / j->taps; q * j->taps + tap < first + count; q++) {
                float *row = rows + (q * j->taps + tap - first) * cols, *p = panel + q * cols;
                for (int64_t i = 0; i < cols; i += 4) memcpy((back ? row : p) + i, (back ? p : row) + i, 4 * sizeof *p);
            }
        }
    }
}

// Items are panels of columns: weights to them, or the gradient of weights from them, some rows at a time.
static void gni_conv_last_panel_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_last *j = (const gni_conv_last *)arg;
    const int64_t panel = 2 * j->isa->f32->lanes, panels = (j->width + panel - 1) / panel, k = j->c * j->taps;
    float *rows = j->rows + worker * GNI_CONV_ROWS * panel;
    GNI_ZEROED(gni_gemm_tile, t);
    t.c_rs = k;
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i / panels, col = i % panels * panel,
                      cols = gni_gemm_panel_cols(j->isa->f32, j->width - col), keep = GNI_MIN(cols, j->o - col);
        float *p = j->panels + group * k * j->width;
        for (int64_t first = 0, count, some; first < k; first += count) {
            count = GNI_MIN(k - first, (int64_t)GNI_CONV_ROWS);
            if (j->gy != NULL) {
                gni_conv_last_panel(j, p, rows, first, count, col, cols);
                t.c = j->y + (group * j->o + col) * k + first;
                j->isa->put_transposed(&t, rows, count, keep, cols);
                continue;
            }
            for (int64_t f = first; f < first + count; f += some) {
                // Of a channel where those of w are outside.
                const int64_t q = f / j->taps, all = j->turned ? j->taps : k, at = j->turned ? f % j->taps : f;
                some = GNI_MIN(first + count - f, all - at);
                j->isa->pack_f32(rows + (f - first) * cols, cols,
                                 j->w + ((j->turned ? group * j->c + q : group) * j->o + col) * all + at, all, 1, keep, some);
            }
            gni_conv_last_panel(j, p, rows, first, count, col, cols);
        }
    }
}

static void gni_conv_last_weights(gn_context *g, gni_conv_last *j) {
    const int64_t panel = 2 * j->isa->f32->lanes;
    gni_parallel(g->pool, j->groups * ((j->width + panel - 1) / panel), 1 + GNI_CONV_NEAR / (j->c * j->taps * panel),
                 gni_conv_last_panel_task, j);
}

// How many of `count` elements at + i step of an axis of the image, from *lo on, are of x: the others are zeros.
GNI_NOINLINE static int64_t gni_conv_last_inside(const gni_conv_last *j, int axis, int64_t at, int64_t step, int64_t count,
                                                 int64_t *lo) {
    const int64_t before = j->before[axis], end = before + j->have[axis];
    int64_t i = 0;
    while (i < count && at + i * step < before) i++;
    while (count > i && at + (count - 1) * step >= end) count--;
    *lo = i;
    return count - i;
}

// Of a tile of so many rows from element `at` on: those, from *lo on, that a tile is left to do where the others meet zeros
// alone, in `work` products of each column.
GNI_NOINLINE static int64_t gni_conv_last_cut(const gni_conv_last *j, int64_t at, int64_t rows, int64_t work, int64_t *lo) {
    int64_t some = gni_conv_last_inside(j, 2, at, j->stride[2], rows, lo);
    while (j->isa->f32->tile[0][some] == NULL) some++;
    if ((rows - some) * work < 8 * rows) some = rows; // it costs a tile more
    *lo = GNI_MIN(*lo, rows - some);
    return some;
}

// The columns col to col + cols of row (i0, i1) of the result, in `to`.
GNI_NOINLINE static void gni_conv_last_row(const gni_conv_last *j, const float *image, int64_t group, int64_t i0, int64_t i1,
                                           int64_t col, int64_t cols, float *to) {
    const int64_t all = j->all, p0 = i0 % j->step[0], p1 = i1 % j->step[1];
    const gni_conv_taps *f0 = &j->of[0][p0], *f1 = &j->of[1][p1];
    const int64_t at0 = f0->first + i0 / j->step[0] * j->stride[0], at1 = f1->first + i1 / j->step[1] * j->stride[1];
    int64_t lo0, lo1;
    const int64_t some0 = gni_conv_last_inside(j, 0, at0, f0->spread, f0->taps, &lo0),
                  some1 = gni_conv_last_inside(j, 1, at1, f1->spread, f1->taps, &lo1);
    GNI_ZEROED(gni_gemm_tile, t);
    t.a_rs = j->stride[2] * all;
    t.b_rs = cols;
    t.c_rs = j->step[2] * cols;
    t.cols = (int)cols;
    for (int64_t p2 = 0; p2 < j->step[2]; p2++) {
        const gni_conv_taps *f2 = &j->of[2][p2];
        const bool whole = gni_conv_last_whole(j, f2), some = some0 * some1 * f2->taps > 0;
        const int64_t run = j->c, step = j->each ? f2->spread * all : 1, line = f2->taps * run,
                      places = (j->out[2] - p2 + j->step[2] - 1) / j->step[2], inner = whole || !some ? 1 : some1;
        const float *b = j->panels + group * j->taps * run * j->width +
                         j->at[(p0 * j->step[1] + p1) * j->step[2] + p2] + col * f0->taps * f1->taps * line +
                         (lo0 * f1->taps + lo1) * line * cols,
                    *a = image + (j->each ? col : group * run) +
                         (((at0 + lo0 * f0->spread) * j->size[1] + at1 + lo1 * f1->spread) * j->size[2] + f2->first) * all;
        t.lines = !some ? 0 : whole ? some1 : f2->taps;
        t.a_cs = step;
        for (int64_t q = 0, rows; q < places; q += rows) {
            rows = j->each ? places - q : gni_gemm_panel_rows(j->isa->f32, places - q);
            // Taps from `t2` on, and round, those together that are left the same rows; to begin with all of them.
            const int64_t at = f2->first + q * j->stride[2], work = some1 * run;
            const bool cuts = whole && some && !j->each &&
                              (at < j->before[2] ||
                               at + (rows - 1) * j->stride[2] + f2->taps > j->before[2] + j->have[2]);
            int64_t t2 = 0, left = rows, lo = 0, done = 0, taps, next;
            while (cuts && t2 < f2->taps && gni_conv_last_cut(j, at + t2, rows, work, &lo) < rows) t2++;
            const bool cut = cuts && t2 < f2->taps;
            if (!cut) t2 = lo = 0;
            t.add = false;
            do {
                taps = cut ? 1 : f2->taps;
                if (cut) left = gni_conv_last_cut(j, at + t2, rows, work, &lo);
                while (cut && t2 + taps < f2->taps && gni_conv_last_cut(j, at + t2 + taps, rows, work, &next) == left &&
                       next == lo)
                    taps++;
                t.k = !some ? 0 : whole ? taps * run : run; // without taps zeros
                t.a_jump = (whole ? f1->spread * j->size[2] : f2->spread) * all - t.k * step;
                t.b_jump = whole ? (line - t.k) * cols : 0;
                t.c = to + (p2 + (q + lo) * j->step[2]) * cols;
                for (int64_t r = 0; r < some0 * inner || r == 0; r++, t.add = true) {
                    const int64_t t0 = r / inner, t1 = r % inner;
                    t.a = a + ((t0 * f0->spread * j->size[1] + t1 * f1->spread) * j->size[2] + (q + lo) * j->stride[2] + t2) *
                                  all;
                    t.b = b + ((t0 * f1->taps + t1) * line + t2 * run) * cols;
                    gni_conv_last_tile(j, &t, left);
                }
                t2 = t2 + taps == f2->taps ? 0 : t2 + taps;
            } while ((done += taps) < f2->taps);
        }
    }
}

// Items are bands of rows of one group of `beside` images.
static void gni_conv_last_task(void *arg, int64_t begin, int64_t end, int worker) {
    const gni_conv_last *j = (const gni_conv_last *)arg;
    const int64_t rows = j->out[0] * j->out[1], bands = (rows + j->band - 1) / j->band, panel = 2 * j->isa->f32->lanes;
    float *sums = j->scratch + worker * j->band * j->out[2] * panel;
    GNI_ZEROED(gni_gemm_tile, t);
    t.c_rs = rows * j->out[2];
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % bands * j->band, group = i / bands % j->groups, from = i / bands / j->groups * j->beside,
                      count = GNI_MIN(j->band, rows - first);
        for (int64_t col = 0, cols; col < j->width; col += cols) {
            cols = gni_gemm_panel_cols(j->isa->f32, j->width - col);
            for (int64_t n = from; n < GNI_MIN(from + j->beside, j->some); n++) {
                const int64_t keep = GNI_MIN(cols, j->o - col);
                float *y = j->y + (((j->first + n) * j->groups + group) * j->o + col) * t.c_rs + first * j->out[2];
                t.c = y;
                for (int64_t r = 0; r < count; r++) {
                    for (int64_t c = r * keep / count; c < (r + 1) * keep / count; c++) // what is written then
                        for (int64_t f = 0; f < count * j->out[2]; f += 16) GNI_FT_PREFETCH_2(y + c * t.c_rs + f);
                    gni_conv_last_row(j, j->image + n * gni_conv_last_image(j->size, j->all), group, (first + r) / j->out[1],
                                      (first + r) % j->out[1], col, cols, sums + r * j->out[2] * cols);
                }
                j->isa->put_transposed(&t, sums, count * j->out[2], keep, cols);
            }
        }
    }
}

// Whether the taps of a row are in one sum of the gradient of w. Apart, they leave out what lies around x.
static bool gni_conv_last_joined(const gni_conv_last *j) {
    return gni_conv_last_whole(j, &j->of[2][0]) && (j->each || j->c < 16 || j->size[2] == j->have[2]);
}

// Items are runs of taps and channels, of one panel of columns: sums over rows of a band, and of these.
static void gni_conv_last_weight_task(void *arg, int64_t begin, int64_t last, int worker) {
    static const float one = 1;
    const gni_conv_last *j = (const gni_conv_last *)arg;
    const gni_conv_taps *f0 = &j->of[0][0], *f1 = &j->of[1][0], *f2 = &j->of[2][0];
    const bool whole = gni_conv_last_joined(j);
    const int64_t all = j->all, run = whole ? f2->taps * j->c : j->c, runs = whole ? 1 : f2->taps, each = j->out[2],
                  items = f0->taps * f1->taps * runs, wide = j->all_gy, unit = j->unit * j->out[0] * j->out[1],
                  rows = j->some * j->out[0] * j->out[1], panel = 2 * j->isa->f32->lanes,
                  panels = (j->width + panel - 1) / panel;
    float sums[GNI_GEMM_MAX_ROWS * 2 * GNI_GEMM_MAX_LANES];
    gni_gemm_tile t;
    gni_gemm_rows add;
    memset(&t, 0, sizeof t);
    t.a_rs = j->each ? f2->spread * all : 1;
    t.a_cs = j->stride[2] * all;
    t.b_rs = wide;
    add.k = 1;
    add.s = &one;
    add.s_stride = add.b_rs = 0;
    add.b = sums;
    GNI_UNUSED(worker);
    for (int64_t i = begin; i < last; i++) {
        const int64_t r = i % items, col = i / items % panels * panel, group = i / items / panels, t2 = r % runs,
                      t1 = r / runs % f1->taps, t0 = r / runs / f1->taps,
                      cols = gni_gemm_panel_cols(j->isa->f32, j->width - col);
        int64_t lo0, lo1, lo2 = 0; // places that meet x
        const int64_t end0 = gni_conv_last_inside(j, 0, t0 * f0->spread, j->stride[0], j->out[0], &lo0) + lo0,
                      end1 = gni_conv_last_inside(j, 1, t1 * f1->spread, j->stride[1], j->out[1], &lo1) + lo1,
                      end2 = whole ? each : gni_conv_last_inside(j, 2, t2 * f2->spread, j->stride[2], each, &lo2) + lo2;
        float *to = j->panels + (group * j->width + col) * j->taps * j->c +
                    ((t0 * f1->taps + t1) * f2->taps + t2) * j->c * cols;
        const float *a = j->image + (j->each ? col : group * j->c) +
                         ((t0 * f0->spread * j->size[1] + t1 * f1->spread) * j->size[2] + t2 * f2->spread) * all,
                    *b = j->image_gy + group * j->width + col;
        t.c_rs = cols;
        t.cols = (int)cols;
        for (int64_t band = 0, end; band < rows; band = end) {
            end = GNI_MIN(GNI_MIN(band + j->band, (band / unit + 1) * unit), rows);
            for (int64_t q = 0, some; q < run; q += some) {
                some = j->each ? GNI_MIN(run - q, (int64_t)GNI_GEMM_MAX_ROWS) : gni_gemm_panel_rows(j->isa->f32, run - q);
                t.c = j->first + band == 0 ? to + q * cols : sums;
                t.add = false;
                for (int64_t at = band, next; at < end; at = next) { // rows of one image and plane
                    const int64_t row = at % j->out[1], i1 = GNI_MAX(row, lo1), i0 = at / j->out[1] % j->out[0],
                                  n = at / j->out[1] / j->out[0];
                    const float *from = a + n * gni_conv_last_image(j->size, all) +
                                        (i0 * j->stride[0] * j->size[1] + i1 * j->stride[1]) * j->size[2] * all +
                                        q * t.a_rs,
                                *by = b + n * gni_conv_last_image(j->out, wide) + (i0 * j->out[1] + i1) * each * wide;
                    next = each > GNI_CONV_LINE ? at + 1 : GNI_MIN(end, at - row + j->out[1]);
                    t.lines = GNI_MIN(row + next - at, end1) - i1;
                    if (t.lines <= 0 || i0 < lo0 || i0 >= end0) continue;
                    for (int64_t p = lo2; p < end2; p += t.k, t.add = true) {
                        t.k = GNI_MIN(end2 - p, (int64_t)GNI_CONV_LINE);
                        t.a = from + p * j->stride[2] * all;
                        t.a_jump = (j->stride[1] * j->size[2] - t.k * j->stride[2]) * all;
                        t.b = by + p * wide;
                        t.b_jump = (each - t.k) * wide;
                        gni_conv_last_tile(j, &t, some);
                    }
                }
                if (!t.add) memset(t.c, 0, (size_t)(some * cols) * sizeof(float));
                if (j->first + band == 0) continue;
                add.n = some * cols;
                add.y = to + q * cols;
                j->isa->add_rows(&add);
            }
        }
    }
}

// Floats that j needs for its images, weights and sums, each part whole lines; its pointers into `all` where that is not
// NULL.
static int64_t gni_conv_last_room(gn_context *g, gni_conv_last *j, float *all) {
    const int64_t weights = j->groups * j->c * j->taps * j->width, line = j->out[2] * 2 * j->isa->f32->lanes;
    const int64_t part[5] = {j->some * gni_conv_last_image(j->size, j->all),
                             j->gy != NULL ? j->some * gni_conv_last_image(j->out, j->all_gy) : 0,
                             gni_pool_threads(g->pool) * GNI_CONV_ROWS * 2 * j->isa->f32->lanes, weights,
                             j->gy != NULL ? 0 : gni_pool_threads(g->pool) * j->band * line};
    float **const to[5] = {&j->image, &j->image_gy, &j->rows, &j->panels, &j->scratch};
    int64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        if (all != NULL) *to[i] = all + sum;
        sum += (part[i] + 15) / 16 * 16;
    }
    return sum;
}

static void gni_conv_last_begin(gn_context *g, gni_conv_last *j) {
    const int64_t panel = 2 * (j->isa = gni_gemm_isa_of((int)g->isa))->f32->lanes, rest = j->o % panel;
    j->taps = gni_conv_last_places(j->kernel);
    j->width = j->o - rest + (2 * rest > panel ? panel : rest > 0 ? gni_gemm_panel_cols(j->isa->f32, rest) : 0);
    if (j->each) j->width = (j->o + panel - 1) / panel * panel;
    j->all = j->each ? j->width : j->groups * j->c;
    j->all_gy = j->groups * j->width;
    const int64_t phases = j->step[0] * j->step[1] * j->step[2];
    for (int64_t ph = 0, at = 0; ph < phases; ph++) {
        j->at[ph] = at;
        at += j->of[0][ph / j->step[2] / j->step[1]].taps * j->of[1][ph / j->step[2] % j->step[1]].taps *
              j->of[2][ph % j->step[2]].taps * j->c * j->width;
    }
    const int64_t floats = j->out[2] * (j->gy != NULL ? j->stride[2] * j->all + panel : j->each ? j->width : panel),
                  image = gni_conv_last_image(j->size, j->all) +
                          (j->gy != NULL ? gni_conv_last_image(j->out, j->all_gy) : 0);
    const int64_t weights = j->groups * j->c * j->taps * j->width, rows = j->out[0] * j->out[1],
                  threads = gni_pool_threads(g->pool);
    // Weights' gradients are added to each time.
    j->unit = GNI_MAX(GNI_MAX((int64_t)GNI_CONV_IMAGES, j->gy != NULL ? 2 * weights : weights / 4) / image, 1);
    j->some = GNI_MIN(j->unit * threads, j->n);
    j->band = GNI_MAX(GNI_CONV_NEAR / floats, 1);
    if (j->gy == NULL) j->band = GNI_MIN(j->band, GNI_MIN((j->some * j->groups * rows - 1) / (4 * threads) + 1, rows));
    j->beside = j->band < rows || weights < 1 << 16 ? 1 : GNI_MAX(j->some / threads, 1);
}

static void gni_conv_last_run(gn_context *g, gni_conv_last *j) {
    const int64_t rows = j->out[0] * j->out[1], work = j->taps * j->c * j->width * j->out[2],
                  panel = 2 * j->isa->f32->lanes, most = j->some,
                  runs = gni_conv_last_joined(j) ? j->taps / j->kernel[2] : j->taps;
    if (j->gy == NULL) gni_conv_last_weights(g, j);
    for (; j->first < j->n; j->first += most) {
        j->some = GNI_MIN(most, j->n - j->first);
        gni_parallel(g->pool, j->some, 1, gni_conv_last_turn_task, j);
        if (j->gy == NULL)
            gni_parallel(g->pool, (j->some + j->beside - 1) / j->beside * j->groups * ((rows + j->band - 1) / j->band),
                         1 + GNI_CONV_TASK / (work * j->band), gni_conv_last_task, j);
        else
            gni_parallel(g->pool, j->groups * ((j->width + panel - 1) / panel) * runs, 1, gni_conv_last_weight_task, j);
    }
    if (j->gy != NULL) gni_conv_last_weights(g, j);
}
