#version 450
// Steps of the blocked matrix decompositions (gni_factor): what is not a product. Matrices are row-major, a
// block has up to 32 columns, which a thread keeps in registers.
//
// pick    LU of up to GN_ROWS rows of a block column with partial pivoting: the rows that it picks, in order. The
//         winners of several workgroups meet in another round (Grigori, Demmel, Xiang 2011). The last round also
//         writes the 32 x 32 block of L and U.
// swap    brings the picked rows to the top of the block in all columns, and finishes the block's rows of U
// below   rows of L below the block, and what is left of the columns up to the end of the panel
// solve   L^-1 b for a lower triangle of any order, a column of b for each thread
// root    Cholesky of matrices up to 128, one for each workgroup
//
// Loops over the columns of a block turn its registers: the column that is next is always x[0]. Unrolled they would be
// compiled for seconds, and read from memory for longer than they run.
//
//! variant factor_pick -DGN_PICK
//! variant factor_pick_little -DGN_PICK -DGN_ROWS=128
//! variant factor_swap -DGN_SWAP
//! variant factor_below -DGN_BELOW
//! variant factor_solve -DGN_SOLVE
//! variant factor_root -DGN_ROOT
//! variant factor64_pick -DGN_PICK -DGN_DOUBLE
//! variant factor64_pick_little -DGN_PICK -DGN_ROWS=128 -DGN_DOUBLE
//! variant factor64_swap -DGN_SWAP -DGN_DOUBLE
//! variant factor64_below -DGN_BELOW -DGN_DOUBLE
//! variant factor64_solve -DGN_SOLVE -DGN_DOUBLE
//! variant factor64_root -DGN_ROOT -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef GN_PICK
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#define GN_BUFFERS 3
#ifdef GN_SOLVE
#define GN_READONLY 2
#endif
#include "gn.glsl"

#ifndef GN_ROWS
#define GN_ROWS 512
#endif

#define GN_NB 32u
#define GN_EACH [[unroll]] for (uint k = 0u; k < GN_NB; k++)
// The elements of a block that invocation `me` of 64 moves; loads unrolled, so that all are under way at once.
#define GN_SHARE(i, me) [[unroll]] for (uint e = 0u, i = me; e < GN_NB * GN_NB / 64u; e++, i = me + 64u * e)
// x[k] = x[k + 1] - y * factor(k), and `last` comes in behind; x needs GN_NB + 1 places.
#define GN_NEXT(factor, last)                                                                      \
    {                                                                                              \
        x[GN_NB] = GN_R(0);                                                                        \
        GN_EACH x[k] = x[k + 1u] - y * (factor);                                                   \
        x[GN_NB - 1u] = (last);                                                                    \
    }

#ifdef GN_DOUBLE
#define GN_R double
#define gn_get(k, i) packDouble2x32(gn_load2(k, i))
#define gn_put(k, i, x) gn_store2(k, i, unpackDouble2x32(x))
#define GN_VECTOR 2u // numbers in 16 bytes
#define gn_part(v, e) packDouble2x32(uvec2((v)[2u * (e)], (v)[2u * (e) + 1u]))
#define gn_set(v, e, x)                                                                            \
    {                                                                                              \
        uvec2 words = unpackDouble2x32(x);                                                         \
        v[2u * (e)] = words[0];                                                                    \
        v[2u * (e) + 1u] = words[1];                                                               \
    }
#else
#define GN_R float
#define gn_get(k, i) uintBitsToFloat(gn_load(k, i))
#define gn_put(k, i, x) gn_store(k, i, floatBitsToUint(x))
#define GN_VECTOR 4u
#define gn_part(v, e) uintBitsToFloat((v)[e])
#define gn_set(v, e, x) v[e] = floatBitsToUint(x);
#endif
// Element `at` and those behind it, as many as 16 bytes have; rows are a multiple of 4 elements long.
#define GN_VECTORS(k, count) [[unroll]] for (uint k = 0u; k < (count); k += GN_VECTOR)
#define GN_PARTS(e) [[unroll]] for (uint e = 0u; e < GN_VECTOR; e++)

