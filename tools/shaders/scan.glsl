// What scans are made of: a value is two words, a float32, an integer of 64 bits, or of logsumexp the largest x and the sum of
// exp(x - it). Of products it is a float32 near 1 and how many times 2^120 that has to be multiplied by, so that products of parts
// have no range to leave. Of extremes of elements below 8 bytes it is a word that compares as they do, of float64 such a 64-bit integer.
// -DGN_DOUBLE: sums and products of float64, whose values are four words: a double, and what a float32's second word is. With
// GN_INTEGER sums of complex numbers, whose values are two doubles.
// Include memory.glsl first.

layout(constant_id = GNI_S_SCAN_OP) const uint GN_OP = 0u; // gni_scan_op
layout(constant_id = GNI_S_SCAN_DTYPE) const uint GN_DTYPE = 0u; // of elements; GNI_T_C64: values, as they are
layout(constant_id = GNI_S_SCAN_INTEGER) const uint GN_INTEGER = 0u;
layout(constant_id = GNI_S_SCAN_PHASE) const uint GN_PHASE = 0u;
layout(constant_id = GNI_S_SCAN_FLAGS) const uint GN_FLAGS = 0u;
#define GN_SUM 0u
#define GN_PROD 1u
#define GN_MAX 2u
#define GN_MIN 3u
#define GN_LOGSUMEXP 4u
const uint GN_MINUS_INF = 0xff800000u;
const bool GN_FACTORS = GN_OP == GN_PROD && GN_INTEGER == 0u;

#ifdef GN_DOUBLE

#define GN_V uvec4
#define GN_LOAD_V gn_load4
#define GN_STORE_V gn_store4
const bool GN_PAIRS = GN_INTEGER != 0u;
double gn_of(uvec4 v) { return packDouble2x32(v.xy); }
uvec4 gn_as(double x, uvec2 more) { return uvec4(unpackDouble2x32(x), more); }

uvec4 gn_none() { return uvec4(0u, GN_OP == GN_PROD ? 0x3ff00000u : 0u, 0u, 0u); }

// x 2^(960 k) with x from 2^-480 to 2^480, unless it is 0, infinite or NaN.
uvec4 gn_scaled(double x, uint k) {
    bool more = abs(x) > 3.1217485503159922e144lf, less = abs(x) < 3.2033329522929615e-145lf;
    if (more) x *= 1.0261342003245941e-289lf;
    if (less) x *= 9.7453140114e288lf;
    return gn_as(x, uvec2(k + uint(more) - uint(less), 0u));
}
uvec4 gn_factor(uvec4 v) { return GN_FACTORS ? gn_scaled(gn_of(v), v.z) : v; }

// a, then b.
uvec4 gn_join(uvec4 a, uvec4 b) {
    if (GN_FACTORS) return gn_scaled(gn_of(a) * gn_of(b), a.z + b.z);
    precise double x = gn_of(a) + gn_of(b), y = packDouble2x32(a.zw) + packDouble2x32(b.zw);
    return gn_as(x, GN_PAIRS ? unpackDouble2x32(y) : uvec2(0u));
}

// Elements of 8 bytes as values, and values as such elements.
uvec4 gn_value2(uvec2 w) {
    if (!GN_PAIRS) return uvec4(w, 0u, 0u);
    dvec2 x = dvec2(uintBitsToFloat(w));
    return uvec4(unpackDouble2x32(x.x), unpackDouble2x32(x.y));
}
uvec2 gn_outcome2(uvec4 v) {
    if (GN_PAIRS) return floatBitsToUint(vec2(dvec2(gn_of(v), packDouble2x32(v.zw))));
    if (!GN_FACTORS || v.z == 0u) return v.xy;
    double step = int(v.z) > 0 ? 9.7453140114e288lf : 1.0261342003245941e-289lf;
    precise double x = gn_of(v) * step;
    if (v.z + 1u > 2u) x *= step;
    return unpackDouble2x32(x);
}

#else

#define GN_V uvec2
#define GN_LOAD_V gn_load2
#define GN_STORE_V gn_store2

uvec2 gn_none() {
    if (GN_OP == GN_LOGSUMEXP) return uvec2(GN_MINUS_INF, 0u);
    if (GN_OP == GN_SUM) return uvec2(0u);
    if (GN_OP == GN_PROD && GN_INTEGER != 0u) return uvec2(1u, 0u);
    if (GN_OP == GN_PROD) return uvec2(0x3f800000u, 0u);
    if (GN_INTEGER != 0u && GN_OP == GN_MAX) return uvec2(0u, 0x80000000u);
    if (GN_INTEGER != 0u) return uvec2(0xffffffffu, 0x7fffffffu);
    if (GN_OP == GN_MAX) return uvec2(0u);
    return uvec2(0xffffffffu, 0u);
}

// x 2^(120 k) with x from 2^-60 to 2^60, unless it is 0, infinite or NaN.
uvec2 gn_scaled(float x, uint k) {
    bool more = abs(x) > 1.152921504606846976e18, less = abs(x) < 8.67361737988403547e-19;
    if (more) x *= 7.52316384526264005e-37;
    if (less) x *= 1.329227995784915873e36;
    return uvec2(floatBitsToUint(x), k + uint(more) - uint(less));
}

bool gn_nan(uint u) { return (u & 0x7fffffffu) > 0x7f800000u; }

