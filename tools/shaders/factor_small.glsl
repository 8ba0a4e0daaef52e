// Decompositions of batches of matrices up to GN_P x GN_P (triangle: of any size): a matrix for each
// workgroup, two of 16 x 16. A thread keeps a row (Cholesky, LU) or a column (triangles, QR) in registers, what all
// need of it goes through shared memory.
//
// cholesky  L L^T = a
// lu        P a = L U by partial pivoting, or the determinant
// back      U^-1 L^-1 P b
// tiny      all of these but qr, of up to GNI_TINY_MOST rows: an invocation has a matrix
// triangle  L^-1 b: a thread has a column of b, GN_P rows of it in registers, and reads what it needs of L itself
// qr        Householder's reflections; rows of r and columns of q change signs so that r's diagonal is positive
//
// Blocks of GN_S columns (or rows) turn in their registers: the one that is next is always the first of the block.
// The others stay where they are, so that their loops unroll, without one over the columns that would.
// What may be defined: GN_CHOLESKY, GN_LU, GN_BACK, GN_TINY, GN_TRIANGLE or GN_QR; GN_P; GN_DOUBLE.
#extension GL_EXT_control_flow_attributes : require
#if defined(GN_LU) && GN_P > 32
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#define GN_BUFFERS 4
#include "gn.glsl"

#if GN_P > 32
#define GN_S 32u
#else
#define GN_S 16u
#endif
#if defined(GN_BACK) || defined(GN_TRIANGLE) || defined(GN_TINY)
#define GN_T 32u // threads
#define GN_M 1u  // matrices
#else
#define GN_T (GN_P > 32u ? uint(GN_P) : 32u)
#define GN_M (GN_T / GN_P)
#endif
#define GN_C 16u // columns that go through shared memory at a time

#ifdef GN_DOUBLE
#define GN_R double
#define GN_R4 dvec4
#define gn_get(k, i) packDouble2x32(gn_load2(k, i))
#define gn_put(k, i, x) gn_store2(k, i, unpackDouble2x32(x))
#define gn_high(x) unpackDouble2x32(x).y
#define gn_get_shared(k, i) packDouble2x32(uvec2(gn_load_coherent(k, 2u * (i)), gn_load_coherent(k, 2u * (i) + 1u)))
void gn_put_shared(uint k, uint i, double x) {
    uvec2 words = unpackDouble2x32(x);
    gn_store_coherent(k, 2u * i, words.x);
    gn_store_coherent(k, 2u * i + 1u, words.y);
}
#else
#define GN_R float
#define GN_R4 vec4
#define gn_get(k, i) uintBitsToFloat(gn_load(k, i))
#define gn_put(k, i, x) gn_store(k, i, floatBitsToUint(x))
#define gn_high(x) floatBitsToUint(x)
#define gn_get_shared(k, i) uintBitsToFloat(gn_load_coherent(k, i))
#define gn_put_shared(k, i, x) gn_store_coherent(k, i, floatBitsToUint(x))
#endif

#if GN_P > 32 && !defined(GN_BACK)
layout(local_size_x = GN_P) in;
#else
layout(local_size_x = 32) in;
#endif

// Buffers: the matrices or right-hand sides, results, info (back: triangles), the rows' order.
#define GN_BASE GN_PARAM(GNI_P_SMALL_BASE)
#define GN_ROW GN_PARAM(GNI_P_SMALL_ROW)
#define GN_COLUMN GN_PARAM(GNI_P_SMALL_COLUMN)
#define GN_STEP GN_PARAM(GNI_P_SMALL_STEP)
#define GN_TO GN_PARAM(GNI_P_SMALL_TO)
#define GN_TO_ROW GN_PARAM(GNI_P_SMALL_TO_ROW)
#define GN_TO_COLUMN GN_PARAM(GNI_P_SMALL_TO_COLUMN)
#define GN_TO_STEP GN_PARAM(GNI_P_SMALL_TO_STEP)
#define GN_BATCH GN_PARAM(GNI_P_SMALL_BATCH)
#define GN_N GN_PARAM(GNI_P_SMALL_N)
#define GN_MORE GN_PARAM(GNI_P_SMALL_MORE)
#define GN_FIRST GN_PARAM(GNI_P_SMALL_FIRST)
#define GN_MODE GN_PARAM(GNI_P_SMALL_MODE)

#define GN_A GN_PARAM(GNI_P_SMALL_A)
#define GN_A_ROW GN_PARAM(GNI_P_SMALL_A_ROW)
#define GN_A_COLUMN GN_PARAM(GNI_P_SMALL_A_COLUMN)
#define GN_A_STEP GN_PARAM(GNI_P_SMALL_A_STEP)

