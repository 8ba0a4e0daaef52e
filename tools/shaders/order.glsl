// Keys: unsigned integers of an element's size that compare as elements do, as (low, high) words. NaN has the largest.

layout(constant_id = GNI_S_ORDER_LOG_BYTES) const uint GN_LOG_BYTES = 2u;
layout(constant_id = GNI_S_ORDER_FLAGS) const uint GN_FLAGS = 0u;
layout(constant_id = GNI_S_ORDER_INF) const uint GN_INF = 0u; // bits of infinity, the high word of 8 bytes

bool gn_flag(uint f) { return (GN_FLAGS & f) != 0u; }

// Element j of buffer k.
uvec2 gn_bits(uint k, uint j) {
    if (GN_LOG_BYTES == 3u) return gn_load2(k, j);
    uint s = 2u - GN_LOG_BYTES;
    uint w = gn_load(k, j >> s);
    if (s == 1u) w = (w >> ((j & 1u) * 16u)) & 0xffffu;
    if (s == 2u) w = (w >> ((j & 3u) * 8u)) & 0xffu;
    return uvec2(w, 0u);
}

#ifdef GN_VECTORS
const uint GN_VECTOR = 16u >> GN_LOG_BYTES; // elements of 16 bytes

// Element e of these.
uvec2 gn_bits_of(uvec4 w, uint e) {
    if (GN_LOG_BYTES == 3u) return e == 0u ? w.xy : w.zw;
    if (GN_LOG_BYTES == 2u) return uvec2(w[e], 0u);
    if (GN_LOG_BYTES == 1u) return uvec2((w[e >> 1] >> ((e & 1u) * 16u)) & 0xffffu, 0u);
    return uvec2((w[e >> 2] >> ((e & 3u) * 8u)) & 0xffu, 0u);
}
#endif

// All bits, and the sign.
uvec2 gn_all_bits() {
    if (GN_LOG_BYTES == 3u) return uvec2(0xffffffffu); // drivers err in constants that are vectors chosen by a constant
    return uvec2(0xffffffffu >> (32u - (8u << GN_LOG_BYTES)), 0u);
}
uvec2 gn_sign_bit() {
    if (GN_LOG_BYTES == 3u) return uvec2(0u, 0x80000000u);
    return uvec2(0x80000000u >> (32u - (8u << GN_LOG_BYTES)), 0u);
}

uvec2 gn_key_of(uvec2 u) {
    uvec2 all = gn_all_bits(), sign = gn_sign_bit();
    if (gn_flag(GNI_F_ORDER_FLOAT)) {
        uvec2 size = u & ~sign;
        bool nan = GN_LOG_BYTES == 3u ? size.y > GN_INF || (size.y == GN_INF && size.x != 0u) : size.x > GN_INF;
        if (nan) return all;
        if (gn_flag(GNI_F_ORDER_ZEROS) && (size.x | size.y) == 0u) u = uvec2(0u);
        u = (u & sign) != uvec2(0u) ? ~u & all : u | sign;
    } else if (gn_flag(GNI_F_ORDER_SIGNED)) {
        u ^= sign;
    }
    return gn_flag(GNI_F_ORDER_DESCENDING) ? ~u & all : u;
}

uvec2 gn_key_back(uvec2 u) {
    uvec2 all = gn_all_bits(), sign = gn_sign_bit();
    bool real = gn_flag(GNI_F_ORDER_FLOAT);
    if (real && u == all && GN_LOG_BYTES == 3u) return uvec2(0u, 0x7ff80000u);
    if (real && u == all) return uvec2(GN_INF | (GN_INF >> 1), 0u);
    if (gn_flag(GNI_F_ORDER_DESCENDING)) u = ~u & all;
    if (!real) return gn_flag(GNI_F_ORDER_SIGNED) ? u ^ sign : u;
    return (u & sign) != uvec2(0u) ? u & ~sign : ~u & all;
}

// Puts element j into buffer k, in which other invocations write neighbours.
void gn_put_bits(uint k, uint j, uvec2 u) {
    if (GN_LOG_BYTES == 3u) gn_store2(k, j, u);
    else gn_write_one(GN_OPEN(k), j, 2u - GN_LOG_BYTES, u.x);
}
