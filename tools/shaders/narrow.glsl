// What ops.glsl needs for 32-bit registers: a group is 4 elements, vec4, ivec4 or uvec4.

#include "math.glsl"

#ifndef GN_F
#define GN_F(x) vec4(x)
#endif
#define GN_AND(p, q) bvec4(uvec4(p) & uvec4(q))
#define GN_OR(p, q) bvec4(uvec4(p) | uvec4(q))
#define GN_XOR(p, q) bvec4(uvec4(p) ^ uvec4(q))

bvec4 gn_truth(vec4 a) { return notEqual(floatBitsToUint(a) & 0x7fffffffu, uvec4(0u)); }

#define GN_VALUE_F(x) { vec4 a = uintBitsToFloat(ra), b = uintBitsToFloat(rb), c = uintBitsToFloat(rc); precise vec4 y = x; r = floatBitsToUint(y); break; }
#define GN_VALUE_I(x) { ivec4 a = ivec4(ra), b = ivec4(rb), c = ivec4(rc); r = uvec4(x); break; }
#define GN_VALUE_U(x) { uvec4 a = ra, b = rb, c = rc; r = x; break; }
#define GN_TRUTH_F(x) { vec4 a = uintBitsToFloat(ra), b = uintBitsToFloat(rb); r = uvec4(x); break; }
#define GN_TRUTH_I(x) { ivec4 a = ivec4(ra), b = ivec4(rb); r = uvec4(x); break; }
#define GN_TRUTH_U(x) { uvec4 a = ra, b = rb; r = uvec4(x); break; }
#define GN_BITS(x) { r = x; break; }

// ---- the integer column of the op tables

#define GN_ZERO_INT (a - a)
#define GN_ABS_INT(a) gn_int_abs(a)
#define GN_SIGN_INT(a) gn_int_sign(a)
#define GN_RELU_INT(a) max(a, a - a)
#define GN_TRUTH_INT(a) notEqual(a, a - a)
#define GN_FLOOR_DIV_INT(a, b) gn_int_floor_div(a, b)
#define GN_MOD_INT(a, b) gn_int_mod(a, b)
#define GN_POW_INT(a, b) gn_int_pow(a, b)
#define GN_SHL_INT(a, b) gn_int_shl(a, b)
#define GN_SHR_INT(a, b) gn_int_shr(a, b)

ivec4 gn_int_abs(ivec4 a) { return abs(a); }
uvec4 gn_int_abs(uvec4 a) { return a; }
ivec4 gn_int_sign(ivec4 a) { return sign(a); }
uvec4 gn_int_sign(uvec4 a) { return min(a, uvec4(1u)); }

// A divisor of 0 gives 0 (NumPy's result, without its warning).
uvec4 gn_int_floor_div(uvec4 a, uvec4 b) {
    bvec4 zero = equal(b, uvec4(0u));
    return mix(a / mix(b, uvec4(1u), zero), uvec4(0u), zero);
}
uvec4 gn_int_mod(uvec4 a, uvec4 b) {
    bvec4 zero = equal(b, uvec4(0u));
    return mix(a % mix(b, uvec4(1u), zero), uvec4(0u), zero);
}
// Signed division goes through unsigned magnitudes: GLSL leaves % of negative numbers open.
ivec4 gn_int_floor_div(ivec4 a, ivec4 b) {
    uvec4 n = uvec4(abs(a)), d = max(uvec4(abs(b)), uvec4(1u)), q = n / d;
    bvec4 differ = lessThan(a ^ b, ivec4(0));
    uvec4 up = uvec4(notEqual(q * d, n));
    ivec4 r = mix(ivec4(q), -ivec4(q + up), differ);
    return mix(r, ivec4(0), equal(b, ivec4(0)));
}
ivec4 gn_int_mod(ivec4 a, ivec4 b) { return mix(a - gn_int_floor_div(a, b) * b, ivec4(0), equal(b, ivec4(0))); }