#define GN_DETERMINANT uint(GNI_SMALL_DETERMINANT)
#define GN_IDENTITY uint(GNI_SMALL_IDENTITY)
#define GN_UNIT uint(GNI_SMALL_UNIT)
#define GN_UPPER uint(GNI_SMALL_UPPER)

#define GN_LINES(i, count) [[unroll]] for (uint i = 0u; i < uint(count); i++)

// What went wrong with a matrix first; word 0 says whether anything did.
void gn_wrong(uint item, uint info) {
    if (item >= GN_BATCH || gn_load(2u, 1u + item) != 0u) return;
    gn_store(2u, 1u + item, info);
    gn_atomic_max(2u, 0u, 1u);
}

#if defined(GN_LU) || defined(GN_TINY)

// A product whose exponent is kept apart.
void gn_times(inout GN_R det, inout int exponent, GN_R factor) {
#ifdef GN_DOUBLE
    const uint bits = 20u, all = 2047u, half_ = 1022u;
#else
    const uint bits = 23u, all = 255u, half_ = 126u;
#endif
    det *= factor;
    uint e = gn_high(det) >> bits & all;
    if (e == 0u && det != GN_R(0)) {
        det *= GN_R(18446744073709551616.0);
        exponent -= 64;
        e = gn_high(det) >> bits & all;
    }
    if (e == 0u || e == all) return;
    exponent += int(e) - int(half_);
    uint high = (gn_high(det) & ~(all << bits)) | half_ << bits;
#ifdef GN_DOUBLE
    det = packDouble2x32(uvec2(unpackDouble2x32(det).x, high));
#else
    det = uintBitsToFloat(high);
#endif
}

// det times 2^exponent.
GN_R gn_scaled(GN_R det, int exponent) {
    for (; exponent > 60; exponent -= min(exponent, 60)) {
        det *= GN_R(1152921504606846976.0);
        if (isinf(det)) exponent = 0;
    }
    for (; exponent < -60; exponent += 60) {
        det *= GN_R(8.673617379884035e-19);
        if (det == GN_R(0)) exponent = 0;
    }
    det = ldexp(det, exponent);
    return det == GN_R(0) ? GN_R(0) : det;
}

// The determinant, or a number in range and the power of 2 that is missing.
#define GN_PUT_DETERMINANT(b, item, apart)                                                                                        \
    {                                                                                                                             \
        int rest = apart ? exponent - clamp(exponent, -GNI_DET_RANGE, GNI_DET_RANGE) : 0;                                          \
        gn_put(b, apart ? 2u * item : item, gn_scaled(det, exponent - rest));                                                     \
        if (apart) gn_put(b, 2u * item + 1u, GN_R(rest));                                                                         \
    }

#endif

#if defined(GN_CHOLESKY) || defined(GN_LU) // --------------------------------------------------

shared GN_R gn_tile[GN_T * (GN_C + 1u)];

// Rows come in 16 columns at a time, ones on the diagonal beyond the end. First all elements are on their way.
void gn_load_rows(out GN_R x[GN_P]) {
    uint me = gl_LocalInvocationIndex, first = GN_GROUP * GN_M;
    GN_LINES(i, GN_P) {
        uint at = (i % GN_C) * (GN_T / GN_C) + me / GN_C, r = at % GN_P, c = i / GN_C * GN_C + me % GN_C;
        uint item = first + at / GN_P;
        bool there = item < GN_BATCH && r < GN_N && c < GN_N;
        x[i] = GN_R(there || r != c ? 0 : 1);
#ifdef GN_CHOLESKY
        there = there && c <= r;
#endif
        if (there) x[i] = gn_get(0u, GN_BASE + item * GN_STEP + r * GN_ROW + c * GN_COLUMN);
    }
    GN_LINES(b, GN_P / 16) {
        barrier();
        GN_LINES(e, GN_C) gn_tile[(e * (GN_T / GN_C) + me / GN_C) * (GN_C + 1u) + me % GN_C] = x[b * GN_C + e];
        barrier();
        GN_LINES(k, GN_C) x[b * GN_C + k] = gn_tile[me * (GN_C + 1u) + k];
    }
}

