// >>elementwise_api
// Elementwise functions. Operands broadcast against each other as NumPy's do and are promoted as the array API standard
// says; results have the broadcast shape. They are lazy: a chain is computed in one pass when a value is needed. NULL
// where an operand is NULL, of another context, or does not fit: GN_ERROR_SHAPE, GN_ERROR_DTYPE.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/types.h"
#endif

// Of float dtypes; integers and bool become float32. Complex numbers are taken up to gn_atanh, but for gn_rsqrt, gn_cbrt and
// gn_exp2, with C99's branch cuts and special values.
GPUNUM_API gn_array *gn_sqrt(gn_array *a);     // square root; NaN below 0
GPUNUM_API gn_array *gn_rsqrt(gn_array *a);    // 1 / sqrt(a)
GPUNUM_API gn_array *gn_cbrt(gn_array *a);     // cube root, of negative numbers too
GPUNUM_API gn_array *gn_recip(gn_array *a);    // 1 / a
GPUNUM_API gn_array *gn_exp(gn_array *a);      // e to the power a
GPUNUM_API gn_array *gn_exp2(gn_array *a);     // 2 to the power a
GPUNUM_API gn_array *gn_expm1(gn_array *a);    // exp(a) - 1, exact near 0
GPUNUM_API gn_array *gn_log(gn_array *a);      // natural logarithm; -Inf at 0, NaN below
GPUNUM_API gn_array *gn_log2(gn_array *a);     // logarithm to base 2
GPUNUM_API gn_array *gn_log10(gn_array *a);    // logarithm to base 10
GPUNUM_API gn_array *gn_log1p(gn_array *a);    // log(1 + a), exact near 0
GPUNUM_API gn_array *gn_sin(gn_array *a);      // sine of radians
GPUNUM_API gn_array *gn_cos(gn_array *a);      // cosine of radians
GPUNUM_API gn_array *gn_tan(gn_array *a);      // tangent of radians
GPUNUM_API gn_array *gn_asin(gn_array *a);     // arc sine, -pi/2 to pi/2
GPUNUM_API gn_array *gn_acos(gn_array *a);     // arc cosine, 0 to pi
GPUNUM_API gn_array *gn_atan(gn_array *a);     // arc tangent, -pi/2 to pi/2
GPUNUM_API gn_array *gn_sinh(gn_array *a);     // hyperbolic sine
GPUNUM_API gn_array *gn_cosh(gn_array *a);     // hyperbolic cosine
GPUNUM_API gn_array *gn_tanh(gn_array *a);     // hyperbolic tangent
GPUNUM_API gn_array *gn_asinh(gn_array *a);    // inverse hyperbolic sine
GPUNUM_API gn_array *gn_acosh(gn_array *a);    // inverse hyperbolic cosine, from 1
GPUNUM_API gn_array *gn_atanh(gn_array *a);    // inverse hyperbolic tangent, -1 to 1
GPUNUM_API gn_array *gn_erf(gn_array *a);      // error function
// Errors of the next four on float32, in units in the last place: at most 1.4, 2.3, 1.8, 2.4. Left of 0 gn_lgamma's are 1.6
// and gn_digamma's 3.6 of the largest of the value, 1 and what the reflection adds up: gn_lgamma(1 - a) and
// log(pi / |sin(pi a)|); gn_digamma(1 - a) and pi / tan(pi a). float64's are some 1e-15 of the larger of the value and 1.
GPUNUM_API gn_array *gn_erfc(gn_array *a);     // 1 - erf(a), exact where that is small
GPUNUM_API gn_array *gn_erfinv(gn_array *a);   // the number whose error function is a; infinite at -1 and 1, NaN beyond
GPUNUM_API gn_array *gn_lgamma(gn_array *a);   // log |Gamma(a)|; Inf at 0, -1, -2, ...
GPUNUM_API gn_array *gn_digamma(gn_array *a);  // derivative of gn_lgamma; NaN at -1, -2, ..., infinite at 0; two gradients
GPUNUM_API gn_array *gn_sigmoid(gn_array *a);  // 1 / (1 + exp(-a))
GPUNUM_API gn_array *gn_silu(gn_array *a);     // a sigmoid(a)
GPUNUM_API gn_array *gn_gelu(gn_array *a);     // a Phi(a), the normal distribution's Phi itself (by tanh: gn_gelu_tanh)
GPUNUM_API gn_array *gn_softplus(gn_array *a); // log(1 + exp(a))

