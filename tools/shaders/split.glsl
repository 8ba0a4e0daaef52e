// What the kernels of split float32 products share: see split.comp. GN_COUNTERS holds words for all of them:
// control words, then for every row of a and column of b its largest magnitude's bits and the complement of its
// smallest one's, zeros left out (0: there are only zeros).

#define GN_MODE 0u
#define GN_LISTED 1u  // rows of a, columns of b in the lists
#define GN_SCANNED 3u // counts workgroups
#define GN_LIST 4u
#define GN_PATCHES uint(GNI_SPLIT_PATCHES)

// The biased exponent e of a row's largest magnitude: its elements are scaled by 2^(141 - e). For rows below
// 2^-112 that power would overflow; without it they keep all their bits as well.
int gn_row_exponent(uvec2 info) { return max(int(info.x >> 23), 15); }

float gn_row_scale(uvec2 info) { return uintBitsToFloat(uint(268 - gn_row_exponent(info)) << 23); }

// The first mode that holds a row.
uint gn_row_mode(uvec2 info) {
    if (info.x >= 0x7f800000u) return 2u;
    int octaves = info.y == 0u ? 0 : gn_row_exponent(info) - int(~info.y >> 23);
    return octaves <= 27 ? 0u : octaves <= 100 ? 1u : 2u;
}

uvec2 gn_row_info(uint at) { return uvec2(gn_load_coherent(GN_COUNTERS, at), gn_load_coherent(GN_COUNTERS, at + 1u)); }

// To 2^-13 of v's binade (float16's precision) or 2^-16 (bfloat16's).
vec4 gn_round(vec4 v, float by) {
    precise vec4 c = v * by;
    precise vec4 d = c - v;
    precise vec4 r = c - d;
    return r;
}
// To what float16 holds, for magnitudes up to 2^15.
vec4 gn_round_half(vec4 v) {
    precise vec4 few = v + 0.75;
    precise vec4 small = few - 0.75;
    return mix(gn_round(v, 8193.0), small, lessThan(abs(v), vec4(6.103515625e-05)));
}
uvec2 gn_pair(uvec4 h) { return h.xz | (h.yw << 16); }
// Of numbers that float16 holds, so that packing does not round.
uvec2 gn_pack_halves(vec4 v) { return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)); }
// Eight numbers, scaled: their parts in float16.
uvec4[2] gn_half_parts(vec4 v[2]) {
    vec4 hi[2], lo[2];
    [[unroll]] for (uint e = 0u; e < 2u; e++) {
        hi[e] = gn_round_half(v[e]);
        lo[e] = gn_round_half((v[e] - hi[e]) * 4096.0);
    }
    return uvec4[2](uvec4(gn_pack_halves(hi[0]), gn_pack_halves(hi[1])), uvec4(gn_pack_halves(lo[0]), gn_pack_halves(lo[1])));
}