uvec4 gn_int_pow(uvec4 a, uvec4 b) {
    uvec4 y = uvec4(1u);
    for (int i = 0; i < 32; i++) {
        y = mix(y, y * a, notEqual(b & 1u, uvec4(0u)));
        a *= a;
        b >>= 1;
    }
    return y;
}
// Negative exponents: 1 / a^|b| truncated, so 0 unless a is 1 or -1; 0 gives 0.
ivec4 gn_int_pow(ivec4 a, ivec4 b) {
    ivec4 y = ivec4(gn_int_pow(uvec4(a), uvec4(b)));
    ivec4 odd = mix(ivec4(1), ivec4(-1), notEqual(b & 1, ivec4(0)));
    ivec4 small = mix(mix(ivec4(0), odd, equal(a, ivec4(-1))), ivec4(1), equal(a, ivec4(1)));
    return mix(y, small, lessThan(b, ivec4(0)));
}

uvec4 gn_int_shl(uvec4 a, uvec4 b) { return mix(uvec4(0u), a << (b & 31u), lessThan(b, uvec4(32u))); }
uvec4 gn_int_shr(uvec4 a, uvec4 b) { return mix(uvec4(0u), a >> (b & 31u), lessThan(b, uvec4(32u))); }
ivec4 gn_int_shl(ivec4 a, ivec4 b) { return ivec4(gn_int_shl(uvec4(a), uvec4(b))); }
ivec4 gn_int_shr(ivec4 a, ivec4 b) { return a >> ivec4(min(uvec4(b), uvec4(31u))); }

// ---- conversions

ivec4 gn_f_to_i(vec4 a) {
    ivec4 y = ivec4(clamp(a, vec4(-2147483648.0), vec4(2147483520.0)));
    y = mix(y, ivec4(0x7fffffff), greaterThanEqual(a, vec4(2147483648.0)));
    return mix(y, ivec4(0), gn_isnan(a));
}
uvec4 gn_f_to_u(vec4 a) {
    uvec4 y = uvec4(clamp(a, vec4(0.0), vec4(4294967040.0)));
    y = mix(y, uvec4(0xffffffffu), greaterThanEqual(a, vec4(4294967296.0)));
    return mix(y, uvec4(0u), gn_isnan(a));
}

// Of integers that float32 does not hold, the last of the 24 bits says whether anything was cut off.
uvec4 gn_int_odd(uvec4 a, uvec4 size) {
    bvec4 fits = GN_OR(lessThan(size, uvec4(1u << 24)), equal(a & 0xffu, uvec4(0u)));
    return mix((a & ~0xffu) | 0x100u, a, fits);
}

#define GN_WHERE mix(rc, rb, notEqual(ra, uvec4(0u)))
#define GN_I_TO_F floatBitsToUint(vec4(ivec4(ra)))
#define GN_U_TO_F floatBitsToUint(vec4(ra))
#define GN_I_TO_ODD floatBitsToUint(vec4(ivec4(gn_int_odd(ra, uvec4(abs(ivec4(ra)))))))
#define GN_U_TO_ODD floatBitsToUint(vec4(gn_int_odd(ra, ra)))
#define GN_F_TO_I uvec4(gn_f_to_i(uintBitsToFloat(ra)))
#define GN_F_TO_U gn_f_to_u(uintBitsToFloat(ra))
#define GN_F_TO_BOOL uvec4(notEqual(ra & 0x7fffffffu, uvec4(0u)))
#define GN_I_TO_BOOL uvec4(notEqual(ra, uvec4(0u)))
#define GN_ROUND_F16 gn_round_f16(ra)
#define GN_ROUND_BF16 (gn_pack_bf16(ra) << 16)
#define GN_ROUND_F32 ra
#define GN_WRAP_U8 (ra & 0xffu)
#define GN_WRAP_I8 uvec4(ivec4(ra << 24) >> 24)
#define GN_WRAP_U16 (ra & 0xffffu)
#define GN_WRAP_I16 uvec4(ivec4(ra << 16) >> 16)
#define GN_WRAP_U32 ra
#define GN_WRAP_I32 ra
