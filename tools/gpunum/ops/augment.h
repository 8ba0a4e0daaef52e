// >>augment
// Images (n, c, h, w) varied at random, and sampled at any places. All of it is made of public calls: an index or a factor
// for each image, computed by elementwise work, and one gather.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/random.h"
#include "../api/grad.h"
#include "../ops/arrange.h"
#endif

static bool gni_images_ok(gn_context *g, const char *fn, const gn_array *x) {
    char text[200];
    if (x->shape.rank != 4)
        gni_fail(g, GN_ERROR_SHAPE, "%s: x %s is not (n, c, h, w)", fn, gni_shape_text(text, sizeof text, &x->shape));
    return x->shape.rank == 4;
}

static bool gni_float_images_ok(gn_context *g, const char *fn, const gn_array *x) {
    if (!gni_images_ok(g, fn, x)) return false;
    if (!gni_is_float(x->dtype)) gni_fail(g, GN_ERROR_DTYPE, "%s: x is %s, not a float", fn, gn_dtype_name(x->dtype));
    return gni_is_float(x->dtype);
}

// Begins a call on images; NULL after gni_fail, and then it has ended.
static gn_context *gni_begin_images(const char *fn, gn_array *x, bool floats) {
    gn_context *g = gni_begin(fn, &x, 1);
    if (g == NULL) return NULL;
    if (floats ? gni_float_images_ok(g, fn, x) : gni_images_ok(g, fn, x)) {
        gn_scope_begin(g);
        return g;
    }
    gni_end_plain(g);
    return NULL;
}

// 0 to n - 1 along that axis of 4.
static gn_array *gni_pixel_axis(gn_context *g, int64_t n, int axis) {
    gn_shape s = GN_SHAPE(1, 1, 1, 1);
    s.dim[axis] = n;
    return gn_reshape(gn_arange(g, GN_I32, 0.0, (double)n, 1.0), s);
}

// An integer from low to high - 1 for each image, (n, 1, 1, 1).
static gn_array *gni_image_ints(gn_context *g, const gn_array *x, int64_t low, int64_t high) {
    return gn_randint(g, GN_I32, GN_SHAPE(x->shape.dim[0], 1, 1, 1), low, high);
}

static gn_array *gni_inside(gn_array *i, int64_t low, int64_t high) {
    return gn_logical_and(gn_ge_s(i, (double)low), gn_lt_s(i, (double)high));
}

// x at rows and columns that broadcast to (n, 1, height, width): int32 indices, all of them inside.
static gn_array *gni_pixels(gn_array *x, gn_array *row, gn_array *column) {
    if (x == NULL) return NULL;
    const int64_t *d = x->shape.dim;
    gn_array *at = gn_add(gn_mul_s(row, (double)d[3]), column);
    const gn_shape s = gn_shape_of(at);
    at = gn_reshape(at, GN_SHAPE(s.dim[0], 1, s.dim[2] * s.dim[3]));
    gn_array *y = gn_take_along(gn_reshape(x, GN_SHAPE(d[0], d[1], d[2] * d[3])), at, 2);
    return gn_reshape(y, GN_SHAPE(d[0], d[1], s.dim[2], s.dim[3]));
}

// Whether int32 counts an image's pixels, and there are any.
static bool gni_plane_ok(gn_context *g, const gn_array *x) {
    const int64_t h = x->shape.dim[2], w = x->shape.dim[3];
    char text[200];
    const bool ok = h > 0 && w > 0 && h <= INT32_MAX / w;
    if (!ok)
        gni_fail(g, GN_ERROR_SHAPE, "%s: images of x %s have no pixels or more than 2^31", g->call,
                 gni_shape_text(text, sizeof text, &x->shape));
    return ok;
}

