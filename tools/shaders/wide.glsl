// What ops.glsl needs for 64-bit registers: a group is 2 elements, dvec2 or i64vec2 in a uvec4.
// exp, sin and the like are math64.glsl's.

#extension GL_ARB_gpu_shader_int64 : require

dvec2 gn_double(uvec4 r) { return dvec2(packDouble2x32(r.xy), packDouble2x32(r.zw)); }
uvec4 gn_bits(dvec2 v) { return uvec4(unpackDouble2x32(v.x), unpackDouble2x32(v.y)); }
i64vec2 gn_long(uvec4 r) { return i64vec2(packInt2x32(ivec2(r.xy)), packInt2x32(ivec2(r.zw))); }
uvec4 gn_bits(i64vec2 v) { return uvec4(uvec2(unpackInt2x32(v.x)), uvec2(unpackInt2x32(v.y))); }
uvec4 gn_bits(u64vec2 v) { return gn_bits(i64vec2(v)); }
uvec4 gn_bits(bvec2 v) { return uvec4(v.x ? 1u : 0u, 0u, v.y ? 1u : 0u, 0u); }
u64vec2 gn_ulong(i64vec2 v) { return u64vec2(v); }

#define GN_F(x) dvec2(x)
#define GN_AND(p, q) bvec2(uvec2(p) & uvec2(q))
#define GN_OR(p, q) bvec2(uvec2(p) | uvec2(q))
#define GN_XOR(p, q) bvec2(uvec2(p) ^ uvec2(q))

#define GN_VALUE_F(x) { dvec2 a = gn_double(ra), b = gn_double(rb), c = gn_double(rc); precise dvec2 y = x; r = gn_bits(y); break; }
#define GN_VALUE_I(x) { i64vec2 a = gn_long(ra), b = gn_long(rb), c = gn_long(rc); r = gn_bits(x); break; }
#define GN_VALUE_U(x) { u64vec2 a = gn_ulong(gn_long(ra)), b = gn_ulong(gn_long(rb)); r = gn_bits(x); break; }
#define GN_TRUTH_U(x) GN_VALUE_U(x)
#define GN_TRUTH_F(x) { dvec2 a = gn_double(ra), b = gn_double(rb); r = gn_bits(x); break; }
#define GN_TRUTH_I(x) { i64vec2 a = gn_long(ra), b = gn_long(rb); r = gn_bits(x); break; }
#define GN_BITS(x) { r = x; break; }

// ---- the float column

