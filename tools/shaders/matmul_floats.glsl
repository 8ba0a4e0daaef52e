// matmul_half.comp's loop for float32 operands as winograd.comp leaves them, or images of which b's windows are read, of which
// it makes two float16 parts on the way.
//
// Numbers are scaled by what is largest in the rows and columns that a workgroup multiplies, which winograd.comp tells for
// 128 of a row at a time, and image.comp for 64 places of 32 channels, of which those of whole images are looked at; infinities
// and NaN do not count. Packed numbers meet a word that is 0, or drivers would take what is unpacked for what was packed
// and leave nothing to the second part. Results are not finite where an operand is not; nothing else suffers from one.
//
// Fragments of b stay while a's pass, which takes the fewest registers.

#define GN_BLOCK 32u
#define GN_LINE_PITCH 5u // uvec4 of a row along k, and one between rows
#undef GN_A_PITCH
#undef GN_B_PITCH
#define GN_A_PITCH (GN_A_ALONG_M ? GN_BM / 8 + 1 : GN_LINE_PITCH)
#define GN_B_PITCH (GN_B_ALONG_K ? GN_LINE_PITCH : GN_BN / 8 + 1)
#define GN_A_PART GN_MAX(GN_BM * GN_LINE_PITCH, GN_BLOCK * (GN_BM / 8 + 1))
#define GN_B_PART GN_MAX(GN_BN * GN_LINE_PITCH, GN_BLOCK * (GN_BN / 8 + 1))
#define GN_B_FROM (2 * GN_A_PART)
#define GN_A_LOADS (GN_BM * 8 / GN_THREADS)
#define GN_B_LOADS (GN_BN * 8 / GN_THREADS)
shared uvec4 gn_tile[GN_MAX(2 * (GN_A_PART + GN_B_PART), GN_OUT_SIZE)];
shared vec2 gn_largest[GN_SUBGROUPS];

// Load i of a block: its row and the first of its four elements. Rows are lines in memory.
uvec2 gn_piece(uint i, uint pieces) {
    uint me = gl_LocalInvocationIndex;
    return uvec2(me / pieces + i * (GN_THREADS / pieces), me % pieces * 4u);
}
uvec2 gn_a_piece(uint i) { return gn_piece(i, GN_A_ALONG_M ? GN_BM / 4 : 8u); }
uvec2 gn_b_piece(uint i) { return gn_piece(i, GN_B_ALONG_K ? 8u : GN_BN / 4); }

// Four elements of an operand with `rows` rows, zeros from k = end on.
uvec4 gn_floats(GN_HANDLE h, uvec2 p, bool along_k, uint base, uint row0, uint rows, uint step, uint k, uint end) {
    uint row = row0 + (along_k ? p.x : p.y), at = k + (along_k ? p.y : p.x);
    bool inside = GN_WHOLE || at < end;
    if (!GN_INSIDE) row = min(row, along_k ? rows - 1u : rows - 4u);
    if (!GN_WHOLE) at = min(at, end - (along_k ? 4u : 1u));
    uvec4 v = GN_AT4(h, (base + (along_k ? row * step + at : at * step + row)) >> 2);
    return inside ? v : uvec4(0u);
}

// Of windows: where the rows of the next block of b begin, and in them an invocation's elements.
shared uint gn_lines[GN_MAX(GN_BN, GN_BLOCK)];
void gn_put_lines(uint n0, uint k0, uint end) {
    uint count = GN_B_ALONG_K ? GN_BN : GN_BLOCK;
    for (uint e = gl_LocalInvocationIndex; e < count; e += GN_THREADS)
        gn_lines[e] = GN_B_ALONG_K ? gn_window(GNI_P_WINDOWS_N, min(n0 + e, GN_N - 1u))
                                   : gn_window(GNI_P_WINDOWS_K, min(k0 + e, end - 1u));
}
uint gn_window_shift(uint n0, uint k0, uint end) {
    uint p = gn_b_piece(0u).y;
    return GN_B_ALONG_K ? gn_window(GNI_P_WINDOWS_K, min(k0 + p, end - 4u)) : gn_window(GNI_P_WINDOWS_N, min(n0 + p, GN_N - 4u));
}
uvec4 gn_window_floats(GN_HANDLE h, uvec2 p, uint base, uint k, uint end) {
    uvec4 v = GN_AT4(h, (base + gn_lines[p.x]) >> 2);
    return GN_WHOLE || k + (GN_B_ALONG_K ? p.y : p.x) < end ? v : uvec4(0u);
}