// Words of the state: 0 the first pivot that is 0 or not positive, plus 1; lists of rows from GN_LIST on.
#define GN_STATE 1u

#ifdef GN_PICK // ------------------------------------------------------------------------------

// Buffers: matrix, state, block of L and U.
#define GN_BASE GN_PARAM(0)
#define GN_LD GN_PARAM(1)
#define GN_FIRST GN_PARAM(2) // first row, and first column
#define GN_COUNT GN_PARAM(3) // rows that stand for election
#define GN_WIDTH GN_PARAM(4)
#define GN_FROM GN_PARAM(5) // their list in the state; 0: all from GN_FIRST on
#define GN_TO GN_PARAM(6)   // list of those picked
#define GN_LAST GN_PARAM(7) // the last round
#define GN_NOBODY 0xffffffffu
#define GN_TIE 127u // the last bits of a key, which tell equal ones apart

layout(local_size_x = GN_ROWS) in;

#ifdef GN_DOUBLE
#define GN_R4 dvec4
#else
#define GN_R4 vec4
#endif
#if GN_ROWS > 128
#define GN_SUBGROUPS 16u // at most: subgroups have 32 invocations
#else
#define GN_SUBGROUPS 32u
#endif
// The best row of each subgroup, in two places that take turns, and how good it is.
shared GN_R4 gn_row[2][GN_SUBGROUPS * GN_NB / 4u];
shared uint gn_key[2][GN_SUBGROUPS];

// Grows with |x|, NaN first, up to the last bits; of a double the upper half will do.
uint gn_rank(GN_R x) {
#ifdef GN_DOUBLE
    uint size = (unpackDouble2x32(x).y & 0x7fffffffu) / (GN_TIE + 1u);
#else
    uint size = (floatBitsToUint(x) & 0x7fffffffu) / (GN_TIE + 1u);
#endif
    if (x != GN_R(0)) size = max(size, 1u);
    return (size + 1u) * (GN_TIE + 1u);
}