bvec2 gn_isnan(dvec2 a) {
    uvec4 r = gn_bits(a);
    uvec2 high = r.yw & 0x7fffffffu;
    return bvec2(high.x > 0x7ff00000u || (high.x == 0x7ff00000u && r.x != 0u),
                 high.y > 0x7ff00000u || (high.y == 0x7ff00000u && r.z != 0u));
}
bvec2 gn_isfinite(dvec2 a) { return lessThan(gn_bits(a).yw & 0x7ff00000u, uvec2(0x7ff00000u)); }
bvec2 gn_isinf(dvec2 a) {
    uvec4 r = gn_bits(a);
    return bvec2((r.y & 0x7fffffffu) == 0x7ff00000u && r.x == 0u, (r.w & 0x7fffffffu) == 0x7ff00000u && r.z == 0u);
}
bvec2 gn_truth(dvec2 a) {
    uvec4 r = gn_bits(a);
    return bvec2(((r.y & 0x7fffffffu) | r.x) != 0u, ((r.w & 0x7fffffffu) | r.z) != 0u);
}
bvec2 gn_not_equal(dvec2 a, dvec2 b) {
    bvec2 e = equal(a, b);
    return bvec2(!e.x, !e.y);
}
dvec2 gn_div(dvec2 a, dvec2 b) { return a / b; }
dvec2 gn_sqrt(dvec2 a) { return sqrt(a); }
dvec2 gn_rsqrt(dvec2 a) { return 1.0 / sqrt(a); }
// To whole numbers by sums, which keep the sign of zero and halves to even everywhere: lavapipe without AVX-512 does neither.
dvec2 gn_with_sign(dvec2 y, dvec2 a) {
    uvec4 r = gn_bits(y);
    r.yw = (r.yw & 0x7fffffffu) | (gn_bits(a).yw & 0x80000000u);
    return gn_double(r);
}
dvec2 gn_rint(dvec2 a) {
    precise dvec2 up = abs(a) + 4503599627370496.0lf;
    precise dvec2 y = up - 4503599627370496.0lf;
    return mix(a, gn_with_sign(y, a), lessThan(gn_bits(a).yw & 0x7fffffffu, uvec2(0x43300000u))); // below 2^52
}
dvec2 gn_floor(dvec2 a) {
    dvec2 y = gn_rint(a);
    return mix(y, gn_with_sign(y - 1.0lf, a), greaterThan(y, a));
}
dvec2 gn_ceil(dvec2 a) {
    dvec2 y = gn_rint(a);
    return mix(y, gn_with_sign(y + 1.0lf, a), lessThan(y, a));
}
dvec2 gn_trunc(dvec2 a) { return gn_with_sign(gn_floor(abs(a)), a); }
#define floor(a) gn_floor(a)
#define ceil(a) gn_ceil(a)
#define trunc(a) gn_trunc(a)
dvec2 gn_sign(dvec2 a) {
    dvec2 y = dvec2(greaterThan(a, dvec2(0.0))) - dvec2(lessThan(a, dvec2(0.0)));
    return mix(y, a, gn_isnan(a));
}
dvec2 gn_max(dvec2 a, dvec2 b) {
    dvec2 y = mix(b, a, greaterThan(a, b));
    return mix(mix(y, a, gn_isnan(a)), b, gn_isnan(b));
}
dvec2 gn_min(dvec2 a, dvec2 b) {
    dvec2 y = mix(b, a, lessThan(a, b));
    return mix(mix(y, a, gn_isnan(a)), b, gn_isnan(b));
}

// ---- the integer column

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

i64vec2 gn_int_abs(i64vec2 a) { return mix(a, -a, lessThan(a, i64vec2(0))); }
i64vec2 gn_int_sign(i64vec2 a) {
    return mix(mix(i64vec2(0), i64vec2(1), greaterThan(a, i64vec2(0))), i64vec2(-1), lessThan(a, i64vec2(0)));
}
u64vec2 gn_int_abs(u64vec2 a) { return a; }
u64vec2 gn_int_sign(u64vec2 a) { return min(a, u64vec2(1)); }
u64vec2 gn_int_floor_div(u64vec2 a, u64vec2 b) {
    bvec2 zero = equal(b, u64vec2(0));
    return mix(a / mix(b, u64vec2(1), zero), u64vec2(0), zero);
}
u64vec2 gn_int_mod(u64vec2 a, u64vec2 b) { return mix(a - gn_int_floor_div(a, b) * b, u64vec2(0), equal(b, u64vec2(0))); }
u64vec2 gn_int_pow(u64vec2 a, u64vec2 b) {
    u64vec2 y = u64vec2(1);
    for (int i = 0; i < 64; i++) {
        y = mix(y, y * a, notEqual(b & u64vec2(1), u64vec2(0)));
        a *= a;
        b >>= 1;
    }
    return y;
}
u64vec2 gn_int_shr(u64vec2 a, u64vec2 b) {
    ivec2 s = ivec2(b) & 63;
    return mix(u64vec2(0), u64vec2(a.x >> s.x, a.y >> s.y), lessThan(b, u64vec2(64)));
}
// A divisor of 0 gives 0. Magnitudes, since the sign of % is not defined for negative numbers.
i64vec2 gn_int_floor_div(i64vec2 a, i64vec2 b) {
    u64vec2 n = u64vec2(gn_int_abs(a)), d = u64vec2(gn_int_abs(b));
    bvec2 zero = equal(b, i64vec2(0));
    d = mix(d, u64vec2(1), zero);
    u64vec2 q = n / d;
    bvec2 differ = lessThan(a ^ b, i64vec2(0));
    u64vec2 up = mix(u64vec2(0), u64vec2(1), notEqual(q * d, n));
    i64vec2 y = mix(i64vec2(q), -i64vec2(q + up), differ);
    return mix(y, i64vec2(0), zero);
}
i64vec2 gn_int_mod(i64vec2 a, i64vec2 b) {
    return mix(a - gn_int_floor_div(a, b) * b, i64vec2(0), equal(b, i64vec2(0)));
}
i64vec2 gn_int_pow(i64vec2 a, i64vec2 b) {
    i64vec2 odd = mix(i64vec2(1), i64vec2(-1), notEqual(b & i64vec2(1), i64vec2(0)));
    i64vec2 small = mix(mix(i64vec2(0), odd, equal(a, i64vec2(-1))), i64vec2(1), equal(a, i64vec2(1)));
    bvec2 negative = lessThan(b, i64vec2(0));
    i64vec2 y = i64vec2(gn_int_pow(u64vec2(a), u64vec2(b)));
    return mix(y, small, negative);
}
i64vec2 gn_int_shl(i64vec2 a, i64vec2 b) {
    bvec2 inside = lessThan(u64vec2(b), u64vec2(64));
    ivec2 s = ivec2(b) & 63;
    return mix(i64vec2(0), i64vec2(a.x << s.x, a.y << s.y), inside);
}
i64vec2 gn_int_shr(i64vec2 a, i64vec2 b) {
    ivec2 s = mix(ivec2(63), ivec2(b) & 63, lessThan(u64vec2(b), u64vec2(64)));
    return i64vec2(a.x >> s.x, a.y >> s.y);
}