// Each thread's row goes to row `to`, GN_P: nowhere.
void gn_store_rows(GN_R x[GN_P], uint to) {
    uint me = gl_LocalInvocationIndex;
    GN_LINES(b, GN_P / 16) {
        if (b * GN_C < GN_N) {
            barrier();
            if (to < GN_P)
                GN_LINES(k, GN_C) gn_tile[(me / GN_P * GN_P + to) * (GN_C + 1u) + k] = x[b * GN_C + k];
            barrier();
            GN_LINES(e, GN_C) {
                uint i = e * GN_T + me, at = i / GN_C, r = at % GN_P, c = b * GN_C + i % GN_C;
                uint item = GN_GROUP * GN_M + at / GN_P;
                GN_R v = gn_tile[at * (GN_C + 1u) + i % GN_C];
#ifdef GN_CHOLESKY
                if (c > r) v = GN_R(0);
#endif
                if (item < GN_BATCH && r < GN_N && c < GN_N)
                    gn_put(1u, GN_TO + item * GN_TO_STEP + r * GN_TO_ROW + c * GN_TO_COLUMN, v);
            }
        }
    }
}
#endif

// x -= by f over a block that turns, whose first becomes `last`, and the rest behind it.
#define GN_TURN(b, by, f4, last)                                                                    \
    GN_LINES(i, GN_S / 4u) {                                                                       \
        GN_R4 f = f4(b / 4u + i);                                                                  \
        if (i > 0u) x[b + 4u * i - 1u] = x[b + 4u * i] - by * f.x;                                  \
        x[b + 4u * i] = x[b + 4u * i + 1u] - by * f.y;                                              \
        x[b + 4u * i + 1u] = x[b + 4u * i + 2u] - by * f.z;                                         \
        x[b + 4u * i + 2u] = x[b + 4u * i + 3u] - by * f.w;                                         \
    }                                                                                              \
    x[b + GN_S - 1u] = last;                                                                       \
    GN_LINES(i, (GN_P - b - GN_S) / 4u) {                                                          \
        GN_R4 f = f4((b + GN_S) / 4u + i);                                                         \
        x[b + GN_S + 4u * i] -= by * f.x;                                                           \
        x[b + GN_S + 4u * i + 1u] -= by * f.y;                                                      \
        x[b + GN_S + 4u * i + 2u] -= by * f.z;                                                      \
        x[b + GN_S + 4u * i + 3u] -= by * f.w;                                                      \
    }

// The same of a block that turns the other way, whose last becomes `first`; none of the others.
#define GN_TURN_BACK(b, by, f4, first)                                                              \
    GN_LINES(e, GN_S / 4u) {                                                                       \
        uint i = GN_S / 4u - 1u - e, k = b + 4u * i;                                               \
        GN_R4 f = f4(k / 4u);                                                                      \
        if (e > 0u) x[k + 4u] = x[k + 3u] - by * f.w;                                               \
        x[k + 3u] = x[k + 2u] - by * f.z;                                                           \
        x[k + 2u] = x[k + 1u] - by * f.y;                                                           \
        x[k + 1u] = x[k] - by * f.x;                                                                \
    }                                                                                              \
    x[b] = first;

#ifdef GN_CHOLESKY // --------------------------------------------------------------------------

shared GN_R4 gn_line[2][GN_T / 4u];

void main() {
    uint me = gl_LocalInvocationIndex, row = me % GN_P, place = me - row, item = GN_GROUP * GN_M + me / GN_P;
    bool failed = false;
    GN_R x[GN_P];
    gn_load_rows(x);
    GN_LINES(q, GN_P / GN_S) {
        uint b = q * GN_S;
        if (b < GN_N)
            for (uint j = 0u; j < GN_S; j++) {
                // Rows of the block from the diagonal on, behind them zeros for those that are done.
                GN_R first = x[b];
                uint at = row < b + GN_S ? b + ((row - b - j) & (GN_S - 1u)) : row;
                if (row >= b) gn_line[j & 1u][(place + at) / 4u][at & 3u] = row < b + j ? GN_R(0) : first;
                barrier();
                GN_R rest = gn_line[j & 1u][(place + b) / 4u].x;
                if (!(rest > GN_R(0)) && !failed) {
                    failed = true;
                    if (row == 0u) gn_wrong(item, GN_FIRST + b + j + 1u);
                }
                GN_R root = sqrt(rest), factor = GN_R(1) / root;
                GN_R last = row == b + j ? root : first * factor, y = last * factor;
#define GN_F4(i) gn_line[j & 1u][place / 4u + i]
                GN_TURN(b, y, GN_F4, last)
            }
    }
    gn_store_rows(x, row);
}

#elif defined(GN_LU) // ------------------------------------------------------------------------

shared GN_R4 gn_line[GN_T / 4u];
shared GN_R gn_pivot[GN_M];
shared uvec4 gn_keys[GN_T / 4u];
shared uint gn_order[GN_T], gn_swaps[GN_M];