// A sum of windows as float32 makes it: of what is not finite nothing is left in parts.
float gn_exactly(uint row, uint column, uint batch) {
    uvec2 base = gn_batch(batch);
    uint a = base.x + row * GN_A_ROW, b = base.y + gn_window(GNI_P_WINDOWS_N, column);
    float sum = 0.0;
    [[dont_unroll]] for (uint k = 0u; k < GN_K; k++)
        sum = fma(uintBitsToFloat(GN_AT(GN_OPEN(GN_A), a + k * GN_A_COLUMN)),
                  uintBitsToFloat(GN_AT(GN_OPEN(GN_B), b + gn_window(GNI_P_WINDOWS_K, k))), sum);
    return sum;
}
vec4 gn_made_finite(uint row, uint column, uint batch, vec4 v) {
    bvec4 near = lessThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x7f800000u));
    if (GN_WINDOWS && !all(near) && row < GN_M)
        [[dont_unroll]] for (uint e = 0u; e < 4u; e++)
            if (!near[e] && column + e < GN_N) v[e] = gn_exactly(row, column + e, batch);
    return v;
}

// The first of the numbers that tell what is largest in the images of these k or columns, and how many there are.
uvec2 gn_told(uint p, uvec2 line) {
    uint first = gn_over(line.x, p + 2u) * GN_PARAM(p + 5u), last = (gn_over(line.y - 1u, p + 2u) + 1u) * GN_PARAM(p + 5u);
    first /= uint(GNI_FLOATS_PLACES);
    last = (last - 1u) / uint(GNI_FLOATS_PLACES) + 1u;
    return uvec2(GN_PARAM(p) + first * GN_PARAM(p + 1u), (last - first) * GN_PARAM(p + 1u));
}

// Number e of those that tell what is largest in places line.x to line.y - 1 of some rows, and up to 127 beside them. Zeros
// from `count` on.
float gn_largest_at(GN_HANDLE h, uint p, uvec2 rows, uvec2 line, uint e, inout uint count) {
    if (GN_WINDOWS) {
        uvec2 told = gn_told(p, line);
        count = max(count, told.y);
        return e < told.y ? uintBitsToFloat(GN_AT(h, told.x + e)) : 0.0;
    }
    uint first = line.x / uint(GNI_FLOATS_LINE), groups = (line.y - 1u) / uint(GNI_FLOATS_LINE) - first + 1u;
    count = max(count, (rows.y - rows.x) * groups);
    uint row = groups == 1u ? e : e / groups, at = GN_PARAM(p) + (rows.x + row) * GN_PARAM(p + 1u) + first + (e - row * groups);
    return e < (rows.y - rows.x) * groups ? uintBitsToFloat(GN_AT(h, at)) : 0.0;
}

uvec2 gn_pack(vec4 v) { return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw)) ^ GN_PARAM(GNI_P_MATMUL_ZERO); }
// Both parts of four numbers, on that side of an uvec4.
void gn_keep(uint to, uint side, uint part, uvec4 raw, float scale) {
    vec4 v = uintBitsToFloat(raw) * scale;
    uvec2 large = gn_pack(v);
    vec4 left = v - vec4(unpackHalf2x16(large.x), unpackHalf2x16(large.y));
    uvec2 small = gn_pack(left * 4096.0);
    [[unroll]] for (uint e = 0u; e < 2u; e++) {
        gn_tile[to][2u * side + e] = large[e];
        gn_tile[to + part][2u * side + e] = small[e];
    }
}