// ---- conversions

// Drivers (Mesa 25) leave out a rounding to float32 that becomes a double again, unless its bits pass through a number
// that they do not know to be zero.
uvec2 gn_float_bits(dvec2 a) { return floatBitsToUint(vec2(a)) | GN_UNKNOWN_ZERO; }
// float32 with the last bit telling whether anything was cut off: rounding that to fewer digits rounds
// the double once.
uvec4 gn_round_odd(dvec2 a) {
    uvec2 u = gn_float_bits(a);
    dvec2 back = dvec2(uintBitsToFloat(u));
    bvec2 above = greaterThan(abs(back), abs(a));
    u = mix(u, u - 1u, above);
    u = mix(u, u | 1u, bvec2(uvec2(gn_not_equal(back, a)) & uvec2(not(gn_isnan(a)))));
    return u.xyxy;
}
// The same from integers that a double does not hold to those that it does.
i64vec2 gn_int_odd(i64vec2 a) {
    bvec2 fits = lessThan(u64vec2(gn_int_abs(a)), u64vec2(1UL << 53));
    fits = GN_OR(fits, equal(a & i64vec2(1023L), i64vec2(0L)));
    return mix((a & i64vec2(~1023L)) | i64vec2(1024L), a, fits);
}
u64vec2 gn_int_odd(u64vec2 a) {
    bvec2 fits = GN_OR(lessThan(a, u64vec2(1UL << 53)), equal(a & u64vec2(2047UL), u64vec2(0UL)));
    return mix((a & u64vec2(~2047UL)) | u64vec2(2048UL), a, fits);
}
u64vec2 gn_f_to_u(dvec2 a) {
    u64vec2 y = u64vec2(mix(clamp(a, dvec2(0.0), dvec2(18446744073709549568.0lf)), dvec2(0.0), gn_isnan(a)));
    return mix(y, u64vec2(0xffffffffffffffffUL), greaterThanEqual(a, dvec2(18446744073709551616.0lf)));
}
i64vec2 gn_f_to_i(dvec2 a) {
    dvec2 t = clamp(a, dvec2(-9223372036854775808.0lf), dvec2(9223372036854774784.0lf));
    bvec2 nan = gn_isnan(a);
    t = mix(t, dvec2(0.0), nan);
    i64vec2 y = i64vec2(t);
    return mix(y, i64vec2(0x7fffffffffffffffL), greaterThanEqual(a, dvec2(9223372036854775808.0lf)));
}
uvec4 gn_float_to_double(uvec4 v) { return gn_bits(dvec2(uintBitsToFloat(v.xz))); }
uvec4 gn_sign_extend(uvec4 v) { return uvec4(v.x, uint(int(v.x) >> 31), v.z, uint(int(v.z) >> 31)); }

