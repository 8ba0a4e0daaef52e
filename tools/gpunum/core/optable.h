// >>optable
// What each elementwise op is, said once: enum, definitions, CPU loops, shader cases and gradients all come
// from these tables. Columns:
//   fn     the public function      NAME  of the enum GNI_OP_NAME
//   F      float32 vectors a, b, c of the SIMD pass      D  double      I  integers of type T, UT unsigned
//   gF, gI the same in GLSL (float, and int or uint), see tools/shaders/ops.glsl
//   d...   derivative with respect to each operand from gy (of the result), a, b and y, as public calls
// Results of the BOOL tables are masks in F and gF, truth values in D and I.
//
// What the linker leaves out of a program that calls none of them is UNARY_FLOAT, BINARY_ANGLE, BINARY_DIVIDE and the rare
// ones (gni_math in room internal).
//
// Float ops turn integers into float32. ANY ops keep the promoted dtype. Rooms elementwise_api and reductions declare the
// functions.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../api/arrays.h"
#include "../api/elementwise_api.h"
#include "../api/reductions.h"
#include "../core/config.h"
#endif

//      fn              NAME        F                       D                   gF              da
#define GNI_UNARY_FLOAT(X) \
    X(gn_sqrt,        SQRT,       gni_vsqrt(a),           sqrt(a),            "gn_sqrt(a)",   gn_div(gn_mul_s(gy, 0.5), y)) \
    X(gn_rsqrt,       RSQRT,      gni_vrsqrt(a),          1.0 / sqrt(a),      "gn_rsqrt(a)", \
      gn_mul_s(gn_mul(gy, gn_div(y, a)), -0.5)) \
    X(gn_cbrt,        CBRT,       gni_vcbrt(a),           cbrt(a),            "gn_cbrt(a)", \
      gn_div(gy, gn_mul_s(gn_square(y), 3.0))) \
    X(gn_recip,       RECIP,      gni_vset(1.0f) / a,     1.0 / a,            "gn_div(GN_F(1.0), a)", \
      gn_neg(gn_mul(gy, gn_square(y)))) \
    X(gn_exp,         EXP,        gni_vexp(a),            exp(a),             "gn_exp(a)",    gn_mul(gy, y)) \
    X(gn_exp2,        EXP2,       gni_vexp2(a),           exp2(a),            "gn_exp2(a)", \
      gn_mul(gy, gn_mul_s(y, GNI_LN2))) \
    X(gn_expm1,       EXPM1,      gni_vexpm1(a),          expm1(a),           "gn_expm1(a)",  gn_mul(gy, gn_add_s(y, 1.0))) \
    X(gn_log,         LOG,        gni_vlog(a),            log(a),             "gn_log(a)",    gn_div(gy, a)) \
    X(gn_log2,        LOG2,       gni_vlog2(a),           log2(a),            "gn_log2(a)", \
      gn_div(gy, gn_mul_s(a, GNI_LN2))) \
    X(gn_log10,       LOG10,      gni_vlog10(a),          log10(a),           "gn_log10(a)", \
      gn_div(gy, gn_mul_s(a, GNI_LN10))) \
    X(gn_log1p,       LOG1P,      gni_vlog1p(a),          log1p(a),           "gn_log1p(a)",  gn_div(gy, gn_add_s(a, 1.0))) \
    X(gn_sin,         SIN,        gni_vsin(a),            sin(a),             "gn_sin(a)",    gn_mul(gy, gn_cos(a))) \
    X(gn_cos,         COS,        gni_vcos(a),            cos(a),             "gn_cos(a)", \
      gn_neg(gn_mul(gy, gn_sin(a)))) \
    X(gn_tan,         TAN,        gni_vtan(a),            tan(a),             "gn_tan(a)", \
      gn_mul(gy, gn_add_s(gn_square(y), 1.0))) \
    X(gn_asin,        ASIN,       gni_vasin(a),           asin(a),            "gn_asin(a)", \
      gn_mul(gy, gn_rsqrt(gn_rsub_s(gn_square(a), 1.0)))) \
    X(gn_acos,        ACOS,       gni_vacos(a),           acos(a),            "gn_acos(a)", \
      gn_neg(gn_mul(gy, gn_rsqrt(gn_rsub_s(gn_square(a), 1.0))))) \
    X(gn_atan,        ATAN,       gni_vatan(a),           atan(a),            "gn_atan(a)", \
      gn_div(gy, gn_add_s(gn_square(a), 1.0))) \
    X(gn_sinh,        SINH,       gni_vsinh(a),           sinh(a),            "gn_sinh(a)",   gn_mul(gy, gn_cosh(a))) \
    X(gn_cosh,        COSH,       gni_vcosh(a),           cosh(a),            "gn_cosh(a)",   gn_mul(gy, gn_sinh(a))) \
    X(gn_tanh,        TANH,       gni_vtanh(a),           tanh(a),            "gn_tanh(a)", \
      gn_mul(gy, gn_rsub_s(gn_square(y), 1.0))) \
    X(gn_asinh,       ASINH,      gni_vasinh(a),          asinh(a),           "gn_asinh(a)", \
      gn_div(gy, gn_hypot_s(a, 1.0))) \
    X(gn_acosh,       ACOSH,      gni_vacosh(a),          acosh(a),           "gn_acosh(a)", \
      gn_mul(gy, gn_mul(gn_rsqrt(gn_add_s(a, -1.0)), gn_rsqrt(gn_add_s(a, 1.0))))) \
    X(gn_atanh,       ATANH,      gni_vatanh(a),          atanh(a),           "gn_atanh(a)", \
      gn_div(gy, gn_rsub_s(gn_square(a), 1.0))) \
    X(gn_erf,         ERF,        gni_verf(a),            erf(a),             "gn_erf(a)", \
      gn_mul(gy, gn_mul_s(gn_exp(gn_neg(gn_square(a))), GNI_2_SQRTPI))) \
    X(gn_sigmoid,     SIGMOID,    gni_vsigmoid(a),        gni_dsigmoid(a),    "gn_sigmoid(a)", \
      gn_mul(gy, gn_mul(y, gn_rsub_s(y, 1.0)))) \
    X(gn_silu,        SILU,       gni_vsilu(a),           gni_dsilu(a),       "gn_silu(a)",   gni_grad_silu(gy, a)) \
    X(gn_gelu,        GELU,       gni_vgelu(a),           gni_dgelu(a),       "gn_gelu(a)",   gni_grad_gelu(gy, a)) \
    X(gn_softplus,    SOFTPLUS,   gni_vsoftplus(a),       gni_dsoftplus(a),   "gn_softplus(a)", gn_mul(gy, gn_sigmoid(a)))