void main() {
    uint me = gl_LocalInvocationIndex, i = GN_GROUP * uint(GN_ROWS) + me, number = GN_NOBODY;
    if (i < GN_COUNT) number = GN_FROM == 0u ? GN_FIRST + i : gn_load(GN_STATE, GN_FROM + i);
    bool free = number != GN_NOBODY;
    uint at = GN_BASE + (free ? number : GN_FIRST) * GN_LD + GN_FIRST;
    uint mine = GN_NB; // place among those picked
    GN_R x[GN_NB + 1u];
    GN_VECTORS(k, GN_NB) {
        uvec4 v = uvec4(0u);
        if (free && k < GN_WIDTH) v = gn_load4(0u, (at + k) / GN_VECTOR);
        GN_PARTS(e) x[k + e] = k + e < GN_WIDTH ? gn_part(v, e) : GN_R(0);
    }
    for (uint s = 0u; s < GN_WIDTH; s++) {
        // The best of this subgroup, then of all of them.
        uint turn = s & 1u, key = free ? gn_rank(x[0]) + (GN_TIE - gl_SubgroupInvocationID) : 0u;
        uint best = subgroupMax(key);
        bool ahead = free && key == best;
        if (best == 0u && subgroupElect()) gn_key[turn][gl_SubgroupID] = 0u;
        if (ahead) {
            gn_key[turn][gl_SubgroupID] = (best & ~GN_TIE) + (GN_TIE - gl_SubgroupID);
            // Behind the columns that are left stand factors, which stay as they are.
            [[unroll]] for (uint k = 0u; k < GN_NB; k += 4u) {
                GN_R4 v = GN_R4(x[k], x[k + 1u], x[k + 2u], x[k + 3u]);
                [[unroll]] for (uint e = 0u; e < 4u; e++) if (k + e + s >= GN_NB) v[e] = GN_R(0);
                gn_row[turn][(gl_SubgroupID * GN_NB + k) / 4u] = v;
            }
        }
        barrier();
        key = 0u;
        for (uint q = gl_SubgroupInvocationID; q < gl_NumSubgroups; q += gl_SubgroupSize)
            key = max(key, gn_key[turn][q]);
        best = subgroupMax(key);
        uint winner = GN_TIE - (best & GN_TIE), from = (best == 0u ? 0u : winner) * GN_NB / 4u;
        bool zero = best < 2u * (GN_TIE + 1u);
        if (best == 0u ? me == 0u : ahead && gl_SubgroupID == winner) {
            gn_store(GN_STATE, GN_TO + GN_GROUP * GN_NB + s, best == 0u ? GN_NOBODY : number);
            if (best != 0u && zero && GN_LAST != 0u && gn_load(GN_STATE, 0u) == 0u)
                gn_store(GN_STATE, 0u, GN_FIRST + s + 1u);
            if (best != 0u) {
                free = false;
                mine = s;
            }
        }
        GN_R4 f = gn_row[turn][from];
        GN_R first = x[0], y = free && !zero ? first / f.x : GN_R(0);
        x[GN_NB] = GN_R(0);
        [[unroll]] for (uint k = 0u; k < GN_NB; k += 4u) {
            if (k > 0u) {
                f = gn_row[turn][from + k / 4u];
                x[k - 1u] = x[k] - y * f.x;
            }
            x[k] = x[k + 1u] - y * f.y;
            x[k + 1u] = x[k + 2u] - y * f.z;
            x[k + 2u] = x[k + 3u] - y * f.w;
        }
        x[GN_NB - 1u] = free && !zero ? y : first;
    }
    if (GN_LAST != 0u && mine < GN_NB)
        GN_EACH gn_put(2u, mine * GN_NB + ((k + GN_WIDTH) & (GN_NB - 1u)), x[k]);
}

#elif defined(GN_SWAP) // ----------------------------------------------------------------------

// Buffers: matrix, state, block of L and U.
#define GN_BASE GN_PARAM(0)
#define GN_LD GN_PARAM(1)
#define GN_FIRST GN_PARAM(2)
#define GN_COLUMNS GN_PARAM(3)
#define GN_WIDTH GN_PARAM(4)
#define GN_LIST GN_PARAM(5)
#define GN_ORDER GN_PARAM(6) // of the rows, in the state
#define GN_END GN_PARAM(7)   // columns up to here are of the same panel

layout(local_size_x = 64) in;

shared uint gn_pick[GN_NB], gn_taken[GN_NB], gn_to[GN_NB], gn_move[GN_NB];
shared uint gn_moves;
shared GN_R gn_tile[GN_NB * GN_NB], gn_low[GN_NB * GN_NB];

// Rows of the block that were not picked go where picked rows from below leave room.
void gn_plan(uint me) {
    if (me < GN_NB) {
        gn_pick[me] = me < GN_WIDTH ? gn_load(GN_STATE, GN_LIST + me) : GN_FIRST + me;
        gn_taken[me] = me < GN_WIDTH ? 0u : 1u;
    }
    barrier();
    bool below = me < GN_WIDTH && gn_pick[min(me, GN_NB - 1u)] >= GN_FIRST + GN_WIDTH;
    if (me < GN_WIDTH && !below) gn_taken[gn_pick[me] - GN_FIRST] = 1u;
    barrier();
    if (me < GN_WIDTH) {
        uint place = 0u, rank = 0u;
        for (uint q = 0u; q < me; q++) {
            if (gn_pick[q] >= GN_FIRST + GN_WIDTH) place++;
            if (gn_taken[q] == 0u) rank++;
        }
        if (below) gn_to[place] = gn_pick[me];
        if (gn_taken[me] == 0u) gn_move[rank] = GN_FIRST + me;
        if (me == GN_WIDTH - 1u) gn_moves = place + (below ? 1u : 0u);
    }
    barrier();
}

