// Eigenvalues of batches of symmetric matrices and singular values of batches of matrices up to GN_P x GN_P, by
// Jacobi's method: a workgroup for each matrix, or for some small ones.
//
// eigenvectors     G = a V, rotations that make (V^T G)[p][q] 0: Jacobi's two-sided rotations, a itself left alone
// singular values  G = a V, rotations that make (G^T G)[p][q] 0 (Hestenes 1958); G = U S in the end
// eigenvalues      the singular values of a + shift, which is positive definite
//
// Pairs of columns stand side by side and move on after each step, so that every column meets every other in a
// sweep (Brent, Luk 1985). An invocation keeps GN_C pairs of a row of G and of V in registers; GN_S of them, in as many
// teams of GN_P, have a whole row. What goes through shared memory are products to be summed, and what
// crosses from team to team.
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 5
#define GN_READONLY 1
#include "gn.glsl"

layout(constant_id = GNI_S_EIGEN_SIZE) const uint GN_P = 8u;
layout(constant_id = GNI_S_EIGEN_PAIRS) const uint GN_C = 4u;
layout(constant_id = GNI_S_EIGEN_MODE) const uint GN_MODE = 0u;
layout(local_size_x_id = GNI_S_EIGEN_THREADS) in; // GN_T * GN_M

#define GN_SVD (GN_MODE < 2u)
#define GN_EIGEN (GN_MODE >= 2u)
#define GN_VECTORS (GN_MODE == 1u || GN_MODE == 3u)
#define GN_ONE_SIDED (GN_MODE != 3u)
#define GN_TWO_SIDED (GN_MODE == 3u)
#define GN_SHIFTED (GN_MODE == 2u)
#define GN_BOTH_SIDES (GN_MODE == 1u)

const uint GN_K = GN_P / 2u;     // pairs
const uint GN_S = GN_K / GN_C;   // teams
const uint GN_T = GN_P * GN_S;   // invocations of a matrix
const uint GN_M = GN_T < 32u ? 32u / GN_T : 1u; // matrices of a workgroup
const uint GN_LINE = GN_K + 1u;

#ifdef GN_DOUBLE
#define GN_R double
#define GN_R2 dvec2
#define GN_R4 dvec4
#define gn_get(k, i) packDouble2x32(gn_load2(k, i))
#define gn_put(k, i, x) gn_store2(k, i, unpackDouble2x32(x))
#define gn_high(x) unpackDouble2x32(x).y
#define GN_INFINITE 0x7ff00000u
#define GN_EPS GN_R(2.220446049250313e-16LF)
#define GN_TINY GN_R(1e-150LF)
#define GN_FAR GN_R(1e100LF)
#define GN_CLOSE GN_R(7.5e-9LF) // half the root of GN_EPS
#else
#define GN_R float
#define GN_R2 vec2
#define GN_R4 vec4
#define gn_get(k, i) uintBitsToFloat(gn_load(k, i))
#define gn_put(k, i, x) gn_store(k, i, floatBitsToUint(x))
#define gn_high(x) floatBitsToUint(x)
#define GN_INFINITE 0x7f800000u
#define GN_EPS 1.1920929e-7
#define GN_TINY 1e-18
#define GN_FAR 1e30
#define GN_CLOSE 1.7e-4
#endif
#define GN_SWEEPS 40u

// Buffers: the matrices, their values (GN_N each, sorted), info, vectors: those of the eigenvalues, or left and right.
#define GN_BASE GN_PARAM(GNI_P_EIGEN_BASE)
#define GN_ROW GN_PARAM(GNI_P_EIGEN_ROW)
#define GN_COLUMN GN_PARAM(GNI_P_EIGEN_COLUMN)
#define GN_STEP GN_PARAM(GNI_P_EIGEN_STEP)
#define GN_BATCH GN_PARAM(GNI_P_EIGEN_BATCH)
#define GN_ROWS GN_PARAM(GNI_P_EIGEN_ROWS)
#define GN_N GN_PARAM(GNI_P_EIGEN_N)
#define GN_FULL GN_PARAM(GNI_P_EIGEN_FULL)
#define GN_LEFT_ROW GN_PARAM(GNI_P_EIGEN_LEFT_ROW)
#define GN_LEFT_COLUMN GN_PARAM(GNI_P_EIGEN_LEFT_COLUMN)
#define GN_LEFT_STEP GN_PARAM(GNI_P_EIGEN_LEFT_STEP)
#define GN_RIGHT_ROW GN_PARAM(GNI_P_EIGEN_RIGHT_ROW)
#define GN_RIGHT_COLUMN GN_PARAM(GNI_P_EIGEN_RIGHT_COLUMN)