//      fn              NAME        F                       D                   I                    gF              gI da
#define GNI_UNARY_NEG(X) \
    X(gn_neg,         NEG,        -a,                     -a,                 (T)((UT)0 - (UT)a),  "-a",           "-a", \
      gn_neg(gy))
#define GNI_UNARY_SIZE(X) \
    X(gn_abs,         ABS,        gni_vabs(a),            fabs(a),            GNI_T(gni_iabs)(a),  "abs(a)", \
      "GN_ABS_INT(a)", gn_mul(gy, gn_sign(a))) \
    X(gn_sign,        SIGN,       gni_vsign(a),           a == a ? (a > 0) - (a < 0) : a, GNI_T(gni_isign)(a), "gn_sign(a)", \
      "GN_SIGN_INT(a)", gn_zeros_like(gy))
#define GNI_UNARY_WHOLE(X) \
    X(gn_square,      SQUARE,     a * a,                  a * a,              (T)((UT)a * (UT)a),  "a * a", \
      "a * a",  gn_mul_s(gn_mul(gy, a), 2.0)) \
    X(gn_floor,       FLOOR,      gni_vfloor(a),          floor(a),           a,                   "floor(a)",     "a", \
      gn_zeros_like(gy)) \
    X(gn_ceil,        CEIL,       gni_vceil(a),           ceil(a),            a,                   "ceil(a)",      "a", \
      gn_zeros_like(gy)) \
    X(gn_round,       ROUND,      gni_vrint(a),           gni_drint(a),       a,                   "gn_rint(a)",   "a", \
      gn_zeros_like(gy)) \
    X(gn_trunc,       TRUNC,      gni_vtrunc(a),          trunc(a),           a,                   "trunc(a)",     "a", \
      gn_zeros_like(gy)) \
    X(gn_relu,        RELU,       gni_vmaxc(a, gni_vset(0.0f)), gni_dmax(a, 0.0), GNI_T(gni_irelu)(a), \
      "gn_max(a, GN_F(0.0))", "GN_RELU_INT(a)", gni_grad_relu(gy, y))