void gn_swap_order() {
    uint x[GN_NB], y[GN_NB];
    GN_EACH x[k] = k < GN_WIDTH ? gn_load(GN_STATE, GN_ORDER + gn_pick[k]) : 0u;
    GN_EACH y[k] = k < gn_moves ? gn_load(GN_STATE, GN_ORDER + gn_move[k]) : 0u;
    GN_EACH if (k < GN_WIDTH) gn_store(GN_STATE, GN_ORDER + GN_FIRST + k, x[k]);
    GN_EACH if (k < gn_moves) gn_store(GN_STATE, GN_ORDER + gn_to[k], y[k]);
}

void main() {
    uint me = gl_LocalInvocationIndex, c = gl_WorkGroupID.x * 64u + me;
    GN_SHARE(i, me) {
        // Column s of L, from below its diagonal on.
        uint s = i / GN_NB, r = s + 1u + i % GN_NB;
        gn_tile[i] = gn_get(2u, i);
        gn_low[i] = r < GN_NB ? gn_get(2u, r * GN_NB + s) : GN_R(0);
    }
    gn_plan(me);
    if (c == GN_COLUMNS) gn_swap_order();
    if (c >= GN_COLUMNS) return;
    uint at = GN_BASE + c;
    GN_R x[GN_NB + 1u], z[GN_NB];
    GN_EACH x[k] = k < GN_WIDTH ? gn_get(0u, at + gn_pick[k] * GN_LD) : GN_R(0);
    GN_EACH z[k] = k < gn_moves ? gn_get(0u, at + gn_move[k] * GN_LD) : GN_R(0);
    bool inside = c >= GN_FIRST && c < GN_FIRST + GN_WIDTH;
    if (inside) {
        GN_EACH x[k] = gn_tile[k * GN_NB + c - GN_FIRST];
    } else if (c >= GN_FIRST + GN_WIDTH && c < GN_END) {
        for (uint s = 0u; s < GN_NB; s++) {
            GN_R y = x[0];
            GN_NEXT(gn_low[s * GN_NB + k], y)
        }
    }
    GN_EACH if (k < GN_WIDTH) gn_put(0u, at + (GN_FIRST + k) * GN_LD, x[k]);
    GN_EACH if (k < gn_moves) gn_put(0u, at + gn_to[k] * GN_LD, z[k]);
}

#elif defined(GN_BELOW) // ---------------------------------------------------------------------

// Buffers: matrix, state (not used), block of L and U. Rows are a multiple of 4 elements long, and so is the
// distance of GN_FIRST from them; a full block.
#define GN_BASE GN_PARAM(0)
#define GN_LD GN_PARAM(1)
#define GN_FIRST GN_PARAM(2)
#define GN_ALL_ROWS GN_PARAM(3)
#define GN_END GN_PARAM(4)
#define GN_MOST 96u // columns to the right

layout(local_size_x = 64) in;

shared GN_R gn_tile[GN_NB * GN_NB];
shared GN_R gn_right[GN_NB * GN_MOST];