#define GN_NOT_FINITE uint(-2) // as in gpunum.h
#define GN_NO_CONVERGENCE uint(-3)

#define GN_LINES(i, count) [[unroll]] for (uint i = 0u; i < uint(count); i++)

shared GN_R gn_products[GN_M * GN_P * GN_LINE];
shared GN_R4 gn_edges[GN_M * GN_T];
shared GN_R gn_parts[GN_M * GN_T], gn_sizes[2u * GN_M * GN_P];
shared GN_R2 gn_turns[GN_M * GN_K];
shared uint gn_flags[GN_M], gn_order[GN_M * GN_P];

// Of the workgroup's matrices `gn_q`; of its invocations `gn_me`, in row gn_row and team gn_team.
uint gn_q, gn_me, gn_row, gn_team, gn_item;
GN_R gn_top[GN_C], gn_bottom[GN_C], gn_v_top[GN_C], gn_v_bottom[GN_C];

// A power of two that makes a number with these high bits about 1.
GN_R gn_scale(uint high) {
#ifdef GN_DOUBLE
    return packDouble2x32(uvec2(0u, (2046u - clamp(high >> 20, 24u, 2022u)) << 20));
#else
    return uintBitsToFloat((254u - clamp(high >> 23, 2u, 230u)) << 23);
#endif
}

// The sum of x over all rows: invocation i gets that of pair i.
GN_R gn_sum(GN_R x[GN_C]) {
    uint base = gn_q * GN_P * GN_LINE, at = base + gn_row * GN_LINE + gn_team * GN_C;
    GN_LINES(i, GN_C) gn_products[at + i] = x[i];
    barrier();
    GN_R sum = GN_R(0);
    at = base + gn_me / GN_K * GN_C * GN_LINE + gn_me % GN_K;
    GN_LINES(e, GN_C) sum += gn_products[at + e * GN_LINE];
    gn_parts[gn_q * GN_T + gn_me] = sum;
    barrier();
    if (gn_me >= GN_K) return GN_R(0);
    sum = GN_R(0);
    GN_LINES(e, 2u * GN_S) sum += gn_parts[gn_q * GN_T + e * GN_K + gn_me];
    return sum;
}

#define GN_SUM_OF(to, product)                                                                     \
    {                                                                                              \
        GN_R x[GN_C];                                                                              \
        GN_LINES(i, GN_C) x[i] = product;                                                          \
        to = gn_sum(x);                                                                            \
    }

// Elements beyond the end are 0. Returns the scale, or 0 when there is something that is not finite.
GN_R gn_load_rows() {
    uint most = 0u;
    bool there = gn_item < GN_BATCH && gn_row < GN_ROWS;
    GN_LINES(e, 2u * GN_C) {
        uint c = 2u * gn_team * GN_C + e, i = gn_row, j = c;
        if (GN_EIGEN) { // the lower triangle counts
            i = max(gn_row, c);
            j = min(gn_row, c);
        }
        GN_R x = GN_R(0);
        if (there && c < GN_N) x = gn_get(0u, GN_BASE + gn_item * GN_STEP + i * GN_ROW + j * GN_COLUMN);
        most = max(most, gn_high(x) & 0x7fffffffu);
        if ((e & 1u) == 0u)
            gn_top[e / 2u] = x;
        else
            gn_bottom[e / 2u] = x;
    }
    if (gn_me == 0u) gn_flags[gn_q] = 0u;
    barrier();
    atomicMax(gn_flags[gn_q], most);
    barrier();
    most = gn_flags[gn_q];
    if (most >= GN_INFINITE) {
        GN_LINES(i, GN_C) gn_top[i] = gn_bottom[i] = GN_R(0);
        return GN_R(0);
    }
    GN_R scale = gn_scale(most);
    GN_LINES(i, GN_C) {
        gn_top[i] *= scale;
        gn_bottom[i] *= scale;
    }
    return scale;
}

// Frobenius's norm.
GN_R gn_norm() {
    GN_R sum;
    GN_SUM_OF(sum, gn_top[i] * gn_top[i] + gn_bottom[i] * gn_bottom[i])
    if (gn_me < GN_K) gn_sizes[gn_q * 2u * GN_P + gn_me] = sum;
    barrier();
    sum = GN_R(0);
    for (uint i = 0u; i < GN_K; i++) sum += gn_sizes[gn_q * 2u * GN_P + i];
    return sqrt(sum);
}

