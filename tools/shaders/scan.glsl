// What scans are made of: a value is two words, a float32, an integer of 64 bits, or of logsumexp the largest x and the sum of
// exp(x - it). Of products it is a float32 near 1 and how many times 2^120 that has to be multiplied by, so that products of parts
// have no range to leave. Of extremes of elements below 8 bytes it is a word that compares as they do. Include memory.glsl first.

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

const bool GN_FACTORS = GN_OP == GN_PROD && GN_INTEGER == 0u;

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