void main() {
    uint me = gl_LocalInvocationIndex, row = GN_FIRST + GN_NB + gl_WorkGroupID.x * 64u + me;
    uint right = GN_FIRST + GN_NB, width = GN_END - right;
    GN_SHARE(i, me) {
        uint r = i / GN_NB, c = r + i % GN_NB; // row r of U, from its diagonal on
        gn_tile[i] = c < GN_NB ? gn_get(2u, r * GN_NB + c) : GN_R(0);
    }
    for (uint i = me; i < width; i += 64u)
        GN_EACH gn_right[k * GN_MOST + i] = gn_get(0u, GN_BASE + (GN_FIRST + k) * GN_LD + right + i);
    barrier();
    if (row >= GN_ALL_ROWS) return;
    uint at = GN_BASE + row * GN_LD + GN_FIRST;
    GN_R x[GN_NB + 1u];
    GN_VECTORS(k, GN_NB) {
        uvec4 v = gn_load4(0u, (at + k) / GN_VECTOR);
        GN_PARTS(e) x[k + e] = gn_part(v, e);
    }
    for (uint s = 0u; s < GN_NB; s++) {
        GN_R pivot = gn_tile[s * GN_NB], y = pivot == GN_R(0) ? x[0] : x[0] / pivot;
        GN_NEXT(k + 1u < GN_NB ? gn_tile[s * GN_NB + k + 1u] : GN_R(0), y)
    }
    GN_VECTORS(k, GN_NB) {
        uvec4 v;
        GN_PARTS(e) gn_set(v, e, x[k + e])
        gn_store4(0u, (at + k) / GN_VECTOR, v);
    }
    at += GN_NB;
    for (uint c = 0u; c < width; c += 8u) { // a whole number of vectors, up to the rows' end
        GN_R a[8];
        GN_VECTORS(k, 8u) {
            uvec4 v = uvec4(0u);
            if (c + k < width) v = gn_load4(0u, (at + c + k) / GN_VECTOR);
            GN_PARTS(e) a[k + e] = gn_part(v, e);
        }
        GN_EACH {
            [[unroll]] for (uint e = 0u; e < 8u; e++) a[e] -= x[k] * gn_right[k * GN_MOST + c + e];
        }
        GN_VECTORS(k, 8u) {
            uvec4 v;
            GN_PARTS(e) gn_set(v, e, a[k + e])
            if (c + k < width) gn_store4(0u, (at + c + k) / GN_VECTOR, v);
        }
    }
}

#elif defined(GN_SOLVE) // ---------------------------------------------------------------------

// Buffers: b, triangle. Steps are signed: an upper triangle is a lower one read backwards.
#define GN_B_BASE GN_PARAM(0)
#define GN_B_ROW GN_PARAM(1)
#define GN_B_COLUMN GN_PARAM(2)
#define GN_T_BASE GN_PARAM(3)
#define GN_T_ROW GN_PARAM(4)
#define GN_T_COLUMN GN_PARAM(5)
#define GN_ORDER GN_PARAM(6)
#define GN_COLUMNS GN_PARAM(7)
#define GN_UNIT GN_PARAM(8)

layout(local_size_x = 64) in;

shared GN_R gn_tile[GN_NB * GN_NB];

// Block (p,q) of the triangle by columns. On the diagonal columns begin there, with ones beyond the end.
void gn_tile_load(uint me, uint p, uint q) {
    barrier();
    GN_SHARE(i, me) {
        uint s = i / GN_NB, k = i % GN_NB + (p == q ? s : 0u), r = p * GN_NB + k, c = q * GN_NB + s;
        GN_R v = k < GN_NB && r < GN_ORDER && c <= r ? gn_get(1u, GN_T_BASE + r * GN_T_ROW + c * GN_T_COLUMN) : GN_R(0);
        gn_tile[i] = r == c && (GN_UNIT != 0u || r >= GN_ORDER) ? GN_R(1) : v;
    }
    barrier();
}

void main() {
    uint me = gl_LocalInvocationIndex, c = gl_WorkGroupID.x * 64u + me;
    bool live = c < GN_COLUMNS;
    uint at = GN_B_BASE + c * GN_B_COLUMN;
    GN_R x[GN_NB + 1u];
    for (uint p = 0u; p * GN_NB < GN_ORDER; p++) {
        uint j = p * GN_NB;
        GN_EACH x[k] = live && j + k < GN_ORDER ? gn_get(0u, at + (j + k) * GN_B_ROW) : GN_R(0);
        for (uint q = 0u; q < p; q++) {
            gn_tile_load(me, p, q);
            for (uint s = 0u; s < GN_NB && live; s += 8u) {
                GN_R y[8];
                [[unroll]] for (uint e = 0u; e < 8u; e++) y[e] = gn_get(0u, at + (q * GN_NB + s + e) * GN_B_ROW);
                [[unroll]] for (uint e = 0u; e < 8u; e++)
                    GN_EACH x[k] -= gn_tile[(s + e) * GN_NB + k] * y[e];
            }
        }
        gn_tile_load(me, p, p);
        for (uint s = 0u; s < GN_NB; s++) {
            GN_R y = x[0] / gn_tile[s * GN_NB];
            GN_NEXT(k + 1u < GN_NB ? gn_tile[s * GN_NB + k + 1u] : GN_R(0), y)
        }
        if (live) GN_EACH if (j + k < GN_ORDER) gn_put(0u, at + (j + k) * GN_B_ROW, x[k]);
    }
}