// Keep the dtype; gn_sign, the roundings and gn_relu are for real numbers.
GPUNUM_API gn_array *gn_neg(gn_array *a);    // -a
GPUNUM_API gn_array *gn_abs(gn_array *a);    // absolute value; magnitude of complex numbers
GPUNUM_API gn_array *gn_sign(gn_array *a);   // -1, 0 or 1
GPUNUM_API gn_array *gn_square(gn_array *a); // a a
GPUNUM_API gn_array *gn_floor(gn_array *a);  // towards -Inf
GPUNUM_API gn_array *gn_ceil(gn_array *a);   // towards +Inf
GPUNUM_API gn_array *gn_round(gn_array *a);  // to the nearest integer, halves to the even one
GPUNUM_API gn_array *gn_trunc(gn_array *a);  // towards 0
GPUNUM_API gn_array *gn_relu(gn_array *a);   // max(a, 0)

// Give bool.
GPUNUM_API gn_array *gn_isnan(gn_array *a);
GPUNUM_API gn_array *gn_isinf(gn_array *a);       // either infinity
GPUNUM_API gn_array *gn_isfinite(gn_array *a);    // neither NaN nor infinite
GPUNUM_API gn_array *gn_logical_not(gn_array *a); // a == 0

// Of two arrays. The first three give a float dtype, the others the promoted one.
GPUNUM_API gn_array *gn_div(gn_array *a, gn_array *b);       // a / b, float also of integers
GPUNUM_API gn_array *gn_atan2(gn_array *a, gn_array *b);     // angle of the point (b, a), -pi to pi
GPUNUM_API gn_array *gn_hypot(gn_array *a, gn_array *b);     // sqrt(a a + b b) without overflow on the way
GPUNUM_API gn_array *gn_add(gn_array *a, gn_array *b);       // a + b
GPUNUM_API gn_array *gn_sub(gn_array *a, gn_array *b);       // a - b
GPUNUM_API gn_array *gn_mul(gn_array *a, gn_array *b);       // a b
GPUNUM_API gn_array *gn_floor_div(gn_array *a, gn_array *b); // a / b rounded towards -Inf; integers by 0 give 0
GPUNUM_API gn_array *gn_mod(gn_array *a, gn_array *b);       // what gn_floor_div leaves; has b's sign
GPUNUM_API gn_array *gn_pow(gn_array *a, gn_array *b);       // a to the power b; integers to powers below 0: 0, but of 1, -1
GPUNUM_API gn_array *gn_minimum(gn_array *a, gn_array *b);   // the smaller; NaN wins
GPUNUM_API gn_array *gn_maximum(gn_array *a, gn_array *b);   // the larger; NaN wins

// Give bool.
GPUNUM_API gn_array *gn_eq(gn_array *a, gn_array *b);          // a == b
GPUNUM_API gn_array *gn_ne(gn_array *a, gn_array *b);          // a != b
GPUNUM_API gn_array *gn_lt(gn_array *a, gn_array *b);          // a < b
GPUNUM_API gn_array *gn_le(gn_array *a, gn_array *b);          // a <= b
GPUNUM_API gn_array *gn_gt(gn_array *a, gn_array *b);          // a > b
GPUNUM_API gn_array *gn_ge(gn_array *a, gn_array *b);          // a >= b
GPUNUM_API gn_array *gn_logical_and(gn_array *a, gn_array *b); // both are not 0
GPUNUM_API gn_array *gn_logical_or(gn_array *a, gn_array *b);  // one is not 0
GPUNUM_API gn_array *gn_logical_xor(gn_array *a, gn_array *b); // just one is not 0

