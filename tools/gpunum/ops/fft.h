// >>fft
// The public transforms: dtypes, shapes and norms turned into one job for each axis; cosine and sine
// transforms and convolutions as compositions of public calls, so that they differentiate.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/circle.h"
#include "../ops/arrange.h"
#include "../ops/complex.h"
#endif

static gn_array *gni_scatter_slice(gn_context *g, gn_array *x, const gn_shape *s, int axis,
                                   int64_t start, int64_t step);

// ---- one axis

static bool gni_back_fft(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx);

// What the transform computes for an array with memory. `axis` counts from 0, n is the
// number of points.
static bool gni_fft_fill(gn_context *g, gni_fft_kind kind, bool inverse, int64_t n, int axis,
                         double scale, gn_array *a, gn_array *y) {
    gni_fft f;
    f.rank = 0;
    f.kind = kind;
    f.inverse = inverse;
    f.n = n;
    f.n_in = GNI_MIN(a->shape.dim[axis], kind == GNI_FFT_C2R ? n / 2 + 1 : n);
    f.scale = scale;
    f.in.buf = a->buf;
    f.in.dtype = a->dtype;
    f.in.offset = a->offset;
    f.in_step = a->stride[axis];
    f.out.dtype = y->dtype;
    f.out.offset = 0;
    f.out_step = y->stride[axis];
    for (int i = 0; i < y->shape.rank; i++) {
        if (i == axis) continue;
        f.dim[f.rank] = y->shape.dim[i];
        f.in.stride[f.rank] = a->stride[i];
        f.out.stride[f.rank++] = y->stride[i];
    }
    f.out.buf = y->buf;
    a->buf->refs++;
#ifdef GPUNUM_NO_FFT
    bool ok = false;
    gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: GPUNUM_NO_FFT leaves it out", g->call);
#else
    bool ok = gni_run(g, &gni_kind_fft, &f, y);
#endif
    gni_buffer_release(g, f.in.buf);
    return ok;
}

// Whether the next axis can be transformed where the last one left its numbers: the CPU reads the rows or columns that
// it works on before it writes them, unless a vector of columns reaches back.
static bool gni_fft_in_place(gn_context *g, gni_fft_kind kind, int64_t n, int axis, gn_array *y) {
    if (g->gpu != NULL || kind != GNI_FFT_C2C || n == 1 || y->shape.dim[axis] != n || gni_tracks(g, &y, 1))
        return false;
    if (y->buf == NULL || y->buf->refs != 1 || y->dtype != gni_complex_of(y->dtype)) return false;
    for (int i = 0; i < y->shape.rank; i++)
        if (i != axis && y->shape.dim[i] % 16 != 0) return false;
    return true;
}

// The axis cut or padded with zeros.
static gn_array *gni_resize_axis(gn_array *a, int axis, int64_t n) {
    if (a == NULL || a->shape.dim[axis] == n) return a;
    if (a->shape.dim[axis] > n) return gn_slice(a, axis, 0, n, 1);
    gn_shape s = a->shape;
    s.dim[axis] = n;
    return gni_scatter_slice(a->ctx, a, &s, axis, 0, 1);
}

// Inside of a public call: a reference for gni_end, or NULL after gni_fail.
static gn_array *gni_fft_make(gn_context *g, const char *fn, gni_fft_kind kind, bool inverse,
                              int64_t n, int axis, double scale, gn_array *a) {
    gn_shape shape = a->shape;
    shape.dim[axis] = kind == GNI_FFT_R2C ? n / 2 + 1 : n;
    gn_dtype t = kind == GNI_FFT_C2R ? gni_part_of(a->dtype) : gni_complex_of(a->dtype);
    if (!gni_shape_ok(g, fn, t, &shape)) return NULL;
    if (n == 1) { // infinity is not multiplied by a factor's zero
        gn_scope_begin(g);
        gn_array *one = gni_resize_axis(a, axis, n);
        one = kind == GNI_FFT_C2R ? gn_real(one) : gn_cast(one, t);
        one = gn_eval(scale != 1.0 ? gn_mul_s(one, scale) : gn_copy(one));
        if (one != NULL) gni_ref(one);
        gn_scope_end(g);
        return one;
    }
    if (!gni_materialize(g, a)) return NULL;
    gn_array *y = gni_array_empty(g, fn, t, &shape);
    if (y == NULL) return NULL;
    if (!gni_fft_fill(g, kind, inverse, n, axis, scale, a, y)) {
        gni_unref(g, y);
        return NULL;
    }
    gni_node *node = gni_tracks(g, &a, 1) ? gni_record(g, y, fn, gni_back_fft, &a, 1) : NULL;
    if (node != NULL) {
        node->param[0] = (int64_t)kind;
        node->param[1] = inverse;
        node->param[2] = n;
        node->param[3] = axis;
        node->real[0] = scale;
    }
    return y;
}

