#version 450
// Steps of the blocked matrix decompositions (gni_factor): what is not a product. Matrices are row-major, a
// block has up to 32 columns, which a thread keeps in registers.
//
// pick    LU of a block column with partial pivoting: the rows that it picks, in order. The winners of several
//         workgroups meet in another round (Grigori, Demmel, Xiang 2011). The last round also writes the 32 x 32 block
//         of L and U.
// swap    brings the picked rows to the top of the block in all columns, and finishes the block's rows of U
// below   rows of L below the block, and what is left of the columns up to the end of the panel
// solve   L^-1 b for a lower triangle up to 128, 32 columns of b (float64: 16) for each workgroup
// update  c - a b
// root    Cholesky of a matrix up to 128, by one workgroup
//
// Loops over the columns of a block turn its registers: the column that is next is always x[0]. Unrolled they would be
// compiled for seconds, and read from memory for longer than they run.
//
//! variant factor_pick -DGN_PICK -DGN_OWN=4
//! variant factor_pick_little -DGN_PICK -DGN_ROWS=128 -DGN_OWN=1
//! variant factor_swap -DGN_SWAP
//! variant factor_below -DGN_BELOW
//! variant factor_solve -DGN_SOLVE
//! variant factor_root -DGN_ROOT
//! variant factor_update -DGN_UPDATE -DGN_TILE=64
//! variant factor_update_128 -DGN_UPDATE -DGN_TILE=128
//! variant factor64_pick -DGN_PICK -DGN_OWN=2 -DGN_DOUBLE
//! variant factor64_pick_little -DGN_PICK -DGN_ROWS=128 -DGN_OWN=1 -DGN_DOUBLE
//! variant factor64_swap -DGN_SWAP -DGN_DOUBLE
//! variant factor64_below -DGN_BELOW -DGN_DOUBLE
//! variant factor64_solve -DGN_SOLVE -DGN_DOUBLE
//! variant factor64_root -DGN_ROOT -DGN_DOUBLE
//! variant factor64_update -DGN_UPDATE -DGN_TILE=64 -DGN_DOUBLE
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

// Each z of the grid is a matrix: where buffer k has its numbers begins so far behind the first one's.
uint gn_at0 = GN_PARAM(GNI_P_FACTOR_STEP) * gl_WorkGroupID.z, gn_at1 = GN_PARAM(GNI_P_FACTOR_STEP + 1) * gl_WorkGroupID.z;
#if defined(GN_PICK) || defined(GN_SWAP) || defined(GN_BELOW) || defined(GN_UPDATE)
uint gn_at2 = GN_PARAM(GNI_P_FACTOR_STEP + 2) * gl_WorkGroupID.z;
#endif
#undef GN_GROUP
#define GN_GROUP (gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y)

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

// Buffers: matrix, state, block of L and U. A workgroup picks 32 of its GN_ROWS rows. The last one to finish
// of those whose winners fit into one goes on with these, until one is left.
#define GN_BASE (GN_PARAM(GNI_P_PICK_BASE) + gn_at0)
#define GN_LD GN_PARAM(GNI_P_PICK_LD)
#define GN_FIRST GN_PARAM(GNI_P_PICK_FIRST)
#define GN_COUNT GN_PARAM(GNI_P_PICK_COUNT)
#define GN_WIDTH GN_PARAM(GNI_P_PICK_WIDTH)
#define GN_COUNTERS (GN_PARAM(GNI_P_PICK_COUNTERS) + gn_at1)
#define GN_LISTS (GN_PARAM(GNI_P_PICK_LISTS) + gn_at1)
#define GN_PICKED (GN_PARAM(GNI_P_PICK_PICKED) + gn_at1)
#define GN_NOBODY 0xffffffffu
#define GN_TIE (uint(GN_ROWS) - 1u) // the last bits of a key, which tell rows apart
#define GN_MEET (uint(GN_ROWS) / GN_NB) // workgroups whose winners meet

layout(local_size_x = GN_ROWS / GN_OWN) in;

#ifdef GN_DOUBLE
#define GN_R4 dvec4
#else
#define GN_R4 vec4
#endif
#define GN_T (uint(GN_ROWS) / GN_OWN)
#define GN_OWNS(r) [[unroll]] for (uint r = 0u; r < uint(GN_OWN); r++)
// Of what is long drivers do not write loops out.
#if GN_OWN == 1
#define GN_EACH_OWN(what) what(0)
#elif GN_OWN == 2
#define GN_EACH_OWN(what) what(0) what(1)
#else
#define GN_EACH_OWN(what) what(0) what(1) what(2) what(3)
#endif
#if GN_ROWS > 128
#define GN_SUBGROUPS (GN_T / 32u) // at most: subgroups have 32 invocations
#else
#define GN_SUBGROUPS (GN_T / 4u)
#endif
// The best row of each subgroup, in two places that take turns, and how good it is.
shared GN_R4 gn_row[2][GN_SUBGROUPS * GN_NB / 4u];
shared uvec4 gn_key[2][GN_SUBGROUPS / 4u];
shared uint gn_list[GN_NB]; // of the rows that win
shared uint gn_arrived;

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

// The first number of row r.
#define GN_OF(r) (r < GN_OWN ? x[r % GN_OWN][0] : GN_R(0))

// The key of the best row of the subgroup, 0 if there is none.
uint gn_best(uint number[GN_OWN], uint mine[GN_OWN], GN_R x0, GN_R x1, GN_R x2, GN_R x3) {
    GN_R first[4] = GN_R[4](x0, x1, x2, x3);
    uint key = 0u;
    GN_OWNS(r)
        if (number[r] != GN_NOBODY && mine[r] == GN_NB)
            key = max(key, gn_rank(first[r]) + (GN_TIE - r * GN_T - gl_LocalInvocationIndex));
    return subgroupMax(key);
}