// Grows with |x|, NaN first, up to a few last bits, which tell the rows apart; 0 for rows that are done.
uint gn_key(bool free, GN_R x, uint row) {
    uint size = (gn_high(x) & 0x7fffffffu) / GN_P;
    if (x != GN_R(0)) size = max(size, 1u);
    return free ? (size + 1u) * GN_P + (GN_P - 1u - row) : 0u;
}

#if GN_P > 32
uint gn_best(uint key, uint place) {
    uint best = subgroupMax(key);
    if (subgroupElect()) gn_keys[gl_SubgroupID / 4u][gl_SubgroupID & 3u] = best;
    barrier();
    for (uint q = 0u; q < gl_NumSubgroups; q++) best = max(best, gn_keys[q / 4u][q & 3u]);
    return best;
}
#else
uint gn_best(uint key, uint place) {
    uint me = gl_LocalInvocationIndex;
    gn_keys[me / 4u][me & 3u] = key;
    barrier();
    uvec4 best = gn_keys[place / 4u];
    [[unroll]] for (uint q = 1u; q < GN_P / 4u; q++) best = max(best, gn_keys[place / 4u + q]);
    return max(max(best.x, best.y), max(best.z, best.w));
}
#endif

void gn_determinant(uint row, uint mine, uint place, uint item, GN_R det, int exponent) {
    uint swaps = 0u;
    if (row == 0u) gn_swaps[gl_LocalInvocationIndex / GN_P] = 0u;
    barrier();
    for (uint q = 0u; q < mine && mine < GN_N; q++)
        if (gn_order[place + q] > row) swaps ^= 1u;
    if (swaps != 0u) atomicXor(gn_swaps[gl_LocalInvocationIndex / GN_P], 1u);
    barrier();
    if (row != 0u || item >= GN_BATCH) return;
    if (gn_swaps[gl_LocalInvocationIndex / GN_P] != 0u) det = -det;
    GN_PUT_DETERMINANT(3u, item, (GN_MODE != GN_DETERMINANT))
}

void main() {
    uint me = gl_LocalInvocationIndex, row = me % GN_P, place = me - row, item = GN_GROUP * GN_M + me / GN_P;
    bool free = true, failed = false;
    uint mine = GN_P; // place among the rows that were picked
    GN_R x[GN_P], det = GN_R(1);
    int exponent = 0;
    gn_load_rows(x);
    GN_LINES(q, GN_P / GN_S) {
        uint b = q * GN_S;
        if (b < GN_N)
            for (uint j = 0u; j < GN_S; j++) {
                GN_R first = x[b];
                uint best = gn_best(gn_key(free, first, row), place);
                bool zero = best < 2u * GN_P;
                if (row == GN_P - 1u - (best & (GN_P - 1u))) {
                    free = false;
                    mine = b + j;
                    gn_order[place + mine] = row;
                    gn_pivot[me / GN_P] = first;
                    // Behind the columns that are left stand factors, which stay as they are.
                    GN_LINES(i, GN_S / 4u) {
                        GN_R4 v = GN_R4(x[b + 4u * i], x[b + 4u * i + 1u], x[b + 4u * i + 2u], x[b + 4u * i + 3u]);
                        GN_LINES(e, 4) if (4u * i + e + j >= GN_S) v[e] = GN_R(0);
                        gn_line[(place + b) / 4u + i] = v;
                    }
                    GN_LINES(i, (GN_P - b - GN_S) / 4u) {
                        uint k = b + GN_S + 4u * i;
                        gn_line[(place + k) / 4u] = GN_R4(x[k], x[k + 1u], x[k + 2u], x[k + 3u]);
                    }
                }
                barrier();
                GN_R pivot = zero ? GN_R(0) : gn_pivot[me / GN_P];
                if (zero && !failed && b + j < GN_N) {
                    failed = true;
                    if (row == 0u) gn_wrong(item, b + j + 1u);
                }
                if (GN_MODE != 0u) gn_times(det, exponent, pivot);
                GN_R y = free && !zero ? first / pivot : GN_R(0), last = free ? y : first;
#define GN_F4(i) gn_line[place / 4u + i]
                GN_TURN(b, y, GN_F4, last)
            }
    }
    if (GN_MODE != 0u) {
        gn_determinant(row, mine, place, item, det, exponent);
        return;
    }
    gn_store_rows(x, mine);
    if (mine < GN_N && item < GN_BATCH) gn_store(3u, item * GN_N + mine, row);
}

#elif defined(GN_BACK) // ---------------------------------------------------------------------

#define GN_LINE (GN_P + 4u)
shared GN_R4 gn_lines[GN_C * GN_LINE / 4u]; // columns of the triangle, by row

void gn_line_put(uint c, uint r, GN_R v) { gn_lines[(c * GN_LINE + r) / 4u][r & 3u] = v; }

