// >>transforms
// Fourier, cosine and sine transforms, complex numbers, convolution. Any length, any axis of any view.
//
// float32 and smaller inputs give complex64, float64 gives complex128; integers become float32. `n` cuts
// the axis or pads it with zeros, 0 keeps its length. Any length works; products of primes up to 13
// are fastest. An infinity or NaN makes all of its line's result NaN. Everything is differentiable; the gradient
// of a complex array z is dL/d Re z + i dL/d Im z (parameters are real: gn_complex(re, im)).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

typedef enum gn_fft_norm {
    GN_FFT_BACKWARD, // 1 / n on the inverse transform
    GN_FFT_ORTHO,    // 1 / sqrt(n) on both
    GN_FFT_FORWARD   // 1 / n on the forward transform
} gn_fft_norm;

// y[k] = sum over j of x[j] exp(-2 pi i j k / n); gn_ifft has exp(+...). Complex in and out; real input works.
// Root mean square errors, relative, float32 and float64: 1.2e-7 and 2.4e-16 for 2^12 points, 1.7e-7 and 3.2e-16 for
// 2^20, up to 3.5e-7 and 6.5e-16 where a prime factor above 61 makes it a convolution (above 13 on a GPU). There and
// back: half as much again.
GPUNUM_API gn_array *gn_fft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// Real input of n points to the n / 2 + 1 numbers that say all, and back to n real points (n = 0: 2 (m - 1)
// for m numbers). As in NumPy the imaginary part of the first and, for even n, of the last one is ignored.
GPUNUM_API gn_array *gn_rfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_irfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// The other way round: half a Hermitian signal to its real spectrum of n points, and back.
GPUNUM_API gn_array *gn_hfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ihfft(gn_array *a, int64_t n, int axis, gn_fft_norm norm);
// Over the last two axes.
GPUNUM_API gn_array *gn_fft2(gn_array *a, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifft2(gn_array *a, gn_fft_norm norm);
// Over `count` axes; n[i] is the length on axes[i]. NULL for n keeps all lengths, NULL for axes means the last
// `count` ones, and count 0 all. The real forms do the last of the axes as gn_rfft and gn_irfft do.
GPUNUM_API gn_array *gn_fftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_ifftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_rfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
GPUNUM_API gn_array *gn_irfftn(gn_array *a, const int64_t *n, const int *axes, int count, gn_fft_norm norm);
// Cosine and sine transforms of real input, type 1 to 4, with SciPy's definitions and norms; GN_FFT_ORTHO gives
// orthogonal matrices, gn_dst types 2 and 3 (whose first element old SciPys scale instead of the last) too.
GPUNUM_API gn_array *gn_dct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_idct(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_dst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);
GPUNUM_API gn_array *gn_idst(gn_array *a, int type, int64_t n, int axis, gn_fft_norm norm);

// The frequencies of gn_fft's (n) and gn_rfft's (n / 2 + 1) results for samples `d` apart; t is GN_F32 or GN_F64.
GPUNUM_API gn_array *gn_fftfreq(gn_context *g, gn_dtype t, int64_t n, double d);
GPUNUM_API gn_array *gn_rfftfreq(gn_context *g, gn_dtype t, int64_t n, double d);
// Frequency 0 to the middle of each axis in `axes`, and back.
GPUNUM_API gn_array *gn_fftshift(gn_array *a, gn_axes axes);
GPUNUM_API gn_array *gn_ifftshift(gn_array *a, gn_axes axes);

// Parts of complex arrays are views of the same memory. Real arrays are their own real part and conjugate. Complex arrays
// also go into gn_add, gn_sub, gn_mul, gn_div, gn_eq, gn_ne (with complex or real arrays, or a number), gn_neg, gn_abs,
// gn_square, gn_recip, gn_exp, gn_log, gn_sqrt (infinities and NaN as in C99), gn_expm1, gn_log1p, gn_log2, gn_log10,
// gn_sin, gn_cos, gn_tan, gn_sinh, gn_cosh, gn_tanh, their inverses (gn_asin ... gn_atanh), gn_pow, gn_sign (a / |a|),
// gn_round, gn_isnan and its kin, gn_logical_and and its kin, gn_where, gn_cast, gn_sum, gn_prod, gn_any, gn_all, gn_mean,
// gn_var, gn_std, gn_norm, and into the products and decompositions of matrices, gn_matmul to gn_matrix_norm; each is
// computed when it is called.
GPUNUM_API gn_array *gn_real(gn_array *a);
GPUNUM_API gn_array *gn_imag(gn_array *a);
GPUNUM_API gn_array *gn_complex(gn_array *re, gn_array *im); // broadcasts
GPUNUM_API gn_array *gn_conj(gn_array *a);
GPUNUM_API gn_array *gn_angle(gn_array *a); // in radians, -pi to pi

typedef enum gn_convolution {
    GN_CONV_FULL, // every overlap: n + m - 1
    GN_CONV_SAME, // the middle of it
    GN_CONV_VALID // only whole overlaps
} gn_convolution;

// 1-d, with NumPy's rules (the longer operand says what "same" and "valid" mean). Short kernels are summed
// directly, long ones by FFT: integers wrap, in long ones they are exact while sums stay below 2^53.
GPUNUM_API gn_array *gn_convolve(gn_array *a, gn_array *b, gn_convolution mode);
GPUNUM_API gn_array *gn_correlate(gn_array *a, gn_array *b, gn_convolution mode); // NumPy: with b's conjugate
// 2-d and of any rank, with SciPy's rules (`a` says what "same" means).
GPUNUM_API gn_array *gn_convolve2d(gn_array *a, gn_array *b, gn_convolution mode);
GPUNUM_API gn_array *gn_fftconvolve(gn_array *a, gn_array *b, gn_convolution mode); // always by FFT