GPUNUM_API gn_array *gn_random_crop(gn_array *x, int64_t height, int64_t width, int64_t pad) {
    gn_context *g = gni_begin_images("gn_random_crop", x, false);
    if (g == NULL) return NULL;
    const int64_t h = x->shape.dim[2], w = x->shape.dim[3];
    if (!gni_plane_ok(g, x)) return gni_end_scope(g, NULL);
    if (pad < 0 || pad > INT32_MAX / 4 || height < 1 || width < 1 || height > h + 2 * pad || width > w + 2 * pad) {
        gni_fail(g, GN_ERROR_SHAPE, "gn_random_crop: there is no part of %lld x %lld in %lld x %lld with %lld around it",
                 (long long)height, (long long)width, (long long)h, (long long)w, (long long)pad);
        return gni_end_scope(g, NULL);
    }
    gn_array *row = gn_add(gni_image_ints(g, x, -pad, h + pad - height + 1), gni_pixel_axis(g, height, 2));
    gn_array *column = gn_add(gni_image_ints(g, x, -pad, w + pad - width + 1), gni_pixel_axis(g, width, 3));
    gn_array *y = gni_pixels(x, gn_clamp(row, 0.0, (double)(h - 1)), gn_clamp(column, 0.0, (double)(w - 1)));
    if (pad > 0)
        y = gn_where(gn_logical_and(gni_inside(row, 0, h), gni_inside(column, 0, w)), y,
                     gn_full(g, x->dtype, GN_SHAPE(), 0.0));
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_random_flip(gn_array *x, double p) {
    gn_context *g = gni_begin_images("gn_random_flip", x, false);
    if (g == NULL) return NULL;
    if (!(p >= 0.0 && p <= 1.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_random_flip: the probability is %g", p);
        return gni_end_scope(g, NULL);
    }
    const int64_t w = x->shape.dim[3];
    gn_array *flips = gn_bernoulli(g, GN_BOOL, GN_SHAPE(x->shape.dim[0], 1, 1, 1), p);
    if (gni_elements(&x->shape) == 0) return gni_end_scope(g, gn_copy(x)); // whose rows may be longer than memory
    gn_array *column = gni_pixel_axis(g, w, 3);
    return gni_end_scope(g, gn_take_along(x, gn_where(flips, gn_rsub_s(column, (double)(w - 1)), column), 3));
}

GPUNUM_API gn_array *gn_cutout(gn_array *x, int64_t size) {
    gn_context *g = gni_begin_images("gn_cutout", x, false);
    if (g == NULL) return NULL;
    if (!gni_plane_ok(g, x)) return gni_end_scope(g, NULL);
    if (size < 0 || size > INT32_MAX / 4) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_cutout: the size is %lld", (long long)size);
        return gni_end_scope(g, NULL);
    }
    gn_array *hole = NULL;
    for (int axis = 2; axis < 4; axis++) {
        const int64_t n = x->shape.dim[axis];
        gn_array *from_first = gn_sub(gni_pixel_axis(g, n, axis), gni_image_ints(g, x, -(size / 2), n - size / 2));
        gn_array *in = gni_inside(from_first, 0, size);
        hole = hole != NULL ? gn_logical_and(hole, in) : in;
    }
    return gni_end_scope(g, gn_where(hole, gn_full(g, x->dtype, GN_SHAPE(), 0.0), x));
}

static bool gni_amount_ok(double amount) { return amount >= 0.0 && amount <= 1e6; }

// a f + b (1 - f) between 0 and 1; f is one of each image's factors.
static gn_array *gni_jitter(gn_context *g, gn_array *a, gn_array *b, double amount) {
    gn_array *f = gn_uniform(g, gn_dtype_of(a), GN_SHAPE(gn_dim(a, 0), 1, 1, 1), GNI_MAX(1.0 - amount, 0.0), 1.0 + amount);
    gn_array *y = b != NULL ? gn_add(gn_mul(a, f), gn_mul(b, gn_rsub_s(f, 1.0))) : gn_mul(a, f);
    return gn_clamp(y, 0.0, 1.0);
}

// The weights of ITU-R 601.
static gn_array *gni_grey(gn_array *x) {
    gn_array *y = gn_mul_s(gn_slice(x, 1, 0, 1, 1), 0.299);
    y = gn_add(y, gn_mul_s(gn_slice(x, 1, 1, 2, 1), 0.587));
    return gn_add(y, gn_mul_s(gn_slice(x, 1, 2, 3, 1), 0.114));
}

GPUNUM_API gn_array *gn_color_jitter(gn_array *x, double brightness, double contrast, double saturation) {
    gn_context *g = gni_begin_images("gn_color_jitter", x, true);
    if (g == NULL) return NULL;
    if (x->shape.dim[1] != 3)
        gni_fail(g, GN_ERROR_SHAPE, "gn_color_jitter: %lld channels are not 3", (long long)x->shape.dim[1]);
    if (!gni_amount_ok(brightness) || !gni_amount_ok(contrast) || !gni_amount_ok(saturation))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_color_jitter: an amount of %g, %g, %g is not 0 or more", brightness, contrast,
                 saturation);
    if (g->call_failed) return gni_end_scope(g, NULL);
    gn_array *y = gn_dtype_size(x->dtype) == 2 ? gn_cast(x, GN_F32) : x;
    if (brightness > 0.0) y = gni_jitter(g, y, NULL, brightness);
    if (contrast > 0.0 && gn_size(x) > 0) y = gni_jitter(g, y, gn_mean(gni_grey(y), GN_KEEP(GN_AXES(1, 2, 3))), contrast);
    if (saturation > 0.0) y = gni_jitter(g, y, gni_grey(y), saturation);
    return gni_end_scope(g, y != x ? gn_cast(y, x->dtype) : gn_copy(x));
}