uvec2 gn_join_integers(uvec2 a, uvec2 b) {
    if (GN_OP == GN_SUM) {
        uint carry, low = uaddCarry(a.x, b.x, carry);
        return uvec2(low, a.y + b.y + carry);
    }
    if (GN_OP == GN_PROD) {
        uint high, low;
        umulExtended(a.x, b.x, high, low);
        return uvec2(low, high + a.x * b.y + a.y * b.x);
    }
    bool more = int(a.y) > int(b.y) || (a.y == b.y && a.x > b.x);
    return more == (GN_OP == GN_MAX) ? a : b;
}

// a, then b.
uvec2 gn_join(uvec2 a, uvec2 b) {
    if (GN_INTEGER != 0u) return gn_join_integers(a, b);
    if (GN_OP == GN_MAX) return uvec2(max(a.x, b.x), 0u);
    if (GN_OP == GN_MIN) return uvec2(min(a.x, b.x), 0u);
    float x = uintBitsToFloat(a.x), y = uintBitsToFloat(b.x);
    if (GN_OP == GN_SUM) return uvec2(floatBitsToUint(x + y), 0u);
    if (GN_OP == GN_PROD) return gn_scaled(x * y, a.y + b.y);
    float s = uintBitsToFloat(a.y), t = uintBitsToFloat(b.y), less = x == y ? 1.0 : exp(-abs(x - y));
    bool first = x > y || gn_nan(a.x);
    precise float sum = first ? s + t * less : t + s * less;
    return uvec2(first && !gn_nan(b.x) ? a.x : b.x, floatBitsToUint(sum));
}

bool gn_keys() { return GN_INTEGER == 0u && (GN_OP == GN_MAX || GN_OP == GN_MIN); }

// An element in a register as a value, of products before gn_factor.
uvec2 gn_value(uint v) {
    bool signed = GN_DTYPE == GN_T_I32 || GN_DTYPE == GN_T_I16 || GN_DTYPE == GN_T_I8;
    if (gn_keys()) {
        if (signed) return uvec2(v ^ 0x80000000u, 0u);
        if (GN_DTYPE != GN_T_F32 && GN_DTYPE != GN_T_F16 && GN_DTYPE != GN_T_BF16) return uvec2(v, 0u);
        if (gn_nan(v)) return uvec2(GN_OP == GN_MAX ? 0xffffffffu : 0u, 0u);
        return uvec2(int(v) < 0 ? ~v : v | 0x80000000u, 0u);
    }
    if (GN_OP == GN_LOGSUMEXP) return uvec2(v, 0x3f800000u);
    return uvec2(v, GN_INTEGER != 0u && signed ? uint(int(v) >> 31) : 0u);
}

uvec2 gn_factor(uvec2 v) { return GN_FACTORS ? gn_scaled(uintBitsToFloat(v.x), v.y) : v; }

// What becomes of it in the result, of elements below 8 bytes.
uint gn_outcome(uvec2 v) {
    if (gn_keys()) {
        if (GN_DTYPE == GN_T_I32 || GN_DTYPE == GN_T_I16 || GN_DTYPE == GN_T_I8) return v.x ^ 0x80000000u;
        if (GN_DTYPE != GN_T_F32 && GN_DTYPE != GN_T_F16 && GN_DTYPE != GN_T_BF16) return v.x;
        if (v.x == (GN_OP == GN_MAX ? 0xffffffffu : 0u)) return 0x7fc00000u;
        return int(v.x) < 0 ? v.x & 0x7fffffffu : ~v.x;
    }
    if (GN_FACTORS) {
        float x = uintBitsToFloat(v.x), step = int(v.y) > 0 ? 1.329227995784915873e36 : 7.52316384526264005e-37;
        if (v.y != 0u) x *= step;
        return floatBitsToUint(v.y + 1u > 2u ? x * step : x);
    }
    if (GN_OP == GN_LOGSUMEXP && !gn_nan(v.x) && v.x != GN_MINUS_INF)
        return floatBitsToUint(uintBitsToFloat(v.x) + log(uintBitsToFloat(v.y)));
    return v.x;
}

// Elements of 8 bytes as values, and values as such elements; of extremes NaN is beyond all numbers.
uvec2 gn_nan_key() {
    if (GN_OP == GN_MAX) return uvec2(0xffffffffu, 0x7fffffffu);
    return uvec2(0u, 0x80000000u);
}
uvec2 gn_value2(uvec2 w) {
    if (GN_DTYPE != uint(GNI_T_F64)) return w;
    bool nan = (w.y & 0x7fffffffu) > 0x7ff00000u || ((w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u);
    if (nan) return gn_nan_key();
    return int(w.y) < 0 ? uvec2(~w.x, w.y ^ 0x7fffffffu) : w;
}
uvec2 gn_outcome2(uvec2 v) {
    if (GN_DTYPE != uint(GNI_T_F64)) return v;
    uvec2 nan = gn_nan_key();
    if (v.x == nan.x && v.y == nan.y) return uvec2(0u, 0x7ff80000u);
    return int(v.y) < 0 ? uvec2(~v.x, v.y ^ 0x7fffffffu) : v;
}

#endif

// Whether elements are values, which parts are; values that take 16 bytes; elements of 8.
const bool GN_VALUES = GN_DTYPE == GN_T_C64;
#ifdef GN_DOUBLE
const bool GN_LARGE = GN_VALUES;
#else
const bool GN_LARGE = false;
#endif
const bool GN_LONG = GN_DTYPE == uint(GNI_T_I64) || GN_DTYPE == uint(GNI_T_F64);