#define GN_FLOATS_FETCH(k)                                                                                             \
    [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++)                                                                  \
        next_a[i] = gn_floats(GN_OPEN(GN_A), gn_a_piece(i), !GN_A_ALONG_M, base.x, m0, GN_M,                           \
                              GN_A_ALONG_M ? GN_A_COLUMN : GN_A_ROW, k, end);                                          \
    if (GN_WINDOWS && GN_B_ALONG_K) shift = base.y + gn_window_shift(n0, k, end);                                      \
    [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++)                                                                  \
        next_b[i] = GN_WINDOWS ? gn_window_floats(GN_OPEN(GN_B), gn_b_piece(i), shift, k, end)                         \
                               : gn_floats(GN_OPEN(GN_B), gn_b_piece(i), GN_B_ALONG_K, base.y, n0, GN_N,               \
                                           GN_B_ALONG_K ? GN_B_COLUMN : GN_B_ROW, k, end);
#define GN_FLOATS_LARGEST(e)                                                                                           \
    vec2(gn_largest_at(GN_OPEN(GN_A), GNI_P_FLOATS_A_LARGEST, along_m, along_k, e, count),                             \
         gn_largest_at(GN_OPEN(GN_B), GNI_P_FLOATS_B_LARGEST, GN_B_ALONG_K ? along_n : along_k,                        \
                       GN_B_ALONG_K != GN_WINDOWS ? along_k : along_n, e, count))
// `scaled` becomes what the sums are to be multiplied by. b's scale is smaller where that were no power of two in
// float32's range.
#define GN_FLOATS_SCALE                                                                                                \
    for (uint e = me + GN_THREADS; e < count; e += GN_THREADS) largest = max(largest, GN_FLOATS_LARGEST(e));           \
    largest = subgroupMax(largest);                                                                                    \
    if (lane == 0u) gn_largest[unit] = largest;                                                                        \
    barrier();                                                                                                         \
    [[unroll]] for (uint i = 0u; i < GN_SUBGROUPS; i++) largest = max(largest, gn_largest[i]);                         \
    ivec2 exponent = max(ivec2(floatBitsToUint(largest) >> 23), ivec2(15));                                            \
    exponent.y = max(exponent.y, 156 - exponent.x);                                                                    \
    scale = uintBitsToFloat(uvec2(268 - exponent) << 23);                                                              \
    scaled = uintBitsToFloat(uint(min(exponent.x + exponent.y - 155, 255)) << 23);
#define GN_FLOATS_KEEP                                                                                                 \
    [[unroll]] for (uint i = 0u; i < GN_A_LOADS; i++) {                                                                \
        uvec2 p = gn_a_piece(i);                                                                                       \
        gn_keep(p.x * GN_A_PITCH + p.y / 8u, p.y / 4u % 2u, GN_A_PART, next_a[i], scale.x);                         \
    }                                                                                                                  \
    [[unroll]] for (uint i = 0u; i < GN_B_LOADS; i++) {                                                                \
        uvec2 p = gn_b_piece(i);                                                                                       \
        gn_keep(GN_B_FROM + p.x * GN_B_PITCH + p.y / 8u, p.y / 4u % 2u, GN_B_PART, next_b[i], scale.y);                \
    }                                                                                                                  \
    barrier();

#define GN_FLOATS_LOAD_A(x, d, part, i)                                                                                \
    if (GN_A_ALONG_M)                                                                                                  \
        coopMatLoad(x, gn_tile, (part) * GN_A_PART + (d) * 16u * GN_A_PITCH + (wm + (i) * 16u) / 8u, GN_A_PITCH,       \
                    gl_CooperativeMatrixLayoutColumnMajor);                                                            \
    else                                                                                                               \
        coopMatLoad(x, gn_tile, (part) * GN_A_PART + (wm + (i) * 16u) * GN_A_PITCH + 2u * (d), GN_A_PITCH,             \
                    gl_CooperativeMatrixLayoutRowMajor)