#define GNI_UNARY_ANY(X) GNI_UNARY_NEG(X) GNI_UNARY_SIZE(X) GNI_UNARY_WHOLE(X)

// What Vulkan's kernels have in a coarser form, too, for results that become float16 or bfloat16 at once.
#define GNI_UNARY_COARSE(X) \
    X(SQRT, "gn_coarse_sqrt(a)") \
    X(EXP, "gn_coarse_exp(a)") \
    X(EXPM1, "gn_coarse_expm1(a)") \
    X(LOG, "gn_coarse_log(a)") \
    X(LOG2, "gn_coarse_log2(a)") \
    X(LOG1P, "gn_coarse_log1p(a)") \
    X(SIN, "gn_coarse_sin(a)") \
    X(COS, "gn_coarse_cos(a)") \
    X(TANH, "gn_coarse_tanh(a)") \
    X(ERF, "gn_coarse_erf(a)") \
    X(SIGMOID, "gn_coarse_sigmoid(a)") \
    X(SILU, "gn_coarse_silu(a)") \
    X(GELU, "gn_coarse_gelu(a)") \
    X(SOFTPLUS, "gn_coarse_softplus(a)")

//      fn              NAME        F                       D                   I               gF                       gI
#define GNI_UNARY_BOOL(X) \
    X(gn_isnan,       ISNAN,      gni_vne(a, a),          a != a,             (T)(0 * a),     "gn_isnan(a)", \
      "notEqual(a, a)") \
    X(gn_isinf,       ISINF,      gni_veq(gni_vabs(a), gni_vinf()), fabs(a) == GNI_INF, (T)(0 * a), "gn_isinf(a)", \
      "notEqual(a, a)") \
    X(gn_isfinite,    ISFINITE,   gni_vlt(gni_vabs(a), gni_vinf()), fabs(a) < GNI_INF, (T)(0 * a + 1), "gn_isfinite(a)", \
      "equal(a, a)") \
    X(gn_logical_not, LOGICAL_NOT, gni_veq(a, gni_vset(0.0f)), a == 0.0,      a == 0,         "equal(a, GN_F(0.0))", \
      "equal(a, GN_ZERO_INT)")

//      fn              NAME        F                       D                   gF                da, db
#define GNI_BINARY_DIV(X) \
    X(gn_div,         DIV,        a / b,                  a / b,              "gn_div(a, b)",   gn_div(gy, b), \
      gn_neg(gn_div(gn_mul(gy, y), b)))
#define GNI_BINARY_ANGLE(X) \
    X(gn_atan2,       ATAN2,      gni_vatan2(a, b),       atan2(a, b),        "gn_atan2(a, b)", \
      gni_grad_angle(gy, b, a), gn_neg(gni_grad_angle(gy, a, b))) \
    X(gn_hypot,       HYPOT,      gni_vhypot(a, b),       hypot(a, b),        "gn_hypot(a, b)", \
      gn_mul(gy, gni_share(a, b, y)), gn_mul(gy, gni_share(b, a, y)))
#define GNI_BINARY_FLOAT(X) GNI_BINARY_DIV(X) GNI_BINARY_ANGLE(X)
// Parts of functions of complex a + bi: the logarithm of its magnitude; of float32 alone the root of half of that and |a|.
//      NAME        F                       gF
#define GNI_BINARY_PARTS(X) \
    X(LOG_SIZE,   gni_vlog_size(a, b),    "gn_log_size(a, b)") \
    X(ROOT_SIZE,  gni_vroot_size(a, b),   "gn_root_size(a, b)")