// The row that is ahead. Behind the columns that are left stand factors, which stay as they are: here are zeros.
#define GN_SHOW(r)                                                                                 \
    if (ahead == r) {                                                                              \
        [[unroll]] for (uint k = 0u; k < GN_NB; k += 4u)                                           \
            gn_row[turn][place + k / 4u] =                                                         \
                mix(GN_R4(x[r][k], x[r][k + 1u], x[r][k + 2u], x[r][k + 3u]), GN_R4(0),            \
                    greaterThanEqual(k + s + uvec4(0u, 1u, 2u, 3u), uvec4(GN_NB)));                \
    }

#define GN_WRITE(r)                                                                                \
    if (mine[r] < GN_NB)                                                                           \
        GN_EACH gn_put(2u, gn_at2 + mine[r] * GN_NB + ((k + GN_WIDTH) & (GN_NB - 1u)), x[r][k]);

// x -= y f, moved on by one column.
#define GN_MOVE(r)                                                                                 \
    {                                                                                              \
        GN_R last = x[r][k - 1u];                                                                  \
        x[r][k - 1u] = x[r][k] - y[r] * f.x;                                                       \
        x[r][k] = x[r][k + 1u] - y[r] * f.y;                                                       \
        x[r][k + 1u] = x[r][k + 2u] - y[r] * f.z;                                                  \
        x[r][k + 2u] = x[r][k + 3u] - y[r] * f.w;                                                  \
        x[r][k + 3u] = last;                                                                       \
    }

// Whether this workgroup is the last of `count`.
bool gn_is_last_of(uint counter, uint count) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0u) gn_arrived = gn_atomic_add(GN_STATE, counter, 1u);
    barrier();
    bool last = gn_arrived == count - 1u;
    memoryBarrierBuffer();
    if (last && gl_LocalInvocationIndex == 0u) gn_store_coherent(GN_STATE, counter, 0u);
    return last;
}

void main() {
    uint me = gl_LocalInvocationIndex, group = GN_GROUP, left = (GN_COUNT + uint(GN_ROWS) - 1u) / uint(GN_ROWS);
    uint count = GN_COUNT - min(GN_COUNT, group * uint(GN_ROWS)), from = 0u, to = GN_LISTS, counter = GN_COUNTERS;
    if (group >= left) return;
    if (me < 2u * GN_SUBGROUPS) gn_key[me & 1u][me / 8u][me / 2u & 3u] = 0u; // there may be fewer
    barrier();
    for (;;) {
        GN_R x[GN_OWN][GN_NB];
        uint number[GN_OWN], mine[GN_OWN]; // mine: place among those picked
        GN_OWNS(r) {
            uint i = me + r * GN_T;
            number[r] = GN_NOBODY;
            if (i < count)
                number[r] = from == 0u ? GN_FIRST + group * uint(GN_ROWS) + i : gn_load_coherent(GN_STATE, from + i);
            mine[r] = GN_NB;
        }
        GN_OWNS(r) {
            bool there = number[r] != GN_NOBODY;
            uint at = GN_BASE + (there ? number[r] : GN_FIRST) * GN_LD + GN_FIRST;
            GN_VECTORS(k, GN_NB) {
                uvec4 v = uvec4(0u);
                if (there && k < GN_WIDTH) v = gn_load4(0u, (at + k) / GN_VECTOR);
                GN_PARTS(e) x[r][k + e] = k + e < GN_WIDTH ? gn_part(v, e) : GN_R(0);
            }
        }
        uint best = gn_best(number, mine, x[0][0], GN_OF(1), GN_OF(2), GN_OF(3));
        for (uint s = 0u; s < GN_WIDTH; s++) {
            // The best of this subgroup, then of all of them.
            uint turn = s & 1u, ahead = uint(GN_OWN);
            if (best != 0u ? (GN_TIE - (best & GN_TIE)) % GN_T == me : subgroupElect()) {
                gn_key[turn][gl_SubgroupID / 4u][gl_SubgroupID & 3u] = best;
                ahead = (GN_TIE - (best & GN_TIE)) / GN_T;
                uint place = gl_SubgroupID * GN_NB / 4u;
                GN_EACH_OWN(GN_SHOW)
            }
            barrier();
            best = 0u;
            uint winner = 0u;
            [[unroll]] for (uint q = 0u; q < GN_SUBGROUPS / 4u; q++) {
                uvec4 keys = gn_key[turn][q];
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    winner = keys[e] > best ? 4u * q + e : winner;
                    best = max(best, keys[e]);
                }
            }
            uint row = GN_TIE - (best & GN_TIE);
            bool zero = best < 2u * (GN_TIE + 1u);
            GN_R4 f = gn_row[turn][winner * GN_NB / 4u];
            if (best == 0u ? me == 0u : me == row % GN_T) {
                uint who = GN_NOBODY;
                GN_OWNS(r) if (best != 0u && row / GN_T == r) {
                    who = number[r];
                    mine[r] = s;
                }
                gn_list[s] = who;
                if (left == 1u && best != 0u && zero && gn_load_coherent(GN_STATE, gn_at1) == 0u)
                    gn_store_coherent(GN_STATE, gn_at1, GN_FIRST + s + 1u);
            }
            GN_R over = GN_R(1) / f.x, y[GN_OWN];
            bool odd = isinf(over) || over == GN_R(0);
            GN_OWNS(r) {
                bool free = number[r] != GN_NOBODY && mine[r] == GN_NB && !zero;
                y[r] = free ? odd ? x[r][0] / f.x : x[r][0] * over : GN_R(0);
                GN_R last = free ? y[r] : x[r][0];
                x[r][0] = x[r][1] - y[r] * f.y;
                x[r][1] = x[r][2] - y[r] * f.z;
                x[r][2] = x[r][3] - y[r] * f.w;
                x[r][3] = last; // moves on behind the others
            }
            // Asked for before the rest of the columns, which do not wait for it.
            best = gn_best(number, mine, x[0][0], GN_OF(1), GN_OF(2), GN_OF(3));
            [[unroll]] for (uint k = 4u; k < GN_NB; k += 4u) {
                f = gn_row[turn][(winner * GN_NB + k) / 4u];
                GN_EACH_OWN(GN_MOVE)
            }
        }
        barrier();
        if (left == 1u) {
            if (me < GN_WIDTH) gn_store(GN_STATE, GN_PICKED + me, gn_list[me]);
            GN_EACH_OWN(GN_WRITE)
            return;
        }
        uint next = group / GN_MEET, meet = min(left - next * GN_MEET, GN_MEET);
        if (me < GN_NB) gn_store_coherent(GN_STATE, to + group * GN_NB + me, me < GN_WIDTH ? gn_list[me] : GN_NOBODY);
        if (!gn_is_last_of(counter + next, meet)) return;
        from = to + next * GN_MEET * GN_NB;
        count = meet * GN_NB;
        to += left * GN_NB;
        left = (left + GN_MEET - 1u) / GN_MEET;
        counter += left;
        group = next;
    }
}