#define GN_FLOATS_LOAD_B(x, d, part, j)                                                                                \
    if (GN_B_ALONG_K)                                                                                                  \
        coopMatLoad(x, gn_tile, GN_B_FROM + (part) * GN_B_PART + (wn + (j) * 16u) * GN_B_PITCH + 2u * (d), GN_B_PITCH, \
                    gl_CooperativeMatrixLayoutColumnMajor);                                                            \
    else                                                                                                               \
        coopMatLoad(x, gn_tile, GN_B_FROM + (part) * GN_B_PART + (d) * 16u * GN_B_PITCH + (wn + (j) * 16u) / 8u,       \
                    GN_B_PITCH, gl_CooperativeMatrixLayoutRowMajor)

#define GN_FLOATS_MULTIPLY(p, q)                                                                                       \
    [[unroll]] for (uint d = 0u; d < 2u; d++) more = coopMatMulAdd(a[d][p], b[j][d][q], more);
#define GN_FLOATS_LOOP                                                                                                 \
    uvec4 next_a[GN_A_LOADS], next_b[GN_B_LOADS];                                                                      \
    vec2 scale;                                                                                                        \
    uint shift = 0u;                                                                                                   \
    float scaled = 1.0;                                                                                                \
    if (start < end) {                                                                                                 \
        uvec2 along_m = uvec2(m0, min(m0 + GN_BM, GN_M)), along_n = uvec2(n0, min(n0 + GN_BN, GN_N));                  \
        uvec2 along_k = uvec2(start, end);                                                                             \
        uint count = 0u;                                                                                               \
        if (GN_WINDOWS) {                                                                                              \
            gn_put_lines(n0, start, end);                                                                              \
            if (!GN_B_ALONG_K) shift = base.y + gn_window_shift(n0, start, end);                                       \
            barrier();                                                                                                 \
        }                                                                                                              \
        vec2 largest = GN_FLOATS_LARGEST(me);                                                                          \
        GN_FLOATS_FETCH(start)                                                                                         \
        GN_FLOATS_SCALE                                                                                                \
        if (GN_WINDOWS && !GN_B_ALONG_K) gn_put_lines(n0, start + GN_BLOCK, end);                                      \
        GN_FLOATS_KEEP                                                                                                 \
    }                                                                                                                  \
    for (uint k0 = start; k0 < end; k0 += GN_BLOCK) {                                                                  \
        bool more_k = k0 + GN_BLOCK < end;                                                                             \
        if (more_k) {                                                                                                  \
            GN_FLOATS_FETCH(k0 + GN_BLOCK)                                                                             \
        }                                                                                                              \
        GN_UNIT_B b[GN_UNITS_N][2][2];                                                                                 \
        [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++)                                                              \
            [[unroll]] for (uint d = 0u; d < 2u; d++)                                                                  \
                [[unroll]] for (uint p = 0u; p < 2u; p++) GN_FLOATS_LOAD_B(b[j][d][p], d, p, j);                       \
        [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++) {                                                            \
            GN_UNIT_A a[2][2];                                                                                         \
            [[unroll]] for (uint d = 0u; d < 2u; d++)                                                                  \
                [[unroll]] for (uint p = 0u; p < 2u; p++) GN_FLOATS_LOAD_A(a[d][p], d, p, i);                          \
            [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) {                                                        \
                GN_UNIT_C more = GN_UNIT_C(0.0);                                                                       \
                GN_FLOATS_MULTIPLY(0, 1) GN_FLOATS_MULTIPLY(1, 0) more = more * (1.0 / 4096.0);                        \
                GN_FLOATS_MULTIPLY(0, 0)                                                                               \
                sum[i][j] += more;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        barrier();                                                                                                     \
        if (!more_k) break;                                                                                            \
        if (GN_WINDOWS && !GN_B_ALONG_K) gn_put_lines(n0, k0 + 2u * GN_BLOCK, end);                                    \
        GN_FLOATS_KEEP                                                                                                 \
    }                                                                                                                  \
    [[unroll]] for (uint i = 0u; i < GN_UNITS_M; i++)                                                                  \
        [[unroll]] for (uint j = 0u; j < GN_UNITS_N; j++) sum[i][j] = sum[i][j] * scaled;