//      fn              NAME        F                       D                   I                        gF gI da, db
#define GNI_BINARY_RING(X) \
    X(gn_add,         ADD,        a + b,                  a + b,              (T)((UT)a + (UT)b),      "a + b", \
      "a + b",        gy, gy) \
    X(gn_sub,         SUB,        a - b,                  a - b,              (T)((UT)a - (UT)b),      "a - b", \
      "a - b",        gy, gn_neg(gy)) \
    X(gn_mul,         MUL,        a * b,                  a * b,              (T)((UT)a * (UT)b),      "a * b", \
      "a * b",        gn_mul(gy, b), gn_mul(gy, a))
#define GNI_BINARY_QUOTIENT(X) \
    X(gn_floor_div,   FLOOR_DIV,  gni_vfloor_div(a, b),   gni_dfloor_div(a, b), GNI_T(gni_ifloor_div)(a, b), \
      "gn_floor_div(a, b)", "GN_FLOOR_DIV_INT(a, b)", gn_zeros_like(gy), gn_zeros_like(gy)) \
    X(gn_mod,         MOD,        gni_vmod(a, b),         gni_dmod(a, b),     GNI_T(gni_imod)(a, b),   "gn_mod(a, b)", \
      "GN_MOD_INT(a, b)", gy, gn_neg(gn_mul(gy, gn_floor_div(a, b))))
#define GNI_BINARY_POWER(X) \
    X(gn_pow,         POW,        gni_vpow(a, b),         pow(a, b),          GNI_T(gni_ipow)(a, b),   "gn_pow(a, b)", \
      "GN_POW_INT(a, b)", gni_grad_pow_base(gy, a, b), gni_grad_pow_exponent(gy, a, b, y))
#define GNI_BINARY_BOUND(X) \
    X(gn_minimum,     MIN,        gni_vmin(a, b),         gni_dmin(a, b),     a < b ? a : b,           "gn_min(a, b)", \
      "min(a, b)",    gni_grad_pick(gy, b, a), gni_grad_pick(gy, a, b)) \
    X(gn_maximum,     MAX,        gni_vmax(a, b),         gni_dmax(a, b),     a > b ? a : b,           "gn_max(a, b)", \
      "max(a, b)",    gni_grad_pick(gy, a, b), gni_grad_pick(gy, b, a))
#define GNI_BINARY_DIVIDE(X) GNI_BINARY_QUOTIENT(X) GNI_BINARY_POWER(X)
#define GNI_BINARY_ANY(X) GNI_BINARY_RING(X) GNI_BINARY_DIVIDE(X) GNI_BINARY_BOUND(X)

//      fn              NAME        F                       D            I             gF                        gI
#define GNI_COMPARE(X) \
    X(gn_eq,          EQ,         gni_veq(a, b),          a == b,      a == b,       "equal(a, b)", \
      "equal(a, b)") \
    X(gn_ne,          NE,         gni_vne(a, b),          a != b,      a != b,       "gn_not_equal(a, b)", \
      "notEqual(a, b)") \
    X(gn_lt,          LT,         gni_vlt(a, b),          a < b,       a < b,        "lessThan(a, b)", \
      "lessThan(a, b)") \
    X(gn_le,          LE,         gni_vle(a, b),          a <= b,      a <= b,       "lessThanEqual(a, b)", \
      "lessThanEqual(a, b)") \
    X(gn_gt,          GT,         gni_vgt(a, b),          a > b,       a > b,        "greaterThan(a, b)", \
      "greaterThan(a, b)") \
    X(gn_ge,          GE,         gni_vge(a, b),          a >= b,      a >= b,       "greaterThanEqual(a, b)", \
      "greaterThanEqual(a, b)") \
    X(gn_logical_and, LOGICAL_AND, gni_vtruth(a) & gni_vtruth(b), a != 0.0 && b != 0.0, a != 0 && b != 0, \
      "GN_AND(gn_truth(a), gn_truth(b))", "GN_AND(GN_TRUTH_INT(a), GN_TRUTH_INT(b))") \
    X(gn_logical_or,  LOGICAL_OR, gni_vtruth(a) | gni_vtruth(b), a != 0.0 || b != 0.0, a != 0 || b != 0, \
      "GN_OR(gn_truth(a), gn_truth(b))", "GN_OR(GN_TRUTH_INT(a), GN_TRUTH_INT(b))") \
    X(gn_logical_xor, LOGICAL_XOR, gni_vtruth(a) ^ gni_vtruth(b), (a != 0.0) != (b != 0.0), (a != 0) != (b != 0), \
      "GN_XOR(gn_truth(a), gn_truth(b))", "GN_XOR(GN_TRUTH_INT(a), GN_TRUTH_INT(b))")