// The rotation of pair gn_me, as its sine and the tangent of half the angle (Rutishauser 1966), and what its columns'
// sizes become where they go next: squares of norms, or diagonal elements. Returns whether it turns far.
bool gn_rotation(GN_R cross_, uint from, uint last, GN_R bound, bool live) {
    uint me = gn_me, place = gn_q * 2u * GN_P;
    GN_R a = gn_sizes[place + from + 2u * me], b = gn_sizes[place + from + 2u * me + 1u], t = GN_R(0);
    bool far_ = false;
    if (live && me <= last) {
        GN_R unit = GN_R(1), gap = abs(b - a), twice = abs(cross_) * GN_R(2);
        if (GN_ONE_SIDED) unit = a > GN_TINY && b > GN_TINY ? sqrt(a * b) : GN_FAR;
        if (twice > GN_R(2) * bound * unit) {
            // What the squares below lose of numbers that are next to nothing does not turn farther than 45 degrees.
            t = twice / max(gap + sqrt(gap * gap + twice * twice), twice);
            far_ = t > GN_CLOSE || (GN_ONE_SIDED && abs(cross_) > GN_CLOSE * unit);
            if ((b < a) != (cross_ < GN_R(0))) t = -t;
        }
    }
    GN_R half_ = t / (GN_R(1) + sqrt(GN_R(1) + t * t));
    gn_turns[gn_q * GN_K + me] = GN_R2(GN_R(2) * half_ / (GN_R(1) + half_ * half_), half_);
    a -= t * cross_;
    b += t * cross_;
    place += GN_P - from;
    if (me <= last) {
        gn_sizes[place + (me == 0u ? 0u : me == last ? 2u * me + 1u : 2u * me + 2u)] = a;
        gn_sizes[place + (me == 0u ? 2u : 2u * me - 1u)] = b;
    }
    return far_;
}

// Turns the pairs of a row and moves them on: x goes to the next top, y to the bottom before it; the first top stays, the
// first bottom becomes the second top, the last top a bottom. `first` and `rest` are what leaves the team on either side.
#define GN_TURN(top, bottom, first, rest)                                                          \
    GN_LINES(i, GN_C) {                                                                            \
        GN_R2 w = gn_turns[gn_q * GN_K + gn_team * GN_C + i];                                      \
        GN_R x = top[i] - w.x * (bottom[i] + w.y * top[i]), y = bottom[i] + w.x * (top[i] - w.y * bottom[i]); \
        if (i == 0u) {                                                                             \
            first = y;                                                                             \
            top[0] = x;                                                                            \
            rest = gn_team == 0u ? y : x;                                                          \
        } else {                                                                                   \
            bottom[i - 1u] = gn_team * GN_C + i - 1u == last ? rest : y;                           \
            top[i] = rest;                                                                         \
            rest = x;                                                                              \
        }                                                                                          \
    }                                                                                              \
    bottom[GN_C - 1u] = rest;

void gn_turn(uint last) {
    GN_R4 edge = GN_R4(0);
    GN_TURN(gn_top, gn_bottom, edge.x, edge.z)
    if (GN_VECTORS) GN_TURN(gn_v_top, gn_v_bottom, edge.y, edge.w)
    if (GN_S == 1u) return;
    gn_edges[gn_q * GN_T + gn_me] = edge;
    barrier();
    if (gn_team > 0u) {
        edge = gn_edges[gn_q * GN_T + gn_me - GN_P];
        gn_top[0] = edge.z;
        gn_v_top[0] = edge.w;
    }
    if (gn_team + 1u < GN_S && gn_team * GN_C + GN_C - 1u != last) {
        edge = gn_edges[gn_q * GN_T + gn_me + GN_P];
        gn_bottom[GN_C - 1u] = edge.x;
        gn_v_bottom[GN_C - 1u] = edge.y;
    }
}

// Sizes of all columns. To its own places, which no other invocation reads before there was a barrier.
void gn_measure() {
    GN_R a, b;
    if (GN_ONE_SIDED) {
        GN_SUM_OF(a, gn_top[i] * gn_top[i])
        GN_SUM_OF(b, gn_bottom[i] * gn_bottom[i])
    } else {
        GN_SUM_OF(a, gn_top[i] * gn_v_top[i])
        GN_SUM_OF(b, gn_bottom[i] * gn_v_bottom[i])
    }
    if (gn_me >= GN_K) return;
    gn_sizes[gn_q * 2u * GN_P + 2u * gn_me] = a;
    gn_sizes[gn_q * 2u * GN_P + 2u * gn_me + 1u] = b;
}