#else // GN_ROOT --------------------------------------------------------------------------------

// Buffers: matrices, state. A row for each thread, its columns 32 at a time.
#define GN_BASE GN_PARAM(0)
#define GN_LD GN_PARAM(1)
#define GN_ORDER GN_PARAM(2) // <= 128
#define GN_STEP GN_PARAM(3)  // from matrix to matrix
#define GN_FIRST GN_PARAM(4) // of the whole matrix, for the state
#define GN_INFO GN_PARAM(5)  // word of the state for the first matrix

layout(local_size_x = 128) in;

shared GN_R gn_tile[GN_NB * GN_NB];
shared GN_R gn_column[2][GN_NB], gn_rest[2];

void main() {
    uint row = gl_LocalInvocationIndex, base = GN_BASE + GN_GROUP * GN_STEP, info = GN_INFO + GN_GROUP;
    bool live = row < GN_ORDER, failed = false;
    uint at = base + row * GN_LD;
    GN_R x[GN_NB + 1u];
    for (uint p = 0u; p * GN_NB < GN_ORDER; p++) {
        uint j = p * GN_NB, mine = row - j; // of this block's rows: below 32
        bool below = live && row >= j;
        GN_EACH x[k] = below && j + k <= row ? gn_get(0u, at + j + k) : GN_R(0);
        for (uint q = 0u; q < p; q++) {
            barrier();
            if (mine < GN_NB)
                GN_EACH gn_tile[k * GN_NB + mine] = live ? gn_get(0u, at + q * GN_NB + k) : GN_R(0);
            barrier();
            for (uint s = 0u; s < GN_NB && below; s += 8u) {
                GN_R y[8];
                [[unroll]] for (uint e = 0u; e < 8u; e++) y[e] = gn_get(0u, at + q * GN_NB + s + e);
                [[unroll]] for (uint e = 0u; e < 8u; e++)
                    GN_EACH x[k] -= y[e] * gn_tile[(s + e) * GN_NB + k];
            }
        }
        for (uint s = 0u; s < GN_NB; s++) {
            // From behind the diagonal on; what is done before it stays as it is.
            if (mine < GN_NB) gn_column[s & 1u][(mine + GN_NB - 1u - s) & (GN_NB - 1u)] = mine > s ? x[0] : GN_R(0);
            if (mine == s) gn_rest[s & 1u] = x[0];
            barrier();
            GN_R rest = j + s < GN_ORDER ? gn_rest[s & 1u] : GN_R(1);
            if (!(rest > GN_R(0)) && !failed) {
                failed = true;
                if (row == 0u && gn_load(GN_STATE, info) == 0u) gn_store(GN_STATE, info, GN_FIRST + j + s + 1u);
            }
            GN_R root = sqrt(rest), last = x[0] / root, y = last / root;
            GN_NEXT(gn_column[s & 1u][k], last)
        }
        if (below) GN_EACH if (j + k < GN_ORDER) gn_put(0u, at + j + k, j + k <= row ? x[k] : GN_R(0));
    }
    if (live) // what is above the blocks on the diagonal
        for (uint c = (row / GN_NB + 1u) * GN_NB; c < GN_ORDER; c++) gn_put(0u, at + c, GN_R(0));
}
#endif
