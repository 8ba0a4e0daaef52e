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