// Columns c0 on of L, of the block of rows from b on: the block's rows as they stand while it turns, its others zero.
// `up`: of U, whose blocks turn the other way.
void gn_lines_load(uint item, uint b, uint c0, bool up) {
    uint me = gl_LocalInvocationIndex, k = me % GN_C, c = c0 + k;
    uint t = item * GN_N * GN_N + c;
    GN_R v[GN_P * GN_C / GN_T];
    GN_LINES(e, GN_P * GN_C / GN_T) {
        uint r = e * (GN_T / GN_C) + me / GN_C;
        v[e] = GN_R(r == c ? 1 : 0);
        if (r < GN_N && c < GN_N && (up ? r <= c : r > c)) v[e] = gn_get(2u, t + r * GN_N);
    }
    barrier();
    GN_LINES(e, GN_P * GN_C / GN_T) {
        uint r = e * (GN_T / GN_C) + me / GN_C, at = r;
        if (r >= b && r < b + GN_S) {
            at = up ? b + ((r + GN_S - 1u - c) & (GN_S - 1u)) : b + ((r - c) & (GN_S - 1u));
            if (up ? r > c : r < c) v[e] = GN_R(0);
        }
        gn_line_put(k, at, v[e]);
    }
    barrier();
}

void main() {
    uint me = gl_LocalInvocationIndex, parts = (GN_MORE + GN_T - 1u) / GN_T;
    uint item = GN_GROUP / parts, c = GN_GROUP % parts * GN_T + me;
    bool live = c < GN_MORE;
    GN_R x[GN_P];
    if (item >= GN_BATCH) return;
    GN_LINES(k, GN_P) {
        uint r = k < GN_N ? gn_load(3u, item * GN_N + k) : 0u;
        x[k] = GN_R(0);
        if (live && k < GN_N) {
            if (GN_MODE == GN_IDENTITY)
                x[k] = GN_R(r == c ? 1 : 0);
            else
                x[k] = gn_get(0u, GN_BASE + item * GN_STEP + r * GN_ROW + c * GN_COLUMN);
        }
    }
    GN_LINES(q, GN_P / GN_S) {
        uint b = q * GN_S;
        if (b < GN_N)
            for (uint j = 0u; j < GN_S; j++) {
                if (j % GN_C == 0u) gn_lines_load(item, b, b + j, false);
                if (!live) continue;
                uint line = j % GN_C * (GN_LINE / 4u);
                GN_R y = x[b];
#define GN_F4(i) gn_lines[line + (i)]
                GN_TURN(b, y, GN_F4, y)
            }
    }
    GN_LINES(p, GN_P / GN_S) {
        uint b = GN_P - GN_S - p * GN_S;
        if (b < GN_N)
            for (uint j = GN_S; j-- > 0u;) {
                if (j % GN_C == GN_C - 1u) gn_lines_load(item, b, b + j + 1u - GN_C, true);
                if (!live) continue;
                uint line = j % GN_C * (GN_LINE / 4u);
                GN_R4 top = gn_lines[line + (b + GN_S) / 4u - 1u];
                GN_R y = x[b + GN_S - 1u] / top.w;
                GN_TURN_BACK(b, y, GN_F4, y)
                GN_LINES(i, b / 4u) {
                    GN_R4 f = gn_lines[line + i];
                    x[4u * i] -= y * f.x;
                    x[4u * i + 1u] -= y * f.y;
                    x[4u * i + 2u] -= y * f.z;
                    x[4u * i + 3u] -= y * f.w;
                }
            }
    }
    GN_LINES(k, GN_P)
        if (live && k < GN_N) gn_put(1u, GN_TO + item * GN_TO_STEP + k * GN_TO_ROW + c * GN_TO_COLUMN, x[k]);
}

#elif defined(GN_TINY) // ---------------------------------------------------------------------

// Buffers: right-hand sides, results, info, the matrices.
layout(constant_id = GNI_S_TINY_ORDER) const uint GN_K = 4u;
layout(constant_id = GNI_S_TINY_MODE) const uint GN_HOW = 0u;
const bool GN_ROOT = GN_HOW == uint(GNI_TINY_CHOLESKY);

GN_R x[GN_K * GN_K];
uint wrong = 0u; // the first pivot that is none

void gn_cholesky() {
    GN_LINES(j, GN_K) {
        GN_R rest = x[j * GN_K + j], root = sqrt(rest), factor = GN_R(1) / root;
        if (!(rest > GN_R(0)) && wrong == 0u) wrong = j + 1u;
        x[j * GN_K + j] = root;
        GN_LINES(r, GN_K) {
            if (r < j) x[r * GN_K + j] = GN_R(0);
            if (r > j) x[r * GN_K + j] *= factor;
        }
        GN_LINES(r, GN_K)
            GN_LINES(c, GN_K)
                if (r >= c && c > j) x[r * GN_K + c] -= x[r * GN_K + j] * x[c * GN_K + j];
    }
}