// What a channel has at `at` sixths of the circle of hues: torchvision's conversion from hue, saturation and value, where
// that is the largest channel less a part of what lies between it and the smallest.
static gn_array *gni_hue_channel(gn_array *turn, double at, gn_array *top, gn_array *range) {
    gn_array *k = gn_mod_s(gn_add_s(turn, at), 6.0);
    return gn_sub(top, gn_mul(range, gn_clamp(gn_minimum(k, gn_rsub_s(k, 4.0)), 0.0, 1.0)));
}

GPUNUM_API gn_array *gn_hue_jitter(gn_array *x, double hue) {
    gn_context *g = gni_begin_images("gn_hue_jitter", x, true);
    if (g == NULL) return NULL;
    if (x->shape.dim[1] != 3)
        gni_fail(g, GN_ERROR_SHAPE, "gn_hue_jitter: %lld channels are not 3", (long long)x->shape.dim[1]);
    if (!(hue >= 0.0 && hue <= 0.5))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_hue_jitter: the amount %g is not between 0 and 0.5", hue);
    if (g->call_failed) return gni_end_scope(g, NULL);
    gn_array *y = gn_dtype_size(x->dtype) == 2 ? gn_cast(x, GN_F32) : x, *rgb[3], *shift[3];
    if (y == NULL) return gni_end_scope(g, NULL);
    for (int i = 0; i < 3; i++) rgb[i] = gn_slice(y, 1, i, i + 1, 1);
    gn_array *f = gn_uniform(g, y->dtype, GN_SHAPE(x->shape.dim[0], 1, 1, 1), -hue, hue);
    gn_array *top = gn_max(y, GN_KEEP(1)), *range = gn_sub(top, gn_min(y, GN_KEEP(1)));
    gn_array *by = gn_where(gn_eq_s(range, 0.0), gn_scalar(g, y->dtype, 1.0), range); // grey stays grey
    for (int i = 0; i < 3; i++) shift[i] = gn_add_s(gn_div(gn_sub(rgb[(i + 1) % 3], rgb[(i + 2) % 3]), by), 2.0 * i);
    gn_array *sixths = gn_where(gn_eq(rgb[0], top), shift[0], gn_where(gn_eq(rgb[1], top), shift[1], shift[2]));
    gn_array *turn = gn_add(sixths, gn_mul_s(f, 6.0));
    for (int i = 0; i < 3; i++) rgb[i] = gni_hue_channel(turn, i == 0 ? 5.0 : i == 1 ? 3.0 : 1.0, top, range);
    gn_array *z = gn_concat(rgb, 3, 1);
    return gni_end_scope(g, y != x ? gn_cast(z, x->dtype) : z);
}