// The transform as a public call.
static gn_array *gni_fft_axis(const char *fn, gni_fft_kind kind, bool inverse, int64_t n, int axis,
                              double scale, gn_array *a) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    return gni_end(g, gni_fft_make(g, fn, kind, inverse, n, axis, scale, a));
}

// A vector along `axis` of an array of that rank.
static gn_array *gni_along(gn_array *v, int axis, int rank) {
    if (v == NULL) return NULL;
    gn_shape s = gn_shape_from(1, v->shape.dim);
    for (int i = axis + 1; i < rank; i++) s.dim[s.rank++] = 1;
    return gn_reshape(v, s);
}

// Every element of a real signal takes part in the spectrum two times, but for the first and, for even
// n, the last number of it.
static gn_array *gni_half_weights(gn_context *g, gn_dtype t, int64_t n) {
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    s.dim[0] = n / 2 + 1;
    if (!gni_begin_context("gn_irfft", g)) return NULL;
    gn_array *w = gni_array_filled(g, "gn_irfft", t, &s, &data);
    for (int64_t k = 0; w != NULL && k <= n / 2; k++)
        gni_store_double(t, data, k, k == 0 || 2 * k == n ? 1.0 : 2.0);
    return gni_end(g, w);
}

// The adjoint: the conjugate transform of gy.
static bool gni_back_fft(gn_context *g, gni_node *node, gn_array *gy, gn_array **gx) {
    gni_fft_kind kind = (gni_fft_kind)node->param[0];
    bool inverse = node->param[1] == 0;
    int64_t n = node->param[2];
    int axis = (int)node->param[3];
    gn_array *a = node->in[0], *y;
    if (gni_elements(&gy->shape) == 0) {
        gx[0] = gn_zeros_like(a);
        return true;
    }
    if (kind == GNI_FFT_C2R) {
        y = gni_fft_axis(node->name, GNI_FFT_R2C, inverse, n, axis, node->real[0], gy);
        gn_array *w = gni_along(gni_half_weights(g, gy->dtype, n), axis, a->shape.rank);
        y = gn_complex(gn_mul(gn_real(y), w), gn_mul(gn_imag(y), w));
    } else {
        y = gni_fft_axis(node->name, GNI_FFT_C2C, inverse, n, axis, node->real[0], gy);
    }
    y = gni_resize_axis(y, axis, a->shape.dim[axis]);
    gx[0] = gni_is_complex(a->dtype) ? y : gn_real(y);
    return true;
}

static double gni_fft_scale(gn_fft_norm norm, bool inverse, double n) {
    if (norm == GN_FFT_ORTHO) return 1.0 / sqrt(n);
    return (norm == GN_FFT_FORWARD) != inverse ? 1.0 / n : 1.0;
}

// Whether the transforms take it as it is: float32, float64, complex64 or complex128.
static bool gni_fft_ready(const gn_array *a, gni_fft_kind kind) {
    return gni_is_complex(a->dtype) ||
           (kind != GNI_FFT_C2R && (a->dtype == GN_F32 || a->dtype == GN_F64));
}

static gn_array *gni_fft_input(gn_array *a, gni_fft_kind kind) {
    if (a == NULL || gni_fft_ready(a, kind)) return a;
    gn_array *x = a->dtype == GN_F32 || a->dtype == GN_F64 ? a : gn_cast(a, GN_F32);
    if (kind == GNI_FFT_C2R && x != NULL && !gni_is_complex(x->dtype))
        x = gn_complex(x, gn_scalar(x->ctx, x->dtype, 0.0));
    return x;
}

// Checks what the user gave; false after gni_fail. *n becomes the number of points.
static bool gni_fft_checked(gn_context *g, const char *fn, gni_fft_kind kind, const gn_array *a,
                            int64_t *n, int *axis, gn_fft_norm norm) {
    if (a->shape.rank == 0) return gni_fail(g, GN_ERROR_SHAPE, "%s: an array of rank 0 has no axis", fn);
    *axis = gni_axis(g, fn, *axis, a->shape.rank);
    if (*axis < 0) return false;
    // An axis of an array without elements may be longer.
    int64_t length = GNI_MIN(a->shape.dim[*axis], GNI_MOST_ELEMENTS + 1);
    if (*n == 0) {
        *n = kind == GNI_FFT_C2R ? 2 * (length - 1) : length;
        if (*n < 1) return gni_fail(g, GN_ERROR_SHAPE, "%s: axis %d of size %lld is too short", fn, *axis, (long long)length);
    }
    if (*n < 1)
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: n is %lld, it must be positive, or 0 for the axis's own", fn,
                        (long long)*n);
    if (*n > GNI_MOST_ELEMENTS) return gni_fail(g, GN_ERROR_SHAPE, "%s: %lld points are too many", fn, (long long)*n);
    if ((unsigned)norm > GN_FFT_FORWARD) return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d is not a gn_fft_norm", fn, (int)norm);
    if (kind == GNI_FFT_R2C && gni_is_complex(a->dtype))
        return gni_fail(g, GN_ERROR_DTYPE, "%s: the input must be real, it is %s", fn, gn_dtype_name(a->dtype));
    return true;
}