#elif defined(GN_SWAP) // ----------------------------------------------------------------------

// Buffers: matrix, state, block of L and U.
#define GN_BASE (GN_PARAM(GNI_P_SWAP_BASE) + gn_at0)
#define GN_LD GN_PARAM(GNI_P_SWAP_LD)
#define GN_FIRST GN_PARAM(GNI_P_SWAP_FIRST)
#define GN_COLUMNS GN_PARAM(GNI_P_SWAP_COLUMNS)
#define GN_WIDTH GN_PARAM(GNI_P_SWAP_WIDTH)
#define GN_LIST (GN_PARAM(GNI_P_SWAP_LIST) + gn_at1)
#define GN_ORDER (GN_PARAM(GNI_P_SWAP_ORDER) + GN_COLUMNS * gl_WorkGroupID.z)
#define GN_END GN_PARAM(GNI_P_SWAP_END)

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
        gn_tile[i] = gn_get(2u, gn_at2 + i);
        gn_low[i] = r < GN_NB ? gn_get(2u, gn_at2 + r * GN_NB + s) : GN_R(0);
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
#define GN_BASE (GN_PARAM(GNI_P_BELOW_BASE) + gn_at0)
#define GN_LD GN_PARAM(GNI_P_BELOW_LD)
#define GN_FIRST GN_PARAM(GNI_P_BELOW_FIRST)
#define GN_ALL_ROWS GN_PARAM(GNI_P_BELOW_ALL_ROWS)
#define GN_END GN_PARAM(GNI_P_BELOW_END)
#define GN_MOST 96u // columns to the right

// A row for each invocation of a team; each team has its part of the columns to the right.
#define GN_TEAM 32u
#define GN_TEAMS 4u
layout(local_size_x = 128) in;

shared GN_R gn_tile[GN_NB * GN_NB];
shared GN_R gn_right[GN_NB * GN_MOST];