// Sweeps until the angles of one are so small that their squares do not count. False: that does not come.
bool gn_sweeps(GN_R bound, uint last, bool live) {
    for (uint sweep = 0u; sweep < GN_SWEEPS; sweep++) {
        gn_measure();
        if (gn_me == 0u) gn_flags[gn_q] = 0u;
        uint from = 0u;
        for (uint step_ = 0u; step_ < 2u * last + 1u; step_++) {
            GN_R cross_;
            if (GN_ONE_SIDED)
                GN_SUM_OF(cross_, gn_top[i] * gn_bottom[i])
            else
                GN_SUM_OF(cross_, gn_v_top[i] * gn_bottom[i])
            if (gn_me < GN_K && gn_rotation(cross_, from, last, bound, live)) gn_flags[gn_q] = 1u;
            barrier();
            gn_turn(last);
            from = GN_P - from;
        }
        barrier();
        live = live && gn_flags[gn_q] != 0u;
        bool more = false;
        for (uint i = 0u; i < GN_M; i++) more = more || gn_flags[i] != 0u;
        if (!more) return true;
    }
    return !live;
}

// Vectors of length 1, and values into gn_sizes.
void gn_finish(uint last) {
    GN_R a, b, va = GN_R(1), vb = GN_R(1);
    uint place = gn_q * 2u * GN_P;
    gn_measure();
    if (GN_VECTORS) {
        GN_SUM_OF(va, gn_v_top[i] * gn_v_top[i])
        GN_SUM_OF(vb, gn_v_bottom[i] * gn_v_bottom[i])
    }
    if (gn_me < GN_K) {
        a = gn_sizes[place + 2u * gn_me] / va;
        b = gn_sizes[place + 2u * gn_me + 1u] / vb;
        gn_sizes[place + 2u * gn_me] = GN_ONE_SIDED ? sqrt(a) : a;
        gn_sizes[place + 2u * gn_me + 1u] = GN_ONE_SIDED ? sqrt(b) : b;
        gn_turns[gn_q * GN_K + gn_me] = GN_R2(1.0 / sqrt(va), 1.0 / sqrt(vb));
    }
    barrier();
    GN_LINES(i, GN_C) {
        uint pair = gn_team * GN_C + i;
        if (GN_VECTORS) {
            GN_R2 w = gn_turns[gn_q * GN_K + pair];
            gn_v_top[i] *= w.x;
            gn_v_bottom[i] *= w.y;
            if (GN_SVD) {
                // Of a column that is next to nothing no direction is left.
                GN_R s = gn_sizes[place + 2u * pair], limit = sqrt(GN_TINY);
                gn_top[i] = 2u * pair < GN_N && s > limit ? gn_top[i] * w.x / s : GN_R(0);
                s = gn_sizes[place + 2u * pair + 1u];
                gn_bottom[i] = 2u * pair + 1u < GN_N && s > limit ? gn_bottom[i] * w.y / s : GN_R(0);
            }
        }
    }
}

// Where each column goes.
void gn_sort() {
    uint c = gn_me, place = gn_q * 2u * GN_P, order = 0u;
    if (c >= GN_P) return;
    GN_R mine = gn_sizes[place + c];
    for (uint k = 0u; k < GN_N; k++) {
        GN_R other = gn_sizes[place + k];
        if (GN_SVD ? other > mine : other < mine) order++;
        if (other == mine && k < c) order++;
    }
    gn_order[gn_q * GN_P + c] = c < GN_N ? order : c;
}