// `inverse` is the sign of the exponent, `backward` which of the two directions the norm takes it for.
static gn_array *gni_fft_one(const char *fn, gni_fft_kind kind, bool inverse, bool backward,
                             gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    gn_context *g = gni_begin(fn, &a, 1);
    if (g == NULL) return NULL;
    if (!gni_fft_checked(g, fn, kind, a, &n, &axis, norm)) return gni_end(g, NULL);
    const double scale = gni_fft_scale(norm, backward, (double)n);
    if (gni_fft_ready(a, kind))
        return gni_end(g, gni_fft_make(g, fn, kind, inverse, n, axis, scale, a));
    gn_scope_begin(g);
    return gni_end_scope(g,
                         gni_fft_axis(fn, kind, inverse, n, axis, scale, gni_fft_input(a, kind)));
}

GPUNUM_API gn_array *gn_fft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_fft", GNI_FFT_C2C, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_ifft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_ifft", GNI_FFT_C2C, true, true, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_rfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_rfft", GNI_FFT_R2C, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_irfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_irfft", GNI_FFT_C2R, true, true, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_hfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_hfft", GNI_FFT_C2R, false, false, a, n, axis, norm);
}
GPUNUM_API gn_array *gn_ihfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm) {
    return gni_fft_one("gn_ihfft", GNI_FFT_R2C, true, true, a, n, axis, norm);
}

// ---- several axes

// Resolves axes and lengths; -1 after gni_fail, otherwise how many. `last` is the kind of the last one.
static int gni_fft_axes(gn_context *g, const char *fn, gni_fft_kind last, const gn_array *a,
                        const int64_t *n, const int *axes, int count, gn_fft_norm norm,
                        int64_t *points, int *axis) {
    if (count == 0) count = a->shape.rank;
    if (count < 1 || count > a->shape.rank) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d axes of an array of rank %d", fn, count,
                 a->shape.rank);
        return -1;
    }
    for (int i = 0; i < count; i++) {
        points[i] = n != NULL ? n[i] : 0;
        axis[i] = axes != NULL ? axes[i] : i - count;
        if (!gni_fft_checked(g, fn, i == count - 1 ? last : GNI_FFT_C2C, a, &points[i], &axis[i],
                             norm))
            return -1;
        for (int k = 0; k < i; k++) {
            if (axis[k] != axis[i]) continue;
            gni_fail(g, GN_ERROR_ARGUMENT, "%s: axis %d is given more than once", fn, axis[i]);
            return -1;
        }
    }
    return count;
}