GPUNUM_API gn_array *gn_random_rotation(gn_array *x, double degrees) {
    gn_context *g = gni_begin_images("gn_random_rotation", x, true);
    if (g == NULL) return NULL;
    if (!(degrees >= 0.0 && degrees <= 1e6)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_random_rotation: the angle is %g", degrees);
        return gni_end_scope(g, NULL);
    }
    const int64_t n = x->shape.dim[0], h = x->shape.dim[2], w = x->shape.dim[3];
    const gn_dtype t = x->dtype == GN_F64 ? GN_F64 : GN_F32;
    if (!gni_plane_ok(g, x)) return gni_end_scope(g, NULL);
    // Where a pixel of the result comes from, in units of half an image.
    gn_array *angle = gn_mul_s(gn_uniform(g, t, GN_SHAPE(n), -degrees, degrees), 3.14159265358979323846 / 180.0);
    gn_array *c = gn_cos(angle), *s = gn_sin(angle), *zero = gn_zeros_like(c), *entry[6];
    entry[0] = c;
    entry[1] = gn_mul_s(s, -(double)h / (double)w);
    entry[2] = zero;
    entry[3] = gn_mul_s(s, (double)w / (double)h);
    entry[4] = c;
    entry[5] = zero;
    gn_array *theta = gn_reshape(gn_stack(entry, 6, 1), GN_SHAPE(n, 2, 3));
    return gni_end_scope(g, gn_grid_sample(x, gn_affine_grid(theta, h, w, false), NULL));
}