// The largest of a column comes up in exchanges with those below the diagonal, NaN first. -1: an odd number of them.
GN_R gn_lu(out uint order[GN_K]) {
    GN_R sign = GN_R(1);
    GN_LINES(r, GN_K) order[r] = r;
    GN_LINES(j, GN_K) {
        GN_LINES(r, GN_K) {
            if (r > j && (gn_high(x[r * GN_K + j]) & 0x7fffffffu) > (gn_high(x[j * GN_K + j]) & 0x7fffffffu)) {
                GN_LINES(c, GN_K) {
                    GN_R t = x[j * GN_K + c];
                    x[j * GN_K + c] = x[r * GN_K + c];
                    x[r * GN_K + c] = t;
                }
                uint t = order[j];
                order[j] = order[r];
                order[r] = t;
                sign = -sign;
            }
        }
        GN_R pivot = x[j * GN_K + j];
        bool zero = pivot == GN_R(0);
        if (zero && wrong == 0u) wrong = j + 1u;
        GN_LINES(r, GN_K) {
            if (r > j) {
                GN_R y = zero ? GN_R(0) : x[r * GN_K + j] / pivot;
                x[r * GN_K + j] = y;
                GN_LINES(c, GN_K) if (c > j) x[r * GN_K + c] -= y * x[j * GN_K + c];
            }
        }
    }
    return sign;
}

void gn_solve(uint order[GN_K], uint item) {
    GN_R y[GN_K];
    uint from = GN_BASE + item * GN_STEP, to = GN_TO + item * GN_TO_STEP;
    for (uint c = 0u; c < GN_MORE; c++) {
        GN_LINES(r, GN_K) {
            if (GN_HOW == uint(GNI_TINY_INVERSE)) y[r] = GN_R(order[r] == c ? 1 : 0);
            else y[r] = gn_get(0u, from + order[r] * GN_ROW + c * GN_COLUMN);
        }
        GN_LINES(r, GN_K)
            GN_LINES(k, r) y[r] -= x[r * GN_K + k] * y[k];
        GN_LINES(e, GN_K) {
            uint r = GN_K - 1u - e;
            GN_LINES(k, GN_K) if (k > r) y[r] -= x[r * GN_K + k] * y[k];
            y[r] /= x[r * GN_K + r];
            gn_put(1u, to + r * GN_TO_ROW + c * GN_TO_COLUMN, y[r]);
        }
    }
}

void main() {
    uint item = GN_GROUP * GN_T + gl_LocalInvocationIndex, order[GN_K];
    if (item >= GN_BATCH) return;
    uint at = GN_A + item * GN_A_STEP, to = GN_TO + item * GN_TO_STEP;
    GN_LINES(r, GN_K)
        GN_LINES(c, GN_K) if (!GN_ROOT || r >= c) x[r * GN_K + c] = gn_get(3u, at + r * GN_A_ROW + c * GN_A_COLUMN);
    if (GN_ROOT) {
        gn_cholesky();
        GN_LINES(r, GN_K)
            GN_LINES(c, GN_K) gn_put(1u, to + r * GN_TO_ROW + c * GN_TO_COLUMN, x[r * GN_K + c]);
    } else {
        GN_R det = gn_lu(order);
        if (GN_HOW >= uint(GNI_TINY_DETERMINANT)) {
            int exponent = 0;
            GN_LINES(r, GN_K) gn_times(det, exponent, x[r * GN_K + r]);
            GN_PUT_DETERMINANT(1u, item, (GN_HOW == uint(GNI_TINY_LOG_DET)))
            return;
        }
        gn_solve(order, item);
    }
    if (wrong != 0u) gn_wrong(item, wrong);
}

#elif defined(GN_TRIANGLE) // -----------------------------------------------------------------