// Left vectors that are missing: what the others leave of the axis that they leave most of.
void gn_complete(uint count) {
    uint place = gn_q * 2u * GN_P, team = gn_team * GN_C;
    for (uint c = 0u; c < count; c++) {
        bool missing = c >= GN_N || !(gn_sizes[place + c] > sqrt(GN_TINY)), any_ = missing;
        for (uint q = 0u; q < GN_M; q++) any_ = any_ || !(gn_sizes[q * 2u * GN_P + c] > sqrt(GN_TINY));
        if (!any_) continue;
        GN_R sum = GN_R(0);
        GN_LINES(i, GN_C) sum += gn_top[i] * gn_top[i] + gn_bottom[i] * gn_bottom[i];
        barrier();
        gn_parts[gn_q * GN_T + gn_me] = sum;
        barrier();
        uint pick = 0u;
        GN_R least = GN_R(2);
        if (missing)
            for (uint r = 0u; r < GN_ROWS; r++) {
                sum = GN_R(0);
                for (uint s = 0u; s < GN_S; s++) sum += gn_parts[gn_q * GN_T + s * GN_P + r];
                if (sum < least) {
                    least = sum;
                    pick = r;
                }
            }
        barrier();
        if (gn_row == pick)
            GN_LINES(i, GN_C) gn_turns[gn_q * GN_K + team + i] = GN_R2(gn_top[i], gn_bottom[i]);
        barrier();
        sum = GN_R(0);
        GN_LINES(i, GN_C) {
            GN_R2 w = gn_turns[gn_q * GN_K + team + i];
            sum += w.x * gn_top[i] + w.y * gn_bottom[i];
        }
        gn_parts[gn_q * GN_T + gn_me] = sum;
        barrier();
        sum = GN_R(gn_row == pick ? 1 : 0);
        for (uint s = 0u; s < GN_S; s++) sum -= gn_parts[gn_q * GN_T + s * GN_P + gn_row];
        sum /= sqrt(GN_R(1) - least);
        GN_LINES(i, GN_C) {
            if (missing && 2u * (team + i) == c) gn_top[i] = sum;
            if (missing && 2u * (team + i) + 1u == c) gn_bottom[i] = sum;
        }
    }
}

void gn_store_left(GN_R x, uint c, uint count) {
    if (gn_row < GN_ROWS && c < count)
        gn_put(3u, gn_item * GN_LEFT_STEP + gn_row * GN_LEFT_ROW + gn_order[gn_q * GN_P + c] * GN_LEFT_COLUMN, x);
}

void gn_store_right(GN_R x, uint c) {
    if (gn_row < GN_N && c < GN_N)
        gn_put(4u, gn_item * GN_N * GN_N + gn_row * GN_RIGHT_ROW + gn_order[gn_q * GN_P + c] * GN_RIGHT_COLUMN, x);
}

void main() {
    uint me = gl_LocalInvocationIndex;
    gn_q = me / GN_T;
    gn_me = me % GN_T;
    gn_row = gn_me % GN_P;
    gn_team = gn_me / GN_P;
    gn_item = GN_GROUP * GN_M + gn_q;
    uint last = max((GN_N + 1u) / 2u, 2u) - 1u, first = 2u * gn_team * GN_C;
    GN_R scale = gn_load_rows(), bound = GN_EPS * GN_R(1u + GN_P / 16u), shift = GN_R(0);
    bool finite = scale != GN_R(0), live = finite && gn_item < GN_BATCH;
    if (GN_EIGEN) shift = gn_norm();
    if (GN_TWO_SIDED) bound = GN_EPS * shift;
    GN_LINES(i, GN_C) {
        uint c = first + 2u * i;
        gn_v_top[i] = GN_R(gn_row == c ? 1 : 0);
        gn_v_bottom[i] = GN_R(gn_row == c + 1u ? 1 : 0);
        if (GN_SHIFTED) {
            if (gn_row < GN_N) gn_top[i] += shift * gn_v_top[i];
            if (gn_row < GN_N) gn_bottom[i] += shift * gn_v_bottom[i];
        }
    }
    bool converged = gn_sweeps(bound, last, live);
    if (gn_me == 0u && gn_item < GN_BATCH && !(finite && converged)) {
        gn_store(2u, 1u + gn_item, finite ? GN_NO_CONVERGENCE : GN_NOT_FINITE);
        gn_atomic_max(2u, 0u, 1u);
    }
    gn_finish(last);
    gn_sort();
    barrier();
    if (GN_BOTH_SIDES) gn_complete(GN_FULL);
    if (gn_item >= GN_BATCH) return;
    if (gn_me < GN_N) {
        GN_R x = gn_sizes[gn_q * 2u * GN_P + gn_me];
        if (GN_SHIFTED) x -= shift;
        gn_put(1u, gn_item * GN_N + gn_order[gn_q * GN_P + gn_me], x / scale);
    }
    if (!GN_VECTORS) return;
    GN_LINES(i, GN_C) {
        uint c = first + 2u * i;
        gn_store_left(GN_SVD ? gn_top[i] : gn_v_top[i], c, GN_FULL);
        gn_store_left(GN_SVD ? gn_bottom[i] : gn_v_bottom[i], c + 1u, GN_FULL);
        if (GN_SVD) {
            gn_store_right(gn_v_top[i], c);
            gn_store_right(gn_v_bottom[i], c + 1u);
        }
    }
}