uvec4 gn_widen(uvec4 v, uint t) {
    if (t == GN_T_F32) return gn_float_to_double(v);
    if (t == GN_T_F16) return gn_float_to_double(gn_unpack_f16(v));
    if (t == GN_T_BF16) return gn_float_to_double(v << 16);
    if (t == GN_T_I32) return gn_sign_extend(v);
    if (t == GN_T_I8) return gn_sign_extend(uvec4(ivec4(v << 24) >> 24));
    if (t == GN_T_I16) return gn_sign_extend(uvec4(ivec4(v << 16) >> 16));
    return v;
}
uvec4 gn_narrow(uvec4 v, uint t) {
    if (t == GN_T_F32) return floatBitsToUint(vec2(gn_double(v))).xxyy;
    if (t == GN_T_F16) return gn_pack_f16(gn_round_odd(gn_double(v))).xxyy;
    if (t == GN_T_BF16) return gn_pack_bf16(gn_round_odd(gn_double(v))).xxyy;
    if (t == GN_T_BOOL) return uvec4((v.x | v.y) != 0u ? 1u : 0u, 0u, (v.z | v.w) != 0u ? 1u : 0u, 0u);
    if (t == GN_T_U8 || t == GN_T_I8) return v & 0xffu;
    if (t == GN_T_U16 || t == GN_T_I16) return v & 0xffffu;
    return v;
}

#define GN_WHERE uvec4((ra.x | ra.y) != 0u ? rb.xy : rc.xy, (ra.z | ra.w) != 0u ? rb.zw : rc.zw)
#define GN_I_TO_F gn_bits(dvec2(gn_long(ra)))
#define GN_U_TO_F gn_bits(dvec2(gn_ulong(gn_long(ra))))
#define GN_I_TO_ODD gn_bits(dvec2(gn_int_odd(gn_long(ra))))
#define GN_U_TO_ODD gn_bits(dvec2(gn_int_odd(gn_ulong(gn_long(ra)))))
#define GN_F_TO_I gn_bits(gn_f_to_i(gn_double(ra)))
#define GN_F_TO_U gn_bits(gn_f_to_u(gn_double(ra)))
#define GN_F_TO_BOOL gn_bits(gn_truth(gn_double(ra)))
#define GN_I_TO_BOOL uvec4((ra.x | ra.y) != 0u ? 1u : 0u, 0u, (ra.z | ra.w) != 0u ? 1u : 0u, 0u)
#define GN_ROUND_F16 gn_float_to_double(gn_round_f16(gn_round_odd(gn_double(ra))).xxyy)
#define GN_ROUND_BF16 gn_float_to_double((gn_pack_bf16(gn_round_odd(gn_double(ra))) << 16).xxyy)
#define GN_ROUND_F32 gn_bits(dvec2(uintBitsToFloat(gn_float_bits(gn_double(ra)))))
#define GN_WRAP_U8 (ra & uvec4(0xffu, 0u, 0xffu, 0u))
#define GN_WRAP_I8 gn_sign_extend(uvec4(ivec4(ra << 24) >> 24))
#define GN_WRAP_U16 (ra & uvec4(0xffffu, 0u, 0xffffu, 0u))
#define GN_WRAP_I16 gn_sign_extend(uvec4(ivec4(ra << 16) >> 16))
#define GN_WRAP_U32 (ra & uvec4(0xffffffffu, 0u, 0xffffffffu, 0u))
#define GN_WRAP_I32 gn_sign_extend(ra)