// Bitwise on integers, logical on bool. Shifts by less than 0 or by the width and more give 0 (-1 for right shifts of
// negative numbers).
GPUNUM_API gn_array *gn_and(gn_array *a, gn_array *b); // a & b
GPUNUM_API gn_array *gn_or(gn_array *a, gn_array *b);  // a | b
GPUNUM_API gn_array *gn_xor(gn_array *a, gn_array *b); // a ^ b
GPUNUM_API gn_array *gn_shl(gn_array *a, gn_array *b); // a << b
GPUNUM_API gn_array *gn_shr(gn_array *a, gn_array *b); // a >> b

// The same with a number as b, which does not promote: the dtype of `a` stays, but an integer array and a fraction give
// float32. A number outside of an integer array's dtype is GN_ERROR_ARGUMENT, but for comparisons, which see its true
// value, and for gn_minimum_s, gn_maximum_s and gn_clamp where such a bound, or an infinite one, leaves `a` as it is.
GPUNUM_API gn_array *gn_div_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_atan2_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_hypot_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_add_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_sub_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_mul_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_floor_div_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_mod_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_pow_s(gn_array *a, double b); // float32 and float64 to the third by products, within 1.3 ulp
GPUNUM_API gn_array *gn_minimum_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_maximum_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_eq_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_ne_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_lt_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_le_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_gt_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_ge_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_logical_and_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_logical_or_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_logical_xor_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_and_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_or_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_xor_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_shl_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_shr_s(gn_array *a, double b);
GPUNUM_API gn_array *gn_rsub_s(gn_array *a, double b); // b - a
GPUNUM_API gn_array *gn_rdiv_s(gn_array *a, double b); // b / a
GPUNUM_API gn_array *gn_rpow_s(gn_array *a, double b); // b to the power a

// With parameters.
GPUNUM_API gn_array *gn_leaky_relu(gn_array *a, double slope);               // a, or slope a below 0
GPUNUM_API gn_array *gn_elu(gn_array *a, double alpha);                      // a, or alpha (exp(a) - 1) below 0
GPUNUM_API gn_array *gn_clamp(gn_array *a, double low, double high);         // min(max(a, low), high)
GPUNUM_API gn_array *gn_where(gn_array *condition, gn_array *a, gn_array *b); // a where true, else b
GPUNUM_API gn_array *gn_masked_fill(gn_array *a, gn_array *mask, double value); // that number where true, else a; a's dtype
GPUNUM_API gn_array *gn_fma(gn_array *a, gn_array *b, gn_array *c);           // a * b + c
GPUNUM_API gn_array *gn_lerp(gn_array *a, gn_array *b, gn_array *t);          // a + t * (b - a)
// These numbers for NaN and the infinities; NaN as posinf or neginf stands for the largest number of the dtype.
GPUNUM_API gn_array *gn_nan_to_num(gn_array *a, double nan, double posinf, double neginf);
GPUNUM_API gn_array *gn_clip(gn_array *a, gn_array *low, gn_array *high); // gn_clamp by arrays; a bound that is NULL is none
GPUNUM_API gn_array *gn_logaddexp(gn_array *a, gn_array *b); // log(exp(a) + exp(b)) without overflow on the way
GPUNUM_API gn_array *gn_sinc(gn_array *a);                   // sin(pi a) / (pi a), 1 at 0; exact near whole numbers
GPUNUM_API gn_array *gn_signbit(gn_array *a);                // bool: is it negative, -0 or such a NaN
GPUNUM_API gn_array *gn_nextafter(gn_array *a, gn_array *b); // the number after a on the way to b, of their float dtype
GPUNUM_API gn_array *gn_invert(gn_array *a);                 // ~a of integers, gn_logical_not of bool
GPUNUM_API gn_array *gn_copysign(gn_array *a, gn_array *b);  // the magnitude of a with the sign bit of b