static gn_array *gni_fft_many(const char *fn, gni_fft_kind last, bool inverse, gn_array *a,
                              const int64_t *n, const int *axes, int count, gn_fft_norm norm) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    int64_t points[GN_MAX_RANK];
    int axis[GN_MAX_RANK];
    gn_array *y = NULL;
    count = gni_fft_axes(g, fn, last, a, n, axes, count, norm, points, axis);
    if (count > 0) {
        y = gni_fft_input(a, last);
        // The real side comes first on the way forward and last on the way back.
        for (int i = 0; i < count && y != NULL; i++) {
            int at = last == GNI_FFT_C2R ? i : count - 1 - i;
            double scale = gni_fft_scale(norm, inverse, (double)points[at]);
            gni_fft_kind kind = at == count - 1 ? last : GNI_FFT_C2C;
            if (i > 0 && gni_fft_in_place(g, kind, points[at], axis[at], y)) {
                if (!gni_fft_fill(g, kind, inverse, points[at], axis[at], scale, y, y)) y = NULL;
                continue;
            }
            y = gni_fft_axis(fn, kind, inverse, points[at], axis[at], scale, y);
        }
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_fftn(gn_array *a, const int64_t *n, const int *axes, int count,
                             gn_fft_norm norm) {
    return gni_fft_many("gn_fftn", GNI_FFT_C2C, false, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_ifftn(gn_array *a, const int64_t *n, const int *axes, int count,
                              gn_fft_norm norm) {
    return gni_fft_many("gn_ifftn", GNI_FFT_C2C, true, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_rfftn(gn_array *a, const int64_t *n, const int *axes, int count,
                              gn_fft_norm norm) {
    return gni_fft_many("gn_rfftn", GNI_FFT_R2C, false, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_irfftn(gn_array *a, const int64_t *n, const int *axes, int count,
                               gn_fft_norm norm) {
    return gni_fft_many("gn_irfftn", GNI_FFT_C2R, true, a, n, axes, count, norm);
}
GPUNUM_API gn_array *gn_fft2(gn_array *a, gn_fft_norm norm) {
    return gni_fft_many("gn_fft2", GNI_FFT_C2C, false, a, NULL, NULL, 2, norm);
}
GPUNUM_API gn_array *gn_ifft2(gn_array *a, gn_fft_norm norm) {
    return gni_fft_many("gn_ifft2", GNI_FFT_C2C, true, a, NULL, NULL, 2, norm);
}

// ---- frequencies and shifts

static gn_array *gni_frequencies(const char *fn, gn_context *g, gn_dtype t, int64_t n, double d,
                                 bool half) {
    if (!gni_begin_context(fn, g)) return NULL;
    gn_array *y = NULL;
    void *data = NULL;
    if (n < 1) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: n is %lld, it must be positive", fn, (long long)n);
    } else if (!(d > 0.0 || d < 0.0)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: the spacing d is %g, it must not be 0 or NaN", fn, d);
    } else if (t != GN_F32 && t != GN_F64) {
        gni_fail(g, GN_ERROR_DTYPE, "%s: %s is neither float32 nor float64", fn, gn_dtype_name(t));
    } else {
        gn_shape s = gn_shape_from(1, &n);
        if (half) s.dim[0] = n / 2 + 1;
        y = gni_array_filled(g, fn, t, &s, &data);
        for (int64_t i = 0; y != NULL && i < s.dim[0]; i++) {
            int64_t k = half || 2 * i < n ? i : i - n;
            gni_store_double(t, data, i, (double)k / ((double)n * d));
        }
    }
    return gni_end(g, y);
}

GPUNUM_API gn_array *gn_fftfreq(gn_context *g, gn_dtype t, int64_t n, double d) {
    return gni_frequencies("gn_fftfreq", g, t, n, d, false);
}
GPUNUM_API gn_array *gn_rfftfreq(gn_context *g, gn_dtype t, int64_t n, double d) {
    return gni_frequencies("gn_rfftfreq", g, t, n, d, true);
}

static gn_array *gni_shift(const char *fn, gn_array *a, gn_axes axes, bool back) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    uint32_t set = gni_axes(g, fn, axes, a->shape.rank, NULL);
    gn_array *y = set == ~0u ? NULL : gn_reshape(a, a->shape);
    for (int i = 0; i < a->shape.rank && y != NULL; i++) {
        int64_t n = a->shape.dim[i], at = back ? n / 2 : n - n / 2; // what becomes element 0
        if ((set >> i & 1u) && n > 1) y = gni_rolled(y, i, at);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_fftshift(gn_array *a, gn_axes axes) {
    return gni_shift("gn_fftshift", a, axes, false);
}
GPUNUM_API gn_array *gn_ifftshift(gn_array *a, gn_axes axes) {
    return gni_shift("gn_ifftshift", a, axes, true);
}

// ---- cosine and sine transforms of the last axis

// The real and the imaginary parts of exp(-2 pi i (a k + b) / period): products of those of runs and those within one.
static void gni_twiddles(gn_context *g, gn_dtype t, int64_t n, int64_t a, int64_t b, int64_t period, gn_array *y[2]) {
    enum { RUN = 64 };
    const gn_shape s = gn_shape_from(1, &n);
    double re[RUN], im[RUN], c = 1.0, d = 0.0;
    void *data[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) y[i] = gni_adopt(g, gni_array_filled(g, "gn_dct", t, &s, &data[i]));
    for (int64_t k = 0; k < GNI_MIN(n, (int64_t)RUN); k++) gni_ft_twiddle(a * k, period, &re[k], &im[k]);
    for (int64_t k = 0; y[0] != NULL && y[1] != NULL && k < n; k++) {
        const int64_t j = k % RUN;
        if (j == 0) gni_ft_twiddle(a * k + b, period, &c, &d);
        const double x = c * re[j] - d * im[j], z = c * im[j] + d * re[j];
        if (t == GN_F64) ((double *)data[0])[k] = x, ((double *)data[1])[k] = z;
        else ((float *)data[0])[k] = (float)x, ((float *)data[1])[k] = (float)z;
    }
}

// The first and last elements of the last axis times factors.
static gn_array *gni_scale_ends(gn_array *x, double first, double last) {
    if (x == NULL || (first == 1.0 && last == 1.0)) return x;
    gn_context *g = x->ctx;
    int64_t n = x->shape.dim[x->shape.rank - 1];
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    if (!gni_begin_context("gn_dct", g)) return NULL;
    gn_array *w = gni_array_filled(g, "gn_dct", x->dtype, &s, &data);
    for (int64_t k = 0; w != NULL && k < n; k++)
        gni_store_double(x->dtype, data, k,
                         k == 0       ? (n == 1 ? first * last : first)
                         : k == n - 1 ? last
                                      : 1.0);
    return gn_mul(x, gni_end(g, w));
}

// x[0], x[2], ... and the elements between them backwards.
static void gni_fold(gn_array *x, gn_array *part[2]) {
    part[0] = gn_slice(x, -1, 0, GN_NONE, 2);
    part[1] = gn_flip(gn_slice(x, -1, 1, GN_NONE, 2), -1);
}

// Puts both parts, which follow each other, back.
static gn_array *gni_unfold(gn_context *g, gn_array *x, int64_t n) {
    gn_shape s = gn_shape_from(1, &n);
    void *data = NULL;
    if (!gni_begin_context("gn_dct", g)) return NULL;
    gn_array *y = gni_array_filled(g, "gn_dct", GN_I64, &s, &data);
    for (int64_t i = 0; y != NULL && i < n; i++) ((int64_t *)data)[i] = i % 2 == 0 ? i / 2 : n - 1 - i / 2;
    return gn_take(x, gni_end(g, y), -1);
}

// 2 sum x[j] cos(pi k (2 j + 1) / (2 n)), by a Fourier transform of n points (Makhoul 1980); from the middle on by the
// imaginary parts of those in front of it.
static gn_array *gni_dct_2(gn_context *g, gn_array *x, int64_t n) {
    gn_array *w[2], *part[2];
    if (x == NULL) return NULL;
    const int last = x->shape.rank - 1;
    gni_fold(x, part);
    gn_array *f = gni_fft_axis("gn_dct", GNI_FFT_R2C, false, n, last, 2.0, gn_concat(part, 2, last));
    gni_twiddles(g, x->dtype, n / 2 + 1, 1, 0, 4 * n, w);
    part[0] = gn_sub(gn_mul(gn_real(f), w[0]), gn_mul(gn_imag(f), w[1]));
    part[1] = gn_neg(gn_add(gn_mul(gn_real(f), w[1]), gn_mul(gn_imag(f), w[0])));
    part[1] = gn_flip(gn_slice(part[1], last, 1, (n + 1) / 2, 1), -1);
    return gn_concat(part, 2, last);
}

// x[0] + 2 sum x[j] cos(pi (2 k + 1) j / (2 n)), the same backwards.
static gn_array *gni_dct_3(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    int64_t h = n / 2;
    gn_array *a = gn_slice(x, last, 0, h + 1, 1);
    if (n > 1) {
        gn_array *w[2], *c, *s;
        gni_twiddles(g, x->dtype, h + 1, 1, 0, 4 * n, w);
        c = w[0], s = gn_neg(w[1]);
        // x[n - k], and 0 for k = 0
        gn_array *b = gn_flip(gn_slice(x, last, n - h, n, 1), -1);
        gn_shape shape = a != NULL ? a->shape : gn_shape_from(0, NULL);
        if (a == NULL || b == NULL) return NULL;
        b = gni_scatter_slice(g, b, &shape, last, 1, 1);
        a = gn_complex(gn_add(gn_mul(a, c), gn_mul(b, s)), gn_sub(gn_mul(a, s), gn_mul(b, c)));
    } else {
        a = gn_complex(a, gn_scalar(g, x->dtype, 0.0));
    }
    gn_array *v = gni_fft_axis("gn_dct", GNI_FFT_C2R, true, n, last, 1.0, a);
    return gni_unfold(g, v, n);
}

// x[0] + (-1)^k x[n-1] + 2 sum x[j] cos(pi k j / (n - 1)): an even sequence's transform.
static gn_array *gni_dct_1(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *part[2];
    GNI_UNUSED(g);
    part[0] = x;
    part[1] = gn_flip(gn_slice(x, last, 1, n - 1, 1), -1);
    gn_array *even = n > 2 ? gn_concat(part, 2, last) : x;
    return gn_real(gni_fft_axis("gn_dct", GNI_FFT_R2C, false, 2 * (n - 1), last, 1.0, even));
}

// 2 sum x[j] cos(pi (2 k + 1) (2 j + 1) / (4 n)), by a transform of 2 n points; for even n of n / 2 points,
// x[2 j] + i x[n - 1 - 2 j].
static gn_array *gni_dct_4(gn_context *g, gn_array *x, int64_t n) {
    const int last = x->shape.rank - 1, even = n % 2 == 0;
    gn_array *w[2], *v[2], *part[2];
    gni_twiddles(g, x->dtype, even ? n / 2 : n, even ? 4 : 1, even, even ? 8 * n : 4 * n, w);
    gni_twiddles(g, x->dtype, even ? n / 2 : n, even ? 1 : 2, !even, even ? 2 * n : 8 * n, v);
    gn_array *z = x;
    if (even) gni_fold(x, part), z = gn_complex(part[0], part[1]);
    z = gn_mul(z, gn_complex(w[0], w[1]));
    gn_array *f = gni_fft_axis("gn_dct", GNI_FFT_C2C, false, even ? n / 2 : 2 * n, last, 2.0, z);
    f = gn_mul(even ? f : gn_slice(f, last, 0, n, 1), gn_complex(v[0], v[1]));
    part[0] = gn_real(f);
    if (!even) return part[0];
    part[1] = gn_neg(gn_imag(f));
    return gni_unfold(g, gn_concat(part, 2, last), n);
}

// 2 sum x[j] sin(pi (k + 1) (j + 1) / (n + 1)): an odd sequence's transform.
static gn_array *gni_dst_1(gn_context *g, gn_array *x, int64_t n) {
    int last = x->shape.rank - 1;
    gn_array *part[4];
    gn_shape s = x->shape;
    s.dim[last] = 1;
    part[0] = part[2] = gn_zeros(g, x->dtype, s);
    part[1] = x;
    part[3] = gn_neg(gn_flip(x, -1));
    gn_array *f = gni_fft_axis("gn_dst", GNI_FFT_R2C, false, 2 * (n + 1), last, -1.0,
                               gn_concat(part, 4, last));
    return gn_slice(gn_imag(f), last, 1, n + 1, 1);
}

// 1, -1, 1, ... on the last axis.
static gn_array *gni_alternate(gn_context *g, gn_array *x, int64_t n) {
    gn_array *w[2];
    if (x == NULL) return NULL;
    gni_twiddles(g, x->dtype, n, 1, 0, 2, w);
    return gn_mul(x, w[0]);
}

static gn_array *gni_cosine(gn_context *g, gn_array *x, int type, int64_t n, bool sine) {
    gn_array *y;
    if (type == 1) return sine ? gni_dst_1(g, x, n) : gni_dct_1(g, x, n);
    if (type == 2) {
        y = gni_dct_2(g, sine ? gni_alternate(g, x, n) : x, n);
        return sine ? gn_flip(y, -1) : y;
    }
    if (sine) x = gn_flip(x, -1);
    if (x == NULL) return NULL;
    y = type == 3 ? gni_dct_3(g, x, n) : gni_dct_4(g, x, n);
    return sine ? gni_alternate(g, y, n) : y;
}

// `type` is that of the sum that is computed; `backward` says how the norm counts it.
static gn_array *gni_trigonometric(const char *fn, gn_array *a, int type, int64_t n, int axis,
                                   gn_fft_norm norm, bool sine, bool backward) {
    gn_context *g = gni_begin_scope(fn, &a, 1);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    bool ok = gni_fft_checked(g, fn, GNI_FFT_R2C, a, &n, &axis, norm);
    if (ok && (type < 1 || type > 4)) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: type %d is not in 1..4", fn, type);
    } else if (ok && type == 1 && !sine && n < 2) {
        gni_fail(g, GN_ERROR_ARGUMENT, "%s: type 1 needs two points or more", fn);
    } else if (ok) {
        const bool ortho = norm == GN_FFT_ORTHO;
        const double root = sqrt(2.0), period = 2.0 * (double)(type != 1 ? n
                                                               : sine    ? n + 1
                                                                         : n - 1);
        gn_array *x = gni_resize_axis(gni_fft_input(a, GNI_FFT_R2C), axis, n);
        if (gn_size(x) == 0) return gni_end_scope(g, gn_reshape(x, gn_shape_of(x)));
        x = gn_move_axis(x, axis, -1);
        // The matrix is orthogonal once its edges are scaled.
        if (ortho && type == 1 && !sine) x = gni_scale_ends(x, root, root);
        if (ortho && type == 3) x = gni_scale_ends(x, sine ? 1.0 : root, sine ? root : 1.0);
        if (x != NULL) y = gni_cosine(g, x, type, n, sine);
        if (ortho && type == 1 && !sine) y = gni_scale_ends(y, 1.0 / root, 1.0 / root);
        if (ortho && type == 2)
            y = gni_scale_ends(y, sine ? 1.0 : 1.0 / root, sine ? 1.0 / root : 1.0);
        double scale = gni_fft_scale(norm, backward, period);
        if (scale != 1.0) y = gn_mul_s(y, scale);
        y = gn_move_axis(y, -1, axis);
    }
    return gni_end_scope(g, y);
}

static int gni_inverse_type(int type) { return type == 2 ? 3 : type == 3 ? 2 : type; }

GPUNUM_API gn_array *gn_dct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_dct", a, type, n, axis, norm, false, false);
}
GPUNUM_API gn_array *gn_idct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_idct", a, gni_inverse_type(type), n, axis, norm, false, true);
}
GPUNUM_API gn_array *gn_dst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_dst", a, type, n, axis, norm, true, false);
}
GPUNUM_API gn_array *gn_idst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm) {
    return gni_trigonometric("gn_idst", a, gni_inverse_type(type), n, axis, norm, true, true);
}

// ---- convolution

#define GNI_CONV_DIRECT 48 // kernels of so many elements are summed directly

// The least product from n on of p, any power of 2 and primes from number `prime` on, if it is below `best`.
static int64_t gni_fft_smooth(int64_t n, int64_t p, int prime, int64_t best) {
    static const int odd[] = {3, 5, 7, 11, 13};
    for (; prime < GNI_COUNT(odd) && p < n; prime++) best = gni_fft_smooth(n, p * odd[prime], prime, best);
    while (p < n) p *= 2;
    return GNI_MIN(p, best);
}

// The next length that transforms well.
static int64_t gni_fft_good_length(int64_t n) { return gni_fft_smooth(n, 1, 0, INT64_MAX); }

// All overlaps by FFT; every axis.
static gn_array *gni_convolve_fft(gn_array *a, gn_array *b, const gn_shape *full) {
    int64_t n[GN_MAX_RANK] = {0};
    int rank = full->rank;
    bool cplx = gni_is_complex(a->dtype) || gni_is_complex(b->dtype);
    for (int i = 0; i < rank; i++) n[i] = gni_fft_good_length(full->dim[i]);
    gni_fft_kind in = cplx ? GNI_FFT_C2C : GNI_FFT_R2C, out = cplx ? GNI_FFT_C2C : GNI_FFT_C2R;
    gn_array *fa = gni_fft_many("gn_convolve", in, false, a, n, NULL, rank, GN_FFT_BACKWARD);
    if (fa == NULL) return NULL;
    gn_array *fb = gni_fft_many("gn_convolve", in, false, b, n, NULL, rank, GN_FFT_BACKWARD);
    gn_array *y = gni_fft_many("gn_convolve", out, true, gni_complex_mul(fa, fb), n, NULL, rank,
                               GN_FFT_BACKWARD);
    for (int i = 0; i < rank; i++) y = gn_slice(y, i, 0, full->dim[i], 1);
    return y;
}

// All overlaps as a sum of shifted copies of `a`, one for each element of the kernel `b`.
static gn_array *gni_convolve_direct(gn_array *a, gn_array *b, const gn_shape *full) {
    gn_array *x = a, *y = NULL;
    int rank = full->rank;
    int64_t count = gni_elements(&b->shape);
    gn_context *g = a->ctx;
    for (int i = 0; i < rank && x != NULL; i++) { // zeros on both sides
        gn_shape s = x->shape;
        s.dim[i] = full->dim[i] + b->shape.dim[i] - 1;
        x = gni_scatter_slice(g, x, &s, i, b->shape.dim[i] - 1, 1);
    }
    gn_array *in[2];
    in[0] = a;
    in[1] = b;
    // As a product of windows and kernel, but on a CPU where there is little to multiply, and not of a GPU's wide numbers.
    bool pays = a->dtype == GN_F64 || (a->dtype == GN_F32 && count > 8) || full->dim[0] < 1024;
    if (g->gpu != NULL) pays = a->dtype != GN_F64 && gni_is_float(a->dtype);
    if (rank == 1 && pays && !gni_tracks(g, in, 2)) {
        gn_array *turned = gn_flip(b, 0); // of float32 that keeps the product from sums along the windows
        return gn_matmul(gn_sliding_window(x, count, 0), b->dtype == GN_F64 ? gn_copy(turned) : turned);
    }
    for (int64_t e = 0; e < count && x != NULL; e++) {
        gn_array *part = x, *factor = b;
        int64_t rest = e;
        for (int i = rank - 1; i >= 0; i--) {
            int64_t m = b->shape.dim[i], at = rest % m;
            rest /= m;
            part = gn_slice(part, i, m - 1 - at, m - 1 - at + full->dim[i], 1);
            factor = gn_slice(factor, i, at, at + 1, 1);
        }
        gn_array *term = gn_mul(part, factor);
        y = y == NULL ? term : gn_add(y, term);
    }
    return y;
}

// The middle of all overlaps, `start` and `count` for each axis.
static gn_array *gni_convolve_cut(gn_array *y, const gn_shape *a, const gn_shape *b,
                                  gn_convolution mode) {
    for (int i = 0; i < a->rank && y != NULL && mode != GN_CONV_FULL; i++) {
        int64_t n = a->dim[i], m = b->dim[i];
        int64_t start = mode == GN_CONV_SAME ? (m - 1) / 2 : m - 1;
        int64_t count = mode == GN_CONV_SAME ? n : n - m + 1;
        y = gn_slice(y, i, start, start + count, 1);
    }
    return y;
}

// Checks the operands; false after gni_fail.
static bool gni_convolve_ok(gn_context *g, const char *fn, const gn_array *a, const gn_array *b,
                            int rank, gn_convolution mode) {
    char ta[200], tb[200];
    bool fits =
        a->shape.rank == b->shape.rank && a->shape.rank > 0 && (rank == 0 || a->shape.rank == rank);
    if (!fits || gni_elements(&a->shape) == 0 || gni_elements(&b->shape) == 0) {
        gni_fail(g, GN_ERROR_SHAPE, "%s: shapes %s and %s%s", fn,
                 gni_shape_text(ta, sizeof ta, &a->shape), gni_shape_text(tb, sizeof tb, &b->shape),
                 fits        ? ": there is nothing to convolve"
                 : rank == 1 ? " are not 1-d"
                 : rank == 2 ? " are not 2-d"
                             : " differ in rank");
        return false;
    }
    if ((unsigned)mode > GN_CONV_VALID)
        return gni_fail(g, GN_ERROR_ARGUMENT, "%s: %d is not a gn_convolution", fn, (int)mode);
    return true;
}

// `a` as dtype t, complex128 where it is complex.
static gn_array *gni_convolve_in(gn_array *a, gn_dtype t) {
    if (gni_is_complex(a->dtype)) t = GN_C128;
    return a->dtype == t ? a : gn_cast(a, t);
}

// `rank` 0: any. With `fft` the direct sum is not considered.
static gn_array *gni_convolved(const char *fn, gn_array *a, gn_array *b, int rank,
                               gn_convolution mode, bool fft) {
    gn_context *g = gni_begin_pair(fn, a, b);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_convolve_ok(g, fn, a, b, rank, mode)) {
        bool cplx = gni_is_complex(a->dtype) || gni_is_complex(b->dtype);
        gn_dtype t = gn_promote(a->dtype, b->dtype);
        gn_shape full = a->shape;
        bool swap = true; // for "valid" one operand must cover the other
        for (int i = 0; i < full.rank; i++) {
            full.dim[i] += b->shape.dim[i] - 1;
            swap = swap && a->shape.dim[i] <= b->shape.dim[i];
        }
        if (!gni_shape_ok(g, fn, t, &full)) return gni_end_scope(g, NULL);
        for (int i = 0; i < full.rank && mode == GN_CONV_VALID && !swap; i++)
            if (a->shape.dim[i] < b->shape.dim[i])
                gni_fail(g, GN_ERROR_SHAPE, "%s: neither operand covers the other on every axis",
                         fn);
        bool small_b = gni_elements(&b->shape) <= GNI_CONV_DIRECT,
             small_a = gni_elements(&a->shape) <= GNI_CONV_DIRECT, direct = !fft && !cplx && (small_a || small_b);
        // Whole numbers transformed stay exact while the sums are below 2^53. Of two dtypes each transform would have its
        // operand's precision.
        bool whole = !gni_is_float(t) && !cplx, wide = whole || t == GN_F64 || t == GN_C128;
        const gn_dtype inner = whole && direct ? GN_I64 : GN_F64;
        gn_array *x = wide ? gni_convolve_in(a, inner) : a, *k = wide ? gni_convolve_in(b, inner) : b;
        if (g->call_failed || x == NULL || k == NULL)
            y = NULL;
        else if (direct)
            y = small_b ? gni_convolve_direct(x, k, &full) : gni_convolve_direct(k, x, &full);
        else
            y = gni_convolve_fft(x, k, &full);
        bool swapped = mode == GN_CONV_VALID && swap;
        y = gni_convolve_cut(y, swapped ? &b->shape : &a->shape, swapped ? &a->shape : &b->shape,
                             mode);
        if (whole && !direct) y = gn_cast(gn_round(y), t == GN_U64 ? t : GN_I64); // of floats a cast to less saturates
        if (whole)
            y = gn_cast(y, t);
        else if (!cplx && y != NULL && y->dtype != t)
            y = gn_cast(y, t);
        if (y == a || y == b) y = gn_reshape(y, y->shape);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_convolve(gn_array *a, gn_array *b, gn_convolution mode) {
    if (gni_known("gn_convolve", a) && gni_known("gn_convolve", b) && gn_size(a) < gn_size(b))
        return gni_convolved("gn_convolve", b, a, 1, mode, false);
    return gni_convolved("gn_convolve", a, b, 1, mode, false);
}

GPUNUM_API gn_array *gn_correlate(gn_array *a, gn_array *b, gn_convolution mode) {
    gn_context *g = gni_begin_pair("gn_correlate", a, b);
    if (g == NULL) return NULL;
    gn_array *y = NULL;
    if (gni_convolve_ok(g, "gn_correlate", a, b, 1, mode)) {
        gn_array *c = gni_is_complex(b->dtype) ? gn_conj(b) : b;
        if (gn_size(a) >= gn_size(b))
            y = gni_convolved("gn_correlate", a, gn_flip(c, GN_ALL), 1, mode, false);
        else
            y = gn_flip(gni_convolved("gn_correlate", c, gn_flip(a, GN_ALL), 1, mode, false),
                        GN_ALL);
    }
    return gni_end_scope(g, y);
}

GPUNUM_API gn_array *gn_convolve2d(gn_array *a, gn_array *b, gn_convolution mode) {
    return gni_convolved("gn_convolve2d", a, b, 2, mode, false);
}

GPUNUM_API gn_array *gn_fftconvolve(gn_array *a, gn_array *b, gn_convolution mode) {
    return gni_convolved("gn_fftconvolve", a, b, 0, mode, true);
}