// Buffers: right-hand sides, solutions, info, triangles.
void main() {
    uint t = GN_GROUP * GN_T + gl_LocalInvocationIndex, item = t / GN_MORE, c = t % GN_MORE, n = GN_N, wrong = 0u;
    if (item >= GN_BATCH) return;
    uint from = GN_BASE + item * GN_STEP + c * GN_COLUMN, to = GN_TO + item * GN_TO_STEP + c * GN_TO_COLUMN;
    for (uint b = 0u; b < n; b += GN_P) {
        GN_R x[GN_P];
        GN_LINES(r, GN_P) x[r] = gn_get(0u, from + min(b + r, n - 1u) * GN_ROW);
        uint a = GN_A + item * GN_A_STEP;
        for (uint q = 0u; q < b; q += GN_P) {
            GN_R y[GN_P];
            GN_LINES(k, GN_P) y[k] = gn_get(1u, to + (q + k) * GN_TO_ROW);
            GN_LINES(r, GN_P) {
                uint row = a + min(b + r, n - 1u) * GN_A_ROW + q * GN_A_COLUMN;
                GN_LINES(k, GN_P) x[r] -= gn_get(3u, row + k * GN_A_COLUMN) * y[k];
            }
        }
        GN_LINES(r, GN_P) {
            if (b + r < n) {
                uint row = a + (b + r) * GN_A_ROW + b * GN_A_COLUMN;
                GN_LINES(k, r) x[r] -= gn_get(3u, row + k * GN_A_COLUMN) * x[k];
                if (GN_MODE != GN_UNIT) {
                    GN_R d = gn_get(3u, row + r * GN_A_COLUMN);
                    if (d == GN_R(0) && (wrong == 0u || GN_MODE == GN_UPPER)) wrong = b + r + 1u;
                    x[r] /= d;
                }
                gn_put(1u, to + (b + r) * GN_TO_ROW, x[r]);
            }
        }
    }
    if (wrong != 0u && c == 0u) gn_wrong(item, wrong);
}

#else // GN_QR ----------------------------------------------------------------------------------

// Buffers: matrices (GN_N, GN_MORE), q, info, r. Both are contiguous.
#define GN_LINE (GN_T + 4u)
shared GN_R4 gn_line[2][GN_T / 4u];
shared GN_R4 gn_lines[GN_C * GN_LINE / 4u];
shared GN_R gn_tau[GN_T], gn_sign[GN_T];

// A power of two that makes x about 1.
GN_R gn_scale(GN_R x) {
#ifdef GN_DOUBLE
    uint e = clamp(gn_high(x) >> 20 & 2047u, 24u, 2022u);
    return packDouble2x32(uvec2(0u, (2046u - e) << 20));
#else
    uint e = clamp(gn_high(x) >> 23 & 255u, 24u, 230u);
    return uintBitsToFloat((254u - e) << 23);
#endif
}

// Rows below the diagonal: not those of the block that wrapped around. The reflection makes x (beta, 0, ...), as
// LAPACK's larfg; v takes the place of what is below the diagonal, and goes to the others.
#define GN_EACH_BELOW(BODY)                                                                        \
    GN_LINES(i, GN_P - b) {                                                                        \
        uint k = b + i;                                                                            \
        if (i > 0u && (i >= GN_S || i + j < GN_S)) { BODY }                                        \
    }