void main() {
    uint me = gl_LocalInvocationIndex, team = me / GN_TEAM, row = GN_FIRST + GN_NB + GN_GROUP * GN_TEAM + me % GN_TEAM;
    uint right = GN_FIRST + GN_NB, width = GN_END - right;
    bool live = row < GN_ALL_ROWS;
    uint at = GN_BASE + row * GN_LD + GN_FIRST;
    GN_R x[GN_NB + 1u];
    GN_VECTORS(k, GN_NB) {
        uvec4 v = uvec4(0u);
        if (live) v = gn_load4(0u, (at + k) / GN_VECTOR);
        GN_PARTS(e) x[k + e] = gn_part(v, e);
    }
    // Without conditions, so that all loads are under way at once.
    GN_R u[GN_NB * GN_NB / 128u], v[GN_NB * GN_MOST / 128u];
    [[unroll]] for (uint e = 0u; e < GN_NB * GN_NB / 128u; e++) u[e] = gn_get(2u, gn_at2 + me + 128u * e);
    [[unroll]] for (uint e = 0u; e < GN_NB * GN_MOST / 128u; e++) {
        uint i = me + 128u * e;
        v[e] = gn_get(0u, GN_BASE + (GN_FIRST + i / GN_MOST) * GN_LD + min(right + i % GN_MOST, GN_END - 1u));
    }
    [[unroll]] for (uint e = 0u; e < GN_NB * GN_NB / 128u; e++) {
        uint r = (me + 128u * e) / GN_NB, c = me % GN_NB; // rows of U begin at the diagonal
        gn_tile[r * GN_NB + (c - r & (GN_NB - 1u))] = u[e];
    }
    [[unroll]] for (uint e = 0u; e < GN_NB * GN_MOST / 128u; e++) gn_right[me + 128u * e] = v[e];
    barrier();
    if (!live) return;
    for (uint s = 0u; s < GN_NB; s++) {
        GN_R pivot = gn_tile[s * GN_NB], y = pivot == GN_R(0) ? x[0] : x[0] / pivot;
        // What stands in front of the diagonal is L's, for columns that are done.
        GN_NEXT(k + 1u + s < GN_NB ? gn_tile[s * GN_NB + k + 1u] : GN_R(0), y)
    }
    if (team == 0u)
        GN_VECTORS(k, GN_NB) {
            uvec4 v;
            GN_PARTS(e) gn_set(v, e, x[k + e])
            gn_store4(0u, (at + k) / GN_VECTOR, v);
        }
    at += GN_NB;
    for (uint c = team * 8u; c < width; c += GN_TEAMS * 8u) { // a whole number of vectors, up to the rows' end
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

// Buffers: b, triangle of order up to 128. Steps are signed: an upper triangle is a lower one read backwards.
// Blocks on the diagonal are inverted, and everything else is products; an invocation has 2 x GN_TN numbers of each block
// of 32 rows.
#define GN_B_BASE (GN_PARAM(GNI_P_SOLVE_B_BASE) + gn_at0)
#define GN_B_ROW GN_PARAM(GNI_P_SOLVE_B_ROW)
#define GN_B_COLUMN GN_PARAM(GNI_P_SOLVE_B_COLUMN)
#define GN_T_BASE (GN_PARAM(GNI_P_SOLVE_T_BASE) + gn_at1)
#define GN_T_ROW GN_PARAM(GNI_P_SOLVE_T_ROW)
#define GN_T_COLUMN GN_PARAM(GNI_P_SOLVE_T_COLUMN)
#define GN_ORDER GN_PARAM(GNI_P_SOLVE_ORDER)
#define GN_COLUMNS GN_PARAM(GNI_P_SOLVE_COLUMNS)
#define GN_UNIT GN_PARAM(GNI_P_SOLVE_UNIT)
#define GN_MORE GN_PARAM(GNI_P_SOLVE_MORE)

layout(local_size_x = 128) in;

#ifdef GN_DOUBLE
#define GN_RV dvec2
#define GN_TN 2u
#define GN_AT_ONCE 2u // blocks that are inverted
#define GN_PITCH 34u
#else
#define GN_RV vec4
#define GN_TN 4u
#define GN_AT_ONCE 4u
#define GN_PITCH 36u
#endif
#define GN_C (8u * GN_TN) // columns
#define GN_BLOCKS 4u
#define GN_PER_TILE (GN_NB * GN_NB / 128u)
#define GN_PER_B (GN_NB * GN_C / 128u)

shared GN_R gn_inverse[GN_AT_ONCE][GN_NB * GN_PITCH]; // by columns
shared GN_R gn_tile[GN_NB * GN_PITCH];
shared GN_RV gn_x[GN_NB * GN_C / GN_TN];

bool gn_across() { return abs(int(GN_B_COLUMN)) <= abs(int(GN_B_ROW)); }

// Row and column of number i of a block of b, so that neighbours are neighbours in memory.
uvec2 gn_b_place(uint i) { return gn_across() ? uvec2(i / GN_C, i % GN_C) : uvec2(i % GN_NB, i / GN_NB); }

uvec2 gn_t_place(uint i) {
    return abs(int(GN_T_COLUMN)) <= abs(int(GN_T_ROW)) ? uvec2(i / GN_NB, i % GN_NB) : uvec2(i % GN_NB, i / GN_NB);
}

// Of block (p,q) of the triangle. Ones on the diagonal beyond the end.
GN_R gn_t(uint p, uint q, uvec2 at) {
    uint r = p * GN_NB + at.x, c = q * GN_NB + at.y;
    GN_R v = GN_R(0);
    if (r < GN_ORDER && c <= r) v = gn_get(1u, GN_T_BASE + r * GN_T_ROW + c * GN_T_COLUMN);
    return r == c && (GN_UNIT != 0u || r >= GN_ORDER) ? GN_R(1) : v;
}

// gn_inverse = the inverses of blocks p on
void gn_invert(uint me, uint p) {
    barrier();
    GN_R v[GN_AT_ONCE][GN_PER_TILE];
    [[unroll]] for (uint b = 0u; b < GN_AT_ONCE; b++)
        [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++) v[b][e] = gn_t(p + b, p + b, gn_t_place(me + 128u * e));
    [[unroll]] for (uint b = 0u; b < GN_AT_ONCE; b++)
        [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++) {
            // Columns begin at their diagonal.
            uvec2 at = gn_t_place(me + 128u * e);
            gn_inverse[b][at.y * GN_PITCH + (at.x - at.y & (GN_NB - 1u))] = v[b][e];
        }
    barrier();
    uint b = me / GN_NB, column = me % GN_NB;
    bool works = b < GN_AT_ONCE && (p + b) * GN_NB < GN_ORDER;
    GN_R x[GN_NB];
    if (works) {
        GN_EACH x[k] = GN_R(k == column ? 1 : 0);
        for (uint s = 0u; s < GN_NB; s++) {
            GN_R y = x[0] / gn_inverse[b][s * GN_PITCH];
            [[unroll]] for (uint k = 1u; k < GN_NB; k++) {
                GN_R t = gn_inverse[b][s * GN_PITCH + k];
                x[k - 1u] = x[k] - y * t;
            }
            x[GN_NB - 1u] = y;
        }
    }
    barrier();
    if (works) GN_EACH gn_inverse[b][column * GN_PITCH + k] = x[k];
}

#define GN_SUM(sum, op, a)                                                                         \
    [[unroll]] for (uint k = 0u; k < GN_NB; k++) {                                                 \
        GN_RV v = gn_x[k * 8u + me % 8u];                                                          \
        [[unroll]] for (uint i = 0u; i < 2u; i++) sum[i] op a[k * GN_PITCH + me / 8u * 2u + i] * v; \
    }

#define GN_TILE_KEEP                                                                               \
    [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++) {                                           \
        uvec2 at = gn_t_place(me + 128u * e);                                                      \
        gn_tile[at.y * GN_PITCH + at.x] = next[e];                                                 \
    }

#define GN_TAKE_BLOCK(p)                                                                           \
    barrier();                                                                                     \
    [[unroll]] for (uint e = 0u; e < GN_PER_B; e++) {                                              \
        uvec2 at = gn_b_place(me + 128u * e);                                                      \
        gn_x[at.x * 8u + at.y / GN_TN][at.y % GN_TN] = v[p * GN_PER_B + e];                        \
    }                                                                                              \
    barrier();                                                                                     \
    x[p][0] = gn_x[me / 8u * 16u + me % 8u];                                                       \
    x[p][1] = gn_x[me / 8u * 16u + 8u + me % 8u];

// Block p + q of b, which moves on by one.
#define GN_BELOW_BLOCK(q)                                                                          \
    if ((p + q) * GN_NB < GN_ORDER) {                                                              \
        barrier();                                                                                 \
        GN_TILE_KEEP                                                                               \
        if ((p + q + 1u) * GN_NB < GN_ORDER)                                                       \
            [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++)                                     \
                next[e] = gn_t(p + q + 1u, p, gn_t_place(me + 128u * e));                          \
        barrier();                                                                                 \
        GN_SUM(x[q], -=, gn_tile)                                                                  \
    }                                                                                              \
    x[q - 1] = x[q];

void main() {
    uint me = gl_LocalInvocationIndex, first = GN_GROUP * GN_C;
    GN_RV x[GN_BLOCKS][2];
    if (first >= GN_COLUMNS) return;
    {
        GN_R v[GN_BLOCKS * GN_PER_B];
        [[unroll]] for (uint e = 0u; e < GN_BLOCKS * GN_PER_B; e++) {
            uvec2 at = gn_b_place(me + e % GN_PER_B * 128u) + uvec2(e / GN_PER_B * GN_NB, first);
            bool there = at.x < GN_ORDER && at.y < GN_COLUMNS;
            v[e] = GN_R(0);
            if (there) v[e] = gn_get(0u, GN_B_BASE + at.x * GN_B_ROW + at.y * GN_B_COLUMN);
        }
        GN_TAKE_BLOCK(0)
        GN_TAKE_BLOCK(1)
        GN_TAKE_BLOCK(2)
        GN_TAKE_BLOCK(3)
    }
    for (uint p = 0u; p * GN_NB < GN_ORDER; p++) {
        if (p % GN_AT_ONCE == 0u) gn_invert(me, p);
        GN_R next[GN_PER_TILE];
        if (GN_MORE != 0u)
            [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++) next[e] = gn_t(p, p, gn_t_place(me + 128u * e));
        barrier();
        if (GN_MORE != 0u) GN_TILE_KEEP
        if ((p + 1u) * GN_NB < GN_ORDER)
            [[unroll]] for (uint e = 0u; e < GN_PER_TILE; e++) next[e] = gn_t(p + 1u, p, gn_t_place(me + 128u * e));
        // By the inverse, which is not good enough for ill-conditioned blocks: then once more of what is left.
        GN_RV sum[2], rest[2];
        sum[0] = sum[1] = GN_RV(0);
        rest[0] = x[0][0];
        rest[1] = x[0][1];
        uint inverse = p % GN_AT_ONCE, mine = me / 8u * 16u + me % 8u;
        for (uint turn = 0u; turn <= GN_MORE; turn++) {
            gn_x[mine] = rest[0];
            gn_x[mine + 8u] = rest[1];
            barrier();
            GN_SUM(sum, +=, gn_inverse[inverse])
            barrier();
            gn_x[mine] = sum[0];
            gn_x[mine + 8u] = sum[1];
            if (turn < GN_MORE) {
                barrier();
                rest[0] = x[0][0];
                rest[1] = x[0][1];
                GN_SUM(rest, -=, gn_tile)
                barrier();
            }
        }
        // Drivers do not write this out where it is a loop.
        GN_BELOW_BLOCK(1)
        GN_BELOW_BLOCK(2)
        GN_BELOW_BLOCK(3)
        barrier();
        [[unroll]] for (uint e = 0u; e < GN_PER_B; e++) {
            uvec2 at = gn_b_place(me + 128u * e), to = at + uvec2(p * GN_NB, first);
            if (to.x < GN_ORDER && to.y < GN_COLUMNS)
                gn_put(0u, GN_B_BASE + to.x * GN_B_ROW + to.y * GN_B_COLUMN, gn_x[at.x * 8u + at.y / GN_TN][at.y % GN_TN]);
        }
    }
}

#elif defined(GN_UPDATE) // --------------------------------------------------------------------

// Buffers: c, a, b. c -= a b, on and below the diagonal or everywhere.
#define GN_C_BASE (GN_PARAM(GNI_P_UPDATE_C_BASE) + gn_at0)
#define GN_C_ROW GN_PARAM(GNI_P_UPDATE_C_ROW)
#define GN_A_BASE (GN_PARAM(GNI_P_UPDATE_A_BASE) + gn_at1)
#define GN_A_ROW GN_PARAM(GNI_P_UPDATE_A_ROW)
#define GN_A_COLUMN GN_PARAM(GNI_P_UPDATE_A_COLUMN)
#define GN_B_BASE (GN_PARAM(GNI_P_UPDATE_B_BASE) + gn_at2)
#define GN_B_ROW GN_PARAM(GNI_P_UPDATE_B_ROW)
#define GN_B_COLUMN GN_PARAM(GNI_P_UPDATE_B_COLUMN)
#define GN_TO_M GN_PARAM(GNI_P_UPDATE_M)
#define GN_TO_N GN_PARAM(GNI_P_UPDATE_N)
#define GN_TO_K GN_PARAM(GNI_P_UPDATE_K)
#define GN_LOWER GN_PARAM(GNI_P_UPDATE_LOWER)

// A tile of GN_TILE x GN_TILE: 16 x 16 invocations, each with GN_G x GN_G groups of 4 x 4.
layout(local_size_x = 256) in;

#ifdef GN_DOUBLE
#define GN_R4 dvec4
#else
#define GN_R4 vec4
#endif
#define GN_G (uint(GN_TILE) / 64u)
#define GN_GROUPS(i) [[unroll]] for (uint i = 0u; i < GN_G; i++)
#define GN_BK (1024u / uint(GN_TILE)) // an invocation loads 4 numbers of a and of b at a time
#define GN_PITCH (uint(GN_TILE) / 4u + 1u)

#ifdef GN_DOUBLE
#define GN_TURNS 1u
#else
#define GN_TURNS 2u
#endif
shared GN_R4 gn_a[GN_TURNS][GN_BK * GN_PITCH], gn_b[GN_TURNS][GN_BK * GN_PITCH];

// A matrix with `lines` of k numbers: strides, and how it is read.
struct gn_side {
    uint base, line, step, lines;
    bool along, vectors; // along k; 16 bytes at a time
};

gn_side gn_side_of(uint base, uint line, uint step, uint lines) {
    gn_side s = gn_side(base, line, step, lines, line != 1u, false);
    uint other = s.along ? line : step, unit = s.along ? step : line, whole = s.along ? GN_TO_K : lines;
    s.vectors = unit == 1u && other % 4u == 0u && base % 4u == 0u && whole % 4u == 0u;
    return s;
}

// Line and place along k of the first of 4 numbers.
uvec2 gn_place(uint me, bool along) {
    return along ? uvec2(me / (GN_BK / 4u), me % (GN_BK / 4u) * 4u) : uvec2(me % (uint(GN_TILE) / 4u) * 4u, me / (uint(GN_TILE) / 4u));
}

GN_R4 gn_read(uint k, gn_side s, uint me, uint line0, uint k0) {
    uvec2 at = gn_place(me, s.along) + uvec2(line0, k0);
    GN_R4 v = GN_R4(0);
    if (s.vectors) {
        if (at.x < s.lines && at.y < GN_TO_K) {
            uint i = (s.base + at.x * s.line + at.y * s.step) / GN_VECTOR;
            uvec4 w = gn_load4(k, i);
#ifdef GN_DOUBLE
            uvec4 u = gn_load4(k, i + 1u);
            v = GN_R4(gn_part(w, 0u), gn_part(w, 1u), gn_part(u, 0u), gn_part(u, 1u));
#else
            v = uintBitsToFloat(w);
#endif
        }
        return v;
    }
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        uvec2 p = at + (s.along ? uvec2(0u, e) : uvec2(e, 0u));
        if (p.x < s.lines && p.y < GN_TO_K) v[e] = gn_get(k, s.base + p.x * s.line + p.y * s.step);
    }
    return v;
}

#define GN_KEEP(to, s, v)                                                                          \
    {                                                                                              \
        uvec2 at = gn_place(me, s.along);                                                          \
        if (s.along) {                                                                             \
            [[unroll]] for (uint e = 0u; e < 4u; e++) to[(at.y + e) * GN_PITCH + at.x / 4u][at.x & 3u] = v[e]; \
        } else {                                                                                   \
            to[at.y * GN_PITCH + at.x / 4u] = v;                                                   \
        }                                                                                          \
    }

void gn_take_off(uint row, uint column, GN_R4 v, bool vectors) {
    uint at = GN_C_BASE + row * GN_C_ROW + column;
    if (row >= GN_TO_M) return;
    if (vectors && column + 4u <= GN_TO_N) {
#ifdef GN_DOUBLE
        uvec4 w = gn_load4(0u, at / 2u), u = gn_load4(0u, at / 2u + 1u);
        dvec4 c = dvec4(gn_part(w, 0u), gn_part(w, 1u), gn_part(u, 0u), gn_part(u, 1u)) - v;
        gn_store4(0u, at / 2u, uvec4(unpackDouble2x32(c.x), unpackDouble2x32(c.y)));
        gn_store4(0u, at / 2u + 1u, uvec4(unpackDouble2x32(c.z), unpackDouble2x32(c.w)));
#else
        gn_store4(0u, at / 4u, floatBitsToUint(uintBitsToFloat(gn_load4(0u, at / 4u)) - v));
#endif
        return;
    }
    [[unroll]] for (uint e = 0u; e < 4u; e++)
        if (column + e < GN_TO_N) gn_put(0u, at + e, gn_get(0u, at + e) - v[e]);
}

void main() {
    uint me = gl_LocalInvocationIndex, tile = GN_GROUP, across = (GN_TO_N + uint(GN_TILE) - 1u) / uint(GN_TILE);
    uint i0 = tile / across, j0 = tile % across;
    if (GN_LOWER != 0u) {
        i0 = uint(sqrt(2.0 * float(tile) + 0.25) - 0.5);
        while (i0 * (i0 + 1u) / 2u > tile) i0--;
        while ((i0 + 1u) * (i0 + 2u) / 2u <= tile) i0++;
        j0 = tile - i0 * (i0 + 1u) / 2u;
    }
    i0 *= uint(GN_TILE);
    j0 *= uint(GN_TILE);
    if (i0 >= GN_TO_M || j0 >= GN_TO_N) return;
    gn_side a = gn_side_of(GN_A_BASE, GN_A_ROW, GN_A_COLUMN, GN_TO_M), b = gn_side_of(GN_B_BASE, GN_B_COLUMN, GN_B_ROW, GN_TO_N);
    GN_R4 sum[GN_G][4][GN_G];
    GN_GROUPS(g) [[unroll]] for (uint i = 0u; i < 4u; i++) GN_GROUPS(h) sum[g][i][h] = GN_R4(0);
    GN_R4 next_a = gn_read(1u, a, me, i0, 0u), next_b = gn_read(2u, b, me, j0, 0u);
    uint y = me / 16u, x = me % 16u, turn = 0u;
    for (uint k0 = 0u; k0 < GN_TO_K; k0 += GN_BK, turn = GN_TURNS - 1u - turn) {
        if (GN_TURNS == 1u) barrier();
        GN_KEEP(gn_a[turn], a, next_a)
        GN_KEEP(gn_b[turn], b, next_b)
        barrier();
        if (k0 + GN_BK < GN_TO_K) {
            next_a = gn_read(1u, a, me, i0, k0 + GN_BK);
            next_b = gn_read(2u, b, me, j0, k0 + GN_BK);
        }
        [[unroll]] for (uint k = 0u; k < GN_BK; k++) {
            GN_R4 u[GN_G], v[GN_G];
            GN_GROUPS(g) u[g] = gn_a[turn][k * GN_PITCH + y + g * 16u];
            GN_GROUPS(h) v[h] = gn_b[turn][k * GN_PITCH + x + h * 16u];
            GN_GROUPS(g) [[unroll]] for (uint i = 0u; i < 4u; i++) GN_GROUPS(h) sum[g][i][h] += u[g][i] * v[h];
        }
    }
    bool vectors = GN_C_BASE % 4u == 0u && GN_C_ROW % 4u == 0u;
    GN_GROUPS(g) [[unroll]] for (uint i = 0u; i < 4u; i++) GN_GROUPS(h)
        gn_take_off(i0 + (y + g * 16u) * 4u + i, j0 + (x + h * 16u) * 4u, sum[g][i][h], vectors);
}

#else // GN_ROOT --------------------------------------------------------------------------------

// Buffers: matrix, state. Of 4 columns at a time the block on the diagonal is inverted by one invocation, and
// what is below becomes a product. An invocation of 16 x 16 has a block of 4 x 4 in each quarter but the upper right.
#define GN_BASE (GN_PARAM(GNI_P_ROOT_BASE) + gn_at0)
#define GN_LD GN_PARAM(GNI_P_ROOT_LD)
#define GN_ORDER GN_PARAM(GNI_P_ROOT_ORDER)
#define GN_FIRST GN_PARAM(GNI_P_ROOT_FIRST)
#define GN_INFO (GN_PARAM(GNI_P_ROOT_INFO) + gn_at1)

layout(local_size_x = 256) in;

#ifdef GN_DOUBLE
#define GN_R2 dvec2
#define GN_R3 dvec3
#define GN_R4 dvec4
#else
#define GN_R2 vec2
#define GN_R3 vec3
#define GN_R4 vec4
#endif
#define GN_FOUR(i) [[unroll]] for (uint i = 0u; i < 4u; i++)

shared GN_R4 gn_line[4u][GN_NB];  // 4 columns of the result: row 4 i + r is [r][i], and neighbours are in different banks
shared GN_R4 gn_over[4];          // the block's inverse
shared uint gn_failed;

GN_R gn_rsqrt(GN_R d) {
#ifdef GN_DOUBLE
    // d = m 4^(h - 512), m from 1 to 4: the root of a float, and a step of third order; a division and a root take three times as long.
    uvec2 w = unpackDouble2x32(d);
    if (w.y - 0x00100000u >= 0x7fe00000u) return GN_R(1) / sqrt(d); // not positive, subnormal or no number
    uint h = (w.y >> 20) + 1u >> 1;
    double m = packDouble2x32(uvec2(w.x, w.y + (1024u - 2u * h << 20)));
    double y = double(inversesqrt(float(m))), e = fma(-(m * y), y, 1.0lf);
    y += y * e * fma(0.375lf, e, 0.5lf);
    return y * packDouble2x32(uvec2(0u, 1535u - h << 20));
#else
    // One step of Newton's, for devices that are content with less than float32.
    float scale = d < 1e-30 ? 18446744073709551616.0 : 1.0, e = d * scale, r = inversesqrt(e);
    r += 0.5 * r * (1.0 - e * r * r);
    return d < 1e-30 ? r * 4294967296.0 : r;
#endif
}

// Block (i,j) of 4 x 4 from memory: its lower part on the diagonal, with ones beyond the end.
void gn_block_load(out GN_R4 x[4], uint i, uint j) {
    GN_FOUR(r) GN_FOUR(c) {
        uint row = 4u * i + r, column = 4u * j + c;
        x[r][c] = GN_R(row == column && row >= GN_ORDER ? 1 : 0);
        if (row < GN_ORDER && column <= row) x[r][c] = gn_get(0u, GN_BASE + row * GN_LD + column);
    }
}

void gn_block_store(GN_R4 x[4], uint i, uint j) {
    GN_FOUR(r) GN_FOUR(c) {
        uint row = 4u * i + r, column = 4u * j + c;
        if (row < GN_ORDER && column < GN_ORDER) gn_put(0u, GN_BASE + row * GN_LD + column, column <= row ? x[r][c] : GN_R(0));
    }
}

// 1 / sqrt(rest), where that is a number.
GN_R gn_column_root(GN_R rest, uint column) {
    if (!(rest > GN_R(0)) && gn_failed == 0u) {
        gn_failed = 1u;
        if (gn_load(1u, GN_INFO) == 0u) gn_store(1u, GN_INFO, GN_FIRST + column + 1u);
    }
    return isinf(rest) ? GN_R(0) : gn_rsqrt(rest);
}

GN_R gn_root_of(GN_R rest, GN_R over) { return isinf(rest) ? rest : rest * over; }

// The block on the diagonal, and its inverse into gn_over: rows 0, 1, 2 and 3.
void gn_block_root(inout GN_R4 x[4], uint j) {
    GN_R o0 = gn_column_root(x[0].x, 4u * j);
    GN_R l10 = x[1].x * o0, l20 = x[2].x * o0, l30 = x[3].x * o0;
    GN_R d1 = x[1].y - l10 * l10, o1 = gn_column_root(d1, 4u * j + 1u);
    GN_R l21 = (x[2].y - l20 * l10) * o1, l31 = (x[3].y - l30 * l10) * o1;
    GN_R d2 = x[2].z - l20 * l20 - l21 * l21, o2 = gn_column_root(d2, 4u * j + 2u);
    GN_R l32 = (x[3].z - l30 * l20 - l31 * l21) * o2;
    GN_R d3 = x[3].w - l30 * l30 - l31 * l31 - l32 * l32, o3 = gn_column_root(d3, 4u * j + 3u);
    GN_R i10 = -l10 * o0 * o1, i21 = -l21 * o1 * o2, i32 = -l32 * o2 * o3;
    GN_R i20 = -(l20 * o0 + l21 * i10) * o2, i31 = -(l31 * o1 + l32 * i21) * o3;
    gn_over[0] = GN_R4(o0, 0, 0, 0);
    gn_over[1] = GN_R4(i10, o1, 0, 0);
    gn_over[2] = GN_R4(i20, i21, o2, 0);
    gn_over[3] = GN_R4(-(l30 * o0 + l31 * i10 + l32 * i20) * o3, i31, i32, o3);
    x[0].x = gn_root_of(x[0].x, o0);
    x[1].xy = GN_R2(l10, gn_root_of(d1, o1));
    x[2].xyz = GN_R3(l20, l21, gn_root_of(d2, o2));
    x[3] = GN_R4(l30, l31, l32, gn_root_of(d3, o3));
}

// Block (i,j) times the transposed inverse, also into gn_line.
void gn_block_below(inout GN_R4 x[4], uint i) {
    GN_R4 o1 = gn_over[1], o2 = gn_over[2], o3 = gn_over[3];
    GN_R o0 = gn_over[0].x;
    GN_FOUR(r) {
        GN_R4 v = x[r];
        v = GN_R4(v.x * o0, v.x * o1.x + v.y * o1.y, v.x * o2.x + v.y * o2.y + v.z * o2.z,
                  v.x * o3.x + v.y * o3.y + v.z * o3.z + v.w * o3.w);
        x[r] = v;
        gn_line[r][i] = v;
    }
}

void gn_block_subtract(inout GN_R4 x[4], uint i, uint j) {
    GN_R4 v0 = gn_line[0][j], v1 = gn_line[1][j], v2 = gn_line[2][j], v3 = gn_line[3][j];
    GN_FOUR(r) {
        GN_R4 u = gn_line[r][i];
        x[r] -= GN_R4(dot(u, v0), dot(u, v1), dot(u, v2), dot(u, v3));
    }
}

void main() {
    uint me = gl_LocalInvocationIndex, i = me / 16u, j = me % 16u, count = (GN_ORDER + 3u) / 4u;
    GN_R4 x[4], y[4], z[4]; // upper left, lower left, lower right
    if (me == 0u) gn_failed = 0u;
    gn_block_load(x, i, j);
    gn_block_load(y, i + 16u, j);
    gn_block_load(z, i + 16u, j + 16u);
    barrier();
    for (uint s = 0u; s < count; s++) {
        bool right = s >= 16u;
        if (right ? i == s - 16u && j == i : i == s && j == i) {
            if (right) gn_block_root(z, s);
            else gn_block_root(x, s);
        }
        barrier();
        if (!right && j == s) {
            if (i > s) gn_block_below(x, i);
            gn_block_below(y, i + 16u);
        }
        if (right && j == s - 16u && i > j) gn_block_below(z, i + 16u);
        barrier();
        if (!right && j > s) {
            if (i >= j) gn_block_subtract(x, i, j);
            gn_block_subtract(y, i + 16u, j);
        }
        if (i >= j && j + 16u > s) gn_block_subtract(z, i + 16u, j + 16u);
    }
    gn_block_store(x, i, j);
    gn_block_store(y, i + 16u, j);
    gn_block_store(z, i + 16u, j + 16u);
    GN_FOUR(r) x[r] = GN_R4(0);
    gn_block_store(x, i, j + 16u); // what is above
}
#endif
