// Generated from the op tables of gpunum.h by tools/ops_glsl.c: do not edit.
// The GN_ macros are narrow.glsl's or wide.glsl's. `code` is op * 3 + domain. -DGN_FEW: what matrix
// products run at their stores.

#ifdef GN_REDUCES
#define GN_SUM 0u
#define GN_PROD 3u
#define GN_MIN 6u
#define GN_MAX 9u
#define GN_ANY 12u
#define GN_ALL 15u
#define GN_ARGMIN 18u
#define GN_ARGMAX 21u
#endif

uvec4 gn_exec(uint code, uvec4 ra, uvec4 rb, uvec4 rc) {
    uvec4 r = uvec4(0u);
    switch (code) {
    // SQRT
    case 0u: GN_VALUE_F(gn_sqrt(a))
    // RSQRT
    case 3u: GN_VALUE_F(gn_rsqrt(a))
    // CBRT
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 6u: GN_VALUE_F(gn_cbrt(a))
#endif
    // RECIP
    case 9u: GN_VALUE_F(gn_div(GN_F(1.0), a))
    // EXP
#ifndef GN_NO_MATH64
    case 12u: GN_VALUE_F(gn_exp(a))
#endif
    // EXP2
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 15u: GN_VALUE_F(gn_exp2(a))
#endif
    // EXPM1
#ifndef GN_NO_MATH64
    case 18u: GN_VALUE_F(gn_expm1(a))
#endif
    // LOG
#ifndef GN_NO_MATH64
    case 21u: GN_VALUE_F(gn_log(a))
#endif
    // LOG2
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 24u: GN_VALUE_F(gn_log2(a))
#endif
    // LOG10
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 27u: GN_VALUE_F(gn_log10(a))
#endif
    // LOG1P
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 30u: GN_VALUE_F(gn_log1p(a))
#endif
    // SIN
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 33u: GN_VALUE_F(gn_sin(a))
#endif
    // COS
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 36u: GN_VALUE_F(gn_cos(a))
#endif
    // TAN
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 39u: GN_VALUE_F(gn_tan(a))
#endif
    // ASIN
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 42u: GN_VALUE_F(gn_asin(a))
#endif
    // ACOS
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 45u: GN_VALUE_F(gn_acos(a))
#endif
    // ATAN
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 48u: GN_VALUE_F(gn_atan(a))
#endif
    // SINH
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 51u: GN_VALUE_F(gn_sinh(a))
#endif
    // COSH
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 54u: GN_VALUE_F(gn_cosh(a))
#endif
    // TANH
#ifndef GN_NO_MATH64
    case 57u: GN_VALUE_F(gn_tanh(a))
#endif
    // ASINH
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 60u: GN_VALUE_F(gn_asinh(a))
#endif
    // ACOSH
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 63u: GN_VALUE_F(gn_acosh(a))
#endif
    // ATANH
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 66u: GN_VALUE_F(gn_atanh(a))
#endif
    // ERF
#ifndef GN_NO_MATH64
    case 69u: GN_VALUE_F(gn_erf(a))
#endif
    // SIGMOID
#ifndef GN_NO_MATH64
    case 72u: GN_VALUE_F(gn_sigmoid(a))
#endif
    // SILU
#ifndef GN_NO_MATH64
    case 75u: GN_VALUE_F(gn_silu(a))
#endif
    // GELU
#ifndef GN_NO_MATH64
    case 78u: GN_VALUE_F(gn_gelu(a))
#endif
    // SOFTPLUS
#ifndef GN_NO_MATH64
    case 81u: GN_VALUE_F(gn_softplus(a))
#endif
    // ERFC
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 261u: GN_VALUE_F(gn_erfc(a))
#endif
    // ERFINV
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 264u: GN_VALUE_F(gn_erfinv(a))
#endif
    // LGAMMA
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 267u: GN_VALUE_F(gn_lgamma(a))
#endif
    // DIGAMMA
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 270u: GN_VALUE_F(gn_digamma(a))
#endif
    // NEG
    case 84u: GN_VALUE_F(-a)
#ifndef GN_FEW
    case 85u: GN_VALUE_I(-a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 86u: GN_VALUE_U(-a)
#endif
    // ABS
    case 87u: GN_VALUE_F(abs(a))
#ifndef GN_FEW
    case 88u: GN_VALUE_I(GN_ABS_INT(a))
#endif
#ifndef GN_FEW
    case 89u: GN_VALUE_U(GN_ABS_INT(a))
#endif
    // SIGN
    case 90u: GN_VALUE_F(gn_sign(a))
#ifndef GN_FEW
    case 91u: GN_VALUE_I(GN_SIGN_INT(a))
#endif
#ifndef GN_FEW
    case 92u: GN_VALUE_U(GN_SIGN_INT(a))
#endif
    // SQUARE
    case 93u: GN_VALUE_F(a * a)
#ifndef GN_FEW
    case 94u: GN_VALUE_I(a * a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 95u: GN_VALUE_U(a * a)
#endif
    // FLOOR
    case 96u: GN_VALUE_F(floor(a))
#ifndef GN_FEW
    case 97u: GN_VALUE_I(a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 98u: GN_VALUE_U(a)
#endif
    // CEIL
    case 99u: GN_VALUE_F(ceil(a))
#ifndef GN_FEW
    case 100u: GN_VALUE_I(a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 101u: GN_VALUE_U(a)
#endif
    // ROUND
    case 102u: GN_VALUE_F(gn_rint(a))
#ifndef GN_FEW
    case 103u: GN_VALUE_I(a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 104u: GN_VALUE_U(a)
#endif
    // TRUNC
    case 105u: GN_VALUE_F(trunc(a))
#ifndef GN_FEW
    case 106u: GN_VALUE_I(a)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 107u: GN_VALUE_U(a)
#endif
    // RELU
    case 108u: GN_VALUE_F(gn_max(a, GN_F(0.0)))
#ifndef GN_FEW
    case 109u: GN_VALUE_I(GN_RELU_INT(a))
#endif
#ifndef GN_FEW
    case 110u: GN_VALUE_U(GN_RELU_INT(a))
#endif
    // ISNAN
#ifndef GN_FEW
    case 111u: GN_TRUTH_F(gn_isnan(a))
#endif
#ifndef GN_FEW
    case 112u: GN_TRUTH_I(notEqual(a, a))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 113u: GN_TRUTH_U(notEqual(a, a))
#endif
    // ISINF
#ifndef GN_FEW
    case 114u: GN_TRUTH_F(gn_isinf(a))
#endif
#ifndef GN_FEW
    case 115u: GN_TRUTH_I(notEqual(a, a))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 116u: GN_TRUTH_U(notEqual(a, a))
#endif
    // ISFINITE
#ifndef GN_FEW
    case 117u: GN_TRUTH_F(gn_isfinite(a))
#endif
#ifndef GN_FEW
    case 118u: GN_TRUTH_I(equal(a, a))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 119u: GN_TRUTH_U(equal(a, a))
#endif
    // LOGICAL_NOT
#ifndef GN_FEW
    case 120u: GN_TRUTH_F(equal(a, GN_F(0.0)))
#endif
#ifndef GN_FEW
    case 121u: GN_TRUTH_I(equal(a, GN_ZERO_INT))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 122u: GN_TRUTH_U(equal(a, GN_ZERO_INT))
#endif
    // DIV
    case 123u: GN_VALUE_F(gn_div(a, b))
    // ATAN2
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 126u: GN_VALUE_F(gn_atan2(a, b))
#endif
    // HYPOT
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 129u: GN_VALUE_F(gn_hypot(a, b))
#endif
    // LOG_SIZE
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 132u: GN_VALUE_F(gn_log_size(a, b))
#endif
    // ROOT_SIZE
#if !defined(GN_X64) && !defined(GN_FEW)
    case 135u: GN_VALUE_F(gn_root_size(a, b))
#endif
    // ADD
    case 138u: GN_VALUE_F(a + b)
#ifndef GN_FEW
    case 139u: GN_VALUE_I(a + b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 140u: GN_VALUE_U(a + b)
#endif
    // SUB
    case 141u: GN_VALUE_F(a - b)
#ifndef GN_FEW
    case 142u: GN_VALUE_I(a - b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 143u: GN_VALUE_U(a - b)
#endif
    // MUL
    case 144u: GN_VALUE_F(a * b)
#ifndef GN_FEW
    case 145u: GN_VALUE_I(a * b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 146u: GN_VALUE_U(a * b)
#endif
    // FLOOR_DIV
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 147u: GN_VALUE_F(gn_floor_div(a, b))
#endif
#ifndef GN_FEW
    case 148u: GN_VALUE_I(GN_FLOOR_DIV_INT(a, b))
#endif
#ifndef GN_FEW
    case 149u: GN_VALUE_U(GN_FLOOR_DIV_INT(a, b))
#endif
    // MOD
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 150u: GN_VALUE_F(gn_mod(a, b))
#endif
#ifndef GN_FEW
    case 151u: GN_VALUE_I(GN_MOD_INT(a, b))
#endif
#ifndef GN_FEW
    case 152u: GN_VALUE_U(GN_MOD_INT(a, b))
#endif
    // POW
#if !defined(GN_NO_MATH64) && !defined(GN_FEW)
    case 153u: GN_VALUE_F(gn_pow(a, b))
#endif
#ifndef GN_FEW
    case 154u: GN_VALUE_I(GN_POW_INT(a, b))
#endif
#ifndef GN_FEW
    case 155u: GN_VALUE_U(GN_POW_INT(a, b))
#endif
    // MIN
    case 156u: GN_VALUE_F(gn_min(a, b))
#ifndef GN_FEW
    case 157u: GN_VALUE_I(min(a, b))
#endif
#ifndef GN_FEW
    case 158u: GN_VALUE_U(min(a, b))
#endif
    // MAX
    case 159u: GN_VALUE_F(gn_max(a, b))
#ifndef GN_FEW
    case 160u: GN_VALUE_I(max(a, b))
#endif
#ifndef GN_FEW
    case 161u: GN_VALUE_U(max(a, b))
#endif
    // EQ
    case 162u: GN_TRUTH_F(equal(a, b))
#ifndef GN_FEW
    case 163u: GN_TRUTH_I(equal(a, b))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 164u: GN_TRUTH_U(equal(a, b))
#endif
    // NE
    case 165u: GN_TRUTH_F(gn_not_equal(a, b))
#ifndef GN_FEW
    case 166u: GN_TRUTH_I(notEqual(a, b))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 167u: GN_TRUTH_U(notEqual(a, b))
#endif
    // LT
    case 168u: GN_TRUTH_F(lessThan(a, b))
#ifndef GN_FEW
    case 169u: GN_TRUTH_I(lessThan(a, b))
#endif
#ifndef GN_FEW
    case 170u: GN_TRUTH_U(lessThan(a, b))
#endif
    // LE
    case 171u: GN_TRUTH_F(lessThanEqual(a, b))
#ifndef GN_FEW
    case 172u: GN_TRUTH_I(lessThanEqual(a, b))
#endif
#ifndef GN_FEW
    case 173u: GN_TRUTH_U(lessThanEqual(a, b))
#endif
    // GT
    case 174u: GN_TRUTH_F(greaterThan(a, b))
#ifndef GN_FEW
    case 175u: GN_TRUTH_I(greaterThan(a, b))
#endif
#ifndef GN_FEW
    case 176u: GN_TRUTH_U(greaterThan(a, b))
#endif
    // GE
    case 177u: GN_TRUTH_F(greaterThanEqual(a, b))
#ifndef GN_FEW
    case 178u: GN_TRUTH_I(greaterThanEqual(a, b))
#endif
#ifndef GN_FEW
    case 179u: GN_TRUTH_U(greaterThanEqual(a, b))
#endif
    // LOGICAL_AND
#ifndef GN_FEW
    case 180u: GN_TRUTH_F(GN_AND(gn_truth(a), gn_truth(b)))
#endif
#ifndef GN_FEW
    case 181u: GN_TRUTH_I(GN_AND(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 182u: GN_TRUTH_U(GN_AND(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
    // LOGICAL_OR
#ifndef GN_FEW
    case 183u: GN_TRUTH_F(GN_OR(gn_truth(a), gn_truth(b)))
#endif
#ifndef GN_FEW
    case 184u: GN_TRUTH_I(GN_OR(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 185u: GN_TRUTH_U(GN_OR(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
    // LOGICAL_XOR
#ifndef GN_FEW
    case 186u: GN_TRUTH_F(GN_XOR(gn_truth(a), gn_truth(b)))
#endif
#ifndef GN_FEW
    case 187u: GN_TRUTH_I(GN_XOR(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 188u: GN_TRUTH_U(GN_XOR(GN_TRUTH_INT(a), GN_TRUTH_INT(b)))
#endif
    // AND
#ifndef GN_FEW
    case 190u: GN_VALUE_I(a & b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 191u: GN_VALUE_U(a & b)
#endif
    // OR
#ifndef GN_FEW
    case 193u: GN_VALUE_I(a | b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 194u: GN_VALUE_U(a | b)
#endif
    // XOR
#ifndef GN_FEW
    case 196u: GN_VALUE_I(a ^ b)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 197u: GN_VALUE_U(a ^ b)
#endif
    // SHL
#ifndef GN_FEW
    case 199u: GN_VALUE_I(GN_SHL_INT(a, b))
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 200u: GN_VALUE_U(GN_SHL_INT(a, b))
#endif
    // SHR
#ifndef GN_FEW
    case 202u: GN_VALUE_I(GN_SHR_INT(a, b))
#endif
#ifndef GN_FEW
    case 203u: GN_VALUE_U(GN_SHR_INT(a, b))
#endif
    // WHERE
    case 204u: case 205u: case 206u: GN_BITS(GN_WHERE)
    // FMA
    case 207u: GN_VALUE_F(fma(a, b, c))
#ifndef GN_FEW
    case 208u: GN_VALUE_I(a * b + c)
#endif
#if !defined(GN_X64) && !defined(GN_FEW)
    case 209u: GN_VALUE_U(a * b + c)
#endif
    // I_TO_F
    case 216u: case 217u: case 218u: GN_BITS(GN_I_TO_F)
    // U_TO_F
#ifndef GN_FEW
    case 219u: case 220u: case 221u: GN_BITS(GN_U_TO_F)
#endif
    // F_TO_I
#ifndef GN_FEW
    case 222u: case 223u: case 224u: GN_BITS(GN_F_TO_I)
#endif
    // F_TO_U
#ifndef GN_FEW
    case 225u: case 226u: case 227u: GN_BITS(GN_F_TO_U)
#endif
    // TO_BOOL
    case 228u: GN_BITS(GN_F_TO_BOOL)
    case 229u: case 230u: GN_BITS(GN_I_TO_BOOL)
    // ROUND_F16
    case 231u: case 232u: case 233u: GN_BITS(GN_ROUND_F16)
    // ROUND_BF16
    case 234u: case 235u: case 236u: GN_BITS(GN_ROUND_BF16)
    // ROUND_F32
#ifndef GN_FEW
    case 237u: case 238u: case 239u: GN_BITS(GN_ROUND_F32)
#endif
    // WRAP_U8
#ifndef GN_FEW
    case 240u: case 241u: case 242u: GN_BITS(GN_WRAP_U8)
#endif
    // WRAP_I8
#ifndef GN_FEW
    case 243u: case 244u: case 245u: GN_BITS(GN_WRAP_I8)
#endif
    // WRAP_U32
#ifndef GN_FEW
    case 246u: case 247u: case 248u: GN_BITS(GN_WRAP_U32)
#endif
    // WRAP_I32
#ifndef GN_FEW
    case 249u: case 250u: case 251u: GN_BITS(GN_WRAP_I32)
#endif
    // TO_ODD
#ifndef GN_FEW
    case 253u: GN_BITS(GN_I_TO_ODD)
    case 254u: GN_BITS(GN_U_TO_ODD)
#endif
    // WRAP_U16
#ifndef GN_FEW
    case 255u: case 256u: case 257u: GN_BITS(GN_WRAP_U16)
#endif
    // WRAP_I16
#ifndef GN_FEW
    case 258u: case 259u: case 260u: GN_BITS(GN_WRAP_I16)
#endif
#if defined(GN_X64) && !defined(GN_NO_MATH64) && !defined(GN_FEW)
    // TRIGAMMA
    case 273u: GN_VALUE_F(gn_trigamma(a))
    // TETRAGAMMA
    case 276u: GN_VALUE_F(gn_tetragamma(a))
#endif
#if !defined(GN_X64) && !defined(GN_FEW) && !defined(GN_WGSL)
    // coarse SQRT
    case 1024u: GN_VALUE_F(gn_coarse_sqrt(a))
    // coarse EXP
    case 1036u: GN_VALUE_F(gn_coarse_exp(a))
    // coarse EXPM1
    case 1042u: GN_VALUE_F(gn_coarse_expm1(a))
    // coarse LOG
    case 1045u: GN_VALUE_F(gn_coarse_log(a))
    // coarse LOG2
    case 1048u: GN_VALUE_F(gn_coarse_log2(a))
    // coarse LOG1P
    case 1054u: GN_VALUE_F(gn_coarse_log1p(a))
    // coarse SIN
    case 1057u: GN_VALUE_F(gn_coarse_sin(a))
    // coarse COS
    case 1060u: GN_VALUE_F(gn_coarse_cos(a))
    // coarse TANH
    case 1081u: GN_VALUE_F(gn_coarse_tanh(a))
    // coarse ERF
    case 1093u: GN_VALUE_F(gn_coarse_erf(a))
    // coarse SIGMOID
    case 1096u: GN_VALUE_F(gn_coarse_sigmoid(a))
    // coarse SILU
    case 1099u: GN_VALUE_F(gn_coarse_silu(a))
    // coarse GELU
    case 1102u: GN_VALUE_F(gn_coarse_gelu(a))
    // coarse SOFTPLUS
    case 1105u: GN_VALUE_F(gn_coarse_softplus(a))
#endif
    default: break;
    }
    return r;
}