#define GNI_BINARY_INT(X) \
    X(gn_and, AND, (T)(a & b), "a & b") \
    X(gn_or, OR, (T)(a | b), "a | b") \
    X(gn_xor, XOR, (T)(a ^ b), "a ^ b") \
    X(gn_shl, SHL, GNI_T(gni_ishl)(a, b), "GN_SHL_INT(a, b)") \
    X(gn_shr, SHR, GNI_T(gni_ishr)(a, b), "GN_SHR_INT(a, b)")

// Rare and long functions of floats: those of float64 are one loop on the CPU (room cpu_special; wide: of float64; of others
// where a pass has no F) and
// math64.glsl's functions on a GPU, which the hidden ones of shorter floats are too, so that they need a GPU with float64.
//      fn             NAME      F               D                   gF               da
#define GNI_UNARY_RARE(X) \
    X(gn_erfc,      ERFC,     gni_verfc(a),    erfc(a),           "gn_erfc(a)", \
      gn_neg(gn_mul(gy, gn_mul_s(gn_exp(gn_neg(gn_square(a))), GNI_2_SQRTPI)))) \
    X(gn_erfinv,    ERFINV,   gni_verfinv(a),  gni_derfinv(a, wide ? 3 : 1), "gn_erfinv(a)", \
      gn_mul(gy, gn_mul_s(gn_exp(gn_square(y)), 1.0 / GNI_2_SQRTPI))) \
    X(gn_lgamma,    LGAMMA,   gni_vlgamma(a),  gni_dlgamma(a),    "gn_lgamma(a)",  gn_mul(gy, gn_digamma(a))) \
    X(gn_digamma,   DIGAMMA,  gni_vdigamma(a), gni_ddigamma(a),   "gn_digamma(a)", gn_mul(gy, gni_trigamma(a)))
//      fn              NAME        D                   da
#define GNI_UNARY_HIDDEN(X) \
    X(gni_trigamma,   TRIGAMMA,   gni_dtrigamma(a),   gn_mul(gy, gni_tetragamma(a))) \
    X(gni_tetragamma, TETRAGAMMA, gni_dtetragamma(a), NULL)

// Reductions over a set of axes (room reductions says what they give). `form`: VALUES has CPU loops for
// floats, signed and unsigned integers, TRUTH for floats and integers; `loop` is their name. The shaders'
// numbers are in tools/shaders/ops.glsl too.
//      fn       NAME  loop  form    gradient
#define GNI_REDUCE_AXES(X) \
    X(gn_sum,    SUM,  sum,  VALUES, gni_back_sum) \
    X(gn_prod,   PROD, prod, VALUES, gni_back_prod) \
    X(gn_min,    MIN,  min,  VALUES, gni_back_minmax) \
    X(gn_max,    MAX,  max,  VALUES, gni_back_minmax) \
    X(gn_any,    ANY,  any,  TRUTH,  NULL) \
    X(gn_all,    ALL,  all,  TRUTH,  NULL)
// And over one axis, to places: without gradient.
//      fn         NAME    loop    form
#define GNI_REDUCE_PLACE(X) \
    X(gn_argmin,   ARGMIN, argmin, VALUES) \
    X(gn_argmax,   ARGMAX, argmax, VALUES)