GPUNUM_API gn_array *gn_mixup(gn_array *x, gn_array *labels, double alpha, gn_array **other, gn_array **weight) {
    gn_array *in[2] = {x, labels};
    if (other != NULL) *other = NULL;
    if (weight != NULL) *weight = NULL;
    gn_context *g = gni_begin("gn_mixup", in, 2);
    if (g == NULL) return NULL;
    char tx[200], tl[200];
    if (x->shape.rank < 1 || labels->shape.rank < 1 || x->shape.dim[0] != labels->shape.dim[0])
        gni_fail(g, GN_ERROR_SHAPE, "gn_mixup: x %s and labels %s are not of one batch",
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(tl, sizeof tl, &labels->shape));
    else if (!gni_is_float(x->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_mixup: x is %s, not a float", gn_dtype_name(x->dtype));
    else if (!(alpha > 0.0 && alpha <= 1e6))
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_mixup: alpha is %g", alpha);
    else if (other == NULL || weight == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_mixup: no room for the labels or the weight");
    if (g->call_failed) return gni_end(g, NULL);
    gn_scope_begin(g);
    gn_array *w = gn_beta(g, x->dtype == GN_F64 ? GN_F64 : GN_F32, GN_SHAPE(), alpha, alpha);
    gn_array *order = gn_permutation(g, GN_I64, x->shape.dim[0]);
    gn_array *y = gn_cast(gn_lerp(gn_take(x, order, 0), x, w), x->dtype), *out[3];
    out[0] = gn_keep(y);
    out[1] = gn_keep(gn_take(labels, order, 0));
    out[2] = gn_keep(w);
    gn_scope_end(g);
    gni_end_several(g, out, 3);
    *other = out[1];
    *weight = out[2];
    return out[0];
}

GPUNUM_API gn_array *gn_normalize(gn_array *x, const double *mean, const double *deviation, int channels) {
    gn_context *g = gni_begin_images("gn_normalize", x, false);
    if (g == NULL) return NULL;
    if (x->dtype != GN_U8 && !gni_is_float(x->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_normalize: x is %s, not a float or uint8", gn_dtype_name(x->dtype));
    else if (mean == NULL || deviation == NULL)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_normalize: mean or deviation is NULL");
    else if (channels != x->shape.dim[1])
        gni_fail(g, GN_ERROR_SHAPE, "gn_normalize: numbers for %d channels of %lld", channels, (long long)x->shape.dim[1]);
    if (g->call_failed) return gni_end_scope(g, NULL);
    const double scale = x->dtype == GN_U8 ? 1.0 / 255.0 : 1.0;
    gn_array *m = gn_array_from(g, GN_F64, GN_SHAPE(channels, 1, 1), mean);
    gn_array *d = gn_array_from(g, GN_F64, GN_SHAPE(channels, 1, 1), deviation);
    const gn_dtype t = x->dtype == GN_F64 ? GN_F64 : GN_F32;
    // One multiplication and one addition: x (scale / d) - m / d.
    gn_array *a = gn_cast(gn_rdiv_s(d, scale), t), *b = gn_cast(gn_neg(gn_div(m, d)), t);
    gn_array *y = gn_fma(gn_cast(x, t), a, b);
    return gni_end_scope(g, gni_is_float(x->dtype) ? gn_cast(y, x->dtype) : y);
}

// ---- places

// Coordinates of n pixels' centres: between the edges, or from edge to edge.
static gn_array *gni_centres(gn_context *g, gn_dtype t, int64_t n, bool align_corners) {
    gn_array *i = gn_arange(g, t, 0.0, (double)n, 1.0);
    if (align_corners) return n > 1 ? gn_sub_s(gn_mul_s(i, 2.0 / (double)(n - 1)), 1.0) : gn_zeros_like(i);
    return gn_sub_s(gn_div_s(gn_add_s(gn_mul_s(i, 2.0), 1.0), (double)n), 1.0);
}

GPUNUM_API gn_array *gn_affine_grid(gn_array *theta, int64_t height, int64_t width, bool align_corners) {
    gn_context *g = gni_begin("gn_affine_grid", &theta, 1);
    if (g == NULL) return NULL;
    char text[200];
    const gn_shape s = theta->shape;
    if (s.rank != 3 || s.dim[1] != 2 || s.dim[2] != 3 || height < 1 || width < 1)
        gni_fail(g, GN_ERROR_SHAPE, "gn_affine_grid: theta %s for %lld x %lld is not (n, 2, 3)",
                 gni_shape_text(text, sizeof text, &s), (long long)height, (long long)width);
    else if (!gni_is_float(theta->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_affine_grid: theta is %s, not a float", gn_dtype_name(theta->dtype));
    const gn_shape result = GN_SHAPE(s.dim[0], height, width, 2);
    if (g->call_failed || !gni_shape_ok(g, "gn_affine_grid", theta->dtype, &result)) return gni_end(g, NULL);
    gn_scope_begin(g);
    const gn_dtype t = theta->dtype == GN_F64 ? GN_F64 : GN_F32;
    gn_array *x = gn_reshape(gni_centres(g, t, width, align_corners), GN_SHAPE(width, 1));
    gn_array *y = gn_reshape(gni_centres(g, t, height, align_corners), GN_SHAPE(height, 1, 1));
    gn_array *column[3], *m = gn_expand_dims(gn_expand_dims(gn_cast(theta, t), 1), 1); // (n, 1, 1, 2, 3)
    for (int i = 0; i < 3; i++) column[i] = gn_squeeze(gn_slice(m, 4, i, i + 1, 1), 4);
    gn_array *grid = gn_add(gn_add(gn_mul(column[0], x), gn_mul(column[1], y)), column[2]);
    return gni_end_scope(g, gn_cast(grid, theta->dtype));
}

// Coordinates from -1 to 1 as those of pixels 0 to n - 1, and brought back to the image as the options say.
static gn_array *gni_sample_places(gn_array *x, int64_t n, const gn_grid_options *o) {
    const double most = (double)(n - 1);
    x = o->align_corners ? gn_mul_s(gn_add_s(x, 1.0), most / 2.0)
                         : gn_mul_s(gn_add_s(gn_mul_s(gn_add_s(x, 1.0), (double)n), -1.0), 0.5);
    if (o->outside == GN_OUTSIDE_ZEROS) return x;
    if (o->outside == GN_OUTSIDE_REFLECTION) { // at the edges, or at the outermost centres
        const double low = o->align_corners ? 0.0 : -0.5, span = o->align_corners ? most : (double)n;
        if (span == 0.0) return gn_zeros_like(x);
        gn_array *from = gn_abs(gn_sub_s(x, low)), *rest = gn_mod_s(from, span);
        gn_array *odd = gn_ne_s(gn_mod_s(gn_floor(gn_div_s(gn_sub(gn_detach(from), gn_detach(rest)), span)), 2.0), 0.0);
        x = gn_add_s(gn_where(odd, gn_rsub_s(rest, span), rest), low);
    }
    // The edge itself counts as outside, as in PyTorch: nothing is beyond it to differentiate by.
    gn_array *within = gn_logical_and(gn_gt_s(x, 0.0), gn_lt_s(x, most));
    return gn_where(within, x, gn_clamp(gn_detach(x), 0.0, most));
}

// x at whole rows and columns, (n, 1, height, width) floats; 0 where there is no such pixel.
static gn_array *gni_sample_pixel(gn_context *g, gn_array *x, gn_array *row, gn_array *column) {
    const int64_t h = gn_dim(x, 2), w = gn_dim(x, 3);
    gn_array *r = gn_cast(gn_clamp(row, 0.0, (double)(h - 1)), GN_I32),
             *c = gn_cast(gn_clamp(column, 0.0, (double)(w - 1)), GN_I32);
    gn_array *inside = gn_logical_and(gni_inside(row, 0, h), gni_inside(column, 0, w));
    return gn_where(inside, gni_pixels(x, r, c), gn_full(g, gn_dtype_of(x), GN_SHAPE(), 0.0));
}

static gn_array *gni_grid_sample(gn_context *g, gn_array *x, gn_array *grid, const gn_grid_options *o) {
    const gn_dtype t = x->dtype == GN_F64 || grid->dtype == GN_F64 ? GN_F64 : GN_F32;
    const int64_t h = x->shape.dim[2], w = x->shape.dim[3];
    grid = gn_expand_dims(gn_cast(grid, t), 1); // (n, 1, height, width, 2)
    gn_array *column = gni_sample_places(gn_squeeze(gn_slice(grid, 4, 0, 1, 1), 4), w, o);
    gn_array *row = gni_sample_places(gn_squeeze(gn_slice(grid, 4, 1, 2, 1), 4), h, o);
    if (o->nearest) return gni_sample_pixel(g, x, gn_round(gn_detach(row)), gn_round(gn_detach(column)));
    gn_array *wide = gn_cast(x, t), *y = NULL;
    gn_array *top = gn_floor(gn_detach(row)), *left = gn_floor(gn_detach(column));
    gn_array *down = gn_sub(row, top), *right = gn_sub(column, left);
    for (int i = 0; i < 4; i++) {
        gn_array *pixel = gni_sample_pixel(g, wide, gn_add_s(top, i / 2), gn_add_s(left, i % 2));
        gn_array *weight = gn_mul(i / 2 ? down : gn_rsub_s(down, 1.0), i % 2 ? right : gn_rsub_s(right, 1.0));
        pixel = gn_mul(pixel, weight);
        y = y != NULL ? gn_add(y, pixel) : pixel;
    }
    return gn_cast(y, x->dtype);
}

GPUNUM_API gn_array *gn_grid_sample(gn_array *x, gn_array *grid, const gn_grid_options *options) {
    gn_array *in[2] = {x, grid};
    gn_context *g = gni_begin("gn_grid_sample", in, 2);
    if (g == NULL) return NULL;
    GNI_OPTIONS(gn_grid_options, o, options);
    char tx[200], tg[200];
    if (x->shape.rank != 4 || grid->shape.rank != 4 || grid->shape.dim[0] != x->shape.dim[0] || grid->shape.dim[3] != 2)
        gni_fail(g, GN_ERROR_SHAPE, "gn_grid_sample: x %s and grid %s are not (n, c, h, w) and (n, height, width, 2)",
                 gni_shape_text(tx, sizeof tx, &x->shape), gni_shape_text(tg, sizeof tg, &grid->shape));
    else if (!gni_is_float(x->dtype) || !gni_is_float(grid->dtype))
        gni_fail(g, GN_ERROR_DTYPE, "gn_grid_sample: x is %s and the grid %s, not floats", gn_dtype_name(x->dtype),
                 gn_dtype_name(grid->dtype));
    else if (o.outside < GN_OUTSIDE_ZEROS || o.outside > GN_OUTSIDE_REFLECTION)
        gni_fail(g, GN_ERROR_ARGUMENT, "gn_grid_sample: outside is %d", (int)o.outside);
    else
        gni_plane_ok(g, x);
    if (g->call_failed) return gni_end(g, NULL);
    gn_scope_begin(g);
    return gni_end_scope(g, gni_grid_sample(g, x, grid, &o));
}