void main() {
    uint me = gl_LocalInvocationIndex, c = me % GN_P, place = me - c, item = GN_GROUP * GN_M + me / GN_P;
    uint m = GN_N, n = GN_MORE, k_ = min(m, n), q_at = item * m * k_, r_at = item * k_ * n;
    bool there = item < GN_BATCH;
    GN_R x[GN_P];
    GN_LINES(k, GN_P) {
        x[k] = GN_R(0);
        if (there && k < m && c < n) x[k] = gn_get(0u, GN_BASE + item * GN_STEP + k * GN_ROW + c * GN_COLUMN);
    }
    GN_LINES(q, GN_P / GN_S) {
        uint b = q * GN_S;
        if (b < k_)
            for (uint j = 0u; j < GN_S; j++) {
                uint s = b + j;
                if (c == s) {
                    GN_R most = GN_R(0), sum = GN_R(0), alpha = x[b], tau = GN_R(0);
                    GN_EACH_BELOW(GN_R a = abs(x[k]); most = a > most || a != a ? a : most;)
                    if (most != GN_R(0) && s < k_) {
                        // By a power of two, so that squares stay in the range.
                        GN_R scale = gn_scale(most > abs(alpha) || most != most ? most : abs(alpha));
                        GN_EACH_BELOW(GN_R a = x[k] * scale; sum += a * a;)
                        alpha *= scale;
                        GN_R beta = sqrt(sum + alpha * alpha);
                        if (alpha >= GN_R(0)) beta = -beta;
                        tau = (beta - alpha) / beta;
                        GN_R factor = GN_R(1) / (alpha - beta);
                        GN_EACH_BELOW(x[k] = x[k] * scale * factor;) // in this order: the scale may be large
                        x[b] = beta / scale;
                    }
                    gn_tau[me] = tau;
                    GN_LINES(i, (GN_P - b) / 4u) {
                        GN_R4 v = GN_R4(x[b + 4u * i], x[b + 4u * i + 1u], x[b + 4u * i + 2u], x[b + 4u * i + 3u]);
                        GN_LINES(e, 4) if (4u * i + e < GN_S && 4u * i + e + j >= GN_S) v[e] = GN_R(0);
                        if (i == 0u) v.x = GN_R(1);
                        gn_line[j & 1u][(place + b) / 4u + i] = v;
                    }
                }
                barrier();
                GN_R w = GN_R(0), tau = gn_tau[place + s];
                GN_LINES(i, (GN_P - b) / 4u) {
                    GN_R4 v = gn_line[j & 1u][(place + b) / 4u + i];
                    uint k = b + 4u * i;
                    w += v.x * x[k] + v.y * x[k + 1u] + (v.z * x[k + 2u] + v.w * x[k + 3u]);
                }
                w = c > s && tau != GN_R(0) ? w * tau : GN_R(0);
                GN_R last = x[b] - w;
                if (w != GN_R(0) || c > s) {
#define GN_F4(i) gn_line[j & 1u][place / 4u + i]
                    GN_TURN(b, w, GN_F4, last)
                } else {
                    GN_LINES(i, GN_S - 1u) x[b + i] = x[b + i + 1u];
                    x[b + GN_S - 1u] = last;
                }
            }
    }
    GN_R sign = GN_R(1);
    GN_LINES(k, GN_P) if (k == c && x[k] < GN_R(0)) sign = GN_R(-1);
    gn_sign[me] = sign;
    barrier();
    GN_LINES(k, GN_P) {
        if (there && k < k_ && c < n) gn_put(3u, r_at + k * n + c, k <= c ? x[k] * gn_sign[place + k] : GN_R(0));
        // The reflections wait where q will be.
        if (there && k < m && c < k_) gn_put_shared(1u, q_at + k * k_ + c, k > c ? x[k] : GN_R(k == c ? 1 : 0));
        x[k] = k == c ? sign : GN_R(0);
    }
    memoryBarrierBuffer();
    barrier();
    GN_LINES(p, GN_P / GN_S) {
        uint b = GN_P - GN_S - p * GN_S;
        if (b < k_)
            for (uint j = GN_S; j-- > 0u;) {
                uint s = b + j, line = j % GN_C * (GN_LINE / 4u) + place / 4u;
                if (j % GN_C == GN_C - 1u) { // of 16 reflections, the block's rows as they stand while it turns
                    uint s0 = s + 1u - GN_C;
                    barrier();
                    GN_R v[GN_C];
                    uint e = c % GN_C;
                    GN_LINES(i, GN_C) {
                        uint r = i * (GN_P / GN_C) + c / GN_C;
                        v[i] = GN_R(0);
                        if (there && r < m && s0 + e < k_ && r >= s0 + e)
                            v[i] = gn_get_shared(1u, q_at + r * k_ + s0 + e);
                    }
                    GN_LINES(i, GN_C) {
                        uint r = i * (GN_P / GN_C) + c / GN_C, at = r;
                        if (r >= b && r < b + GN_S) at = b + ((r + GN_S - 1u - s0 - e) & (GN_S - 1u));
                        gn_lines[(e * GN_LINE + place + at) / 4u][at & 3u] = v[i];
                    }
                    barrier();
                }
                GN_R w = GN_R(0);
                GN_LINES(i, (GN_P - b) / 4u) {
                    GN_R4 v = gn_lines[line + b / 4u + i];
                    uint k = b + 4u * i;
                    w += v.x * x[k] + v.y * x[k + 1u] + (v.z * x[k + 2u] + v.w * x[k + 3u]);
                }
                w *= s < k_ ? gn_tau[place + s] : GN_R(0);
                GN_R first = x[b + GN_S - 1u] - w * gn_lines[line + (b + GN_S) / 4u - 1u].w;
#undef GN_F4
#define GN_F4(i) gn_lines[line + (i)]
                GN_TURN_BACK(b, w, GN_F4, first)
                GN_LINES(i, (GN_P - b - GN_S) / 4u) {
                    GN_R4 f = gn_lines[line + (b + GN_S) / 4u + i];
                    x[b + GN_S + 4u * i] -= w * f.x;
                    x[b + GN_S + 4u * i + 1u] -= w * f.y;
                    x[b + GN_S + 4u * i + 2u] -= w * f.z;
                    x[b + GN_S + 4u * i + 3u] -= w * f.w;
                }
            }
    }
    barrier();
    GN_LINES(k, GN_P)
        if (there && k < m && c < k_) gn_put(1u, q_at + k * k_ + c, x[k]);
}
#endif
