#version 450
// Attention on matrix units (gni_attend_job), and its gradients from the rows' logarithms of sums: the scores of a tile of
// queries by a tile of keys stay in registers.
//
//! variant attend_half --env=vulkan1.3 -DGN_STEP=0
//! variant attend_half_queries --env=vulkan1.3 -DGN_STEP=1
//! variant attend_half_keys --env=vulkan1.3 -DGN_STEP=2
//! variant attend_bfloat --env=vulkan1.3 --bfloat16 -DGN_STEP=0
//! variant attend_bfloat_queries --env=vulkan1.3 --bfloat16 -DGN_STEP=1
//! variant attend_bfloat_keys --env=vulkan1.3 --bfloat16 -DGN_STEP=2
//! no-bindings
//
// GN_STEP: gni_attend_step. A subgroup has GN_BLOCKS times 16 queries, and goes through all keys with the others of its workgroup;
// for the gradients of keys and values it has keys, and goes through queries. Which elements of a matrix an invocation has is not
// said: what is done to all elements alike is done in registers, what is joined over a row goes through shared memory, the
// maximum only where it grows by more than GN_SLACK. Scores become an operand in registers, too, where both kinds of matrices
// turn out to have their elements in the same places. The caller asks for that once, and whether these places are the ones
// that gn_place_of has: a kernel that knows is faster, and joins rows in registers.
//
// Two tiles lie in shared memory: pieces of the next are fetched and put there while one is at work, so that registers hold few of
// them. Tiles that hide some scores have a loop of their own: where a branch in the loop may change sums, a driver copies all
// of them in every turn.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define GN_BUFFERS 9
#if GN_STEP == 0
#define GN_READONLY 0x107
#else
#define GN_READONLY 0x177
#endif
#include "gn.glsl"
#include "memory.glsl"

#define GN_SUBGROUP 32u
#define GN_SUBGROUPS 4
#define GN_THREADS (GN_SUBGROUPS * 32)
layout(local_size_x = GN_THREADS) in;

layout(constant_id = GNI_S_ATTEND_D) const uint GN_D = 64u;
layout(constant_id = GNI_S_ATTEND_E) const uint GN_E = 64u;
layout(constant_id = GNI_S_ATTEND_FLAGS) const uint GN_FLAGS = 0u;
layout(constant_id = GNI_S_ATTEND_BLOCKS) const uint GN_BLOCKS = 2u;
layout(constant_id = GNI_S_ATTEND_KEYS) const uint GN_KEYS = 64u;
#define GN_KNOWN ((GN_FLAGS & GNI_F_ATTEND_KNOWN) != 0u)
#define GN_CAUSAL ((GN_FLAGS & GNI_F_ATTEND_CAUSAL) != 0u)
#define GN_HAS_LSE ((GN_FLAGS & GNI_F_ATTEND_LSE) != 0u)
#define GN_DTYPE ((GN_FLAGS & GNI_F_ATTEND_BF16) != 0u ? GN_T_BF16 : GN_T_F16)

#define GN_N GN_PARAM(GNI_P_ATTEND_N)
#define GN_M GN_PARAM(GNI_P_ATTEND_M)
#include "attend.glsl"

// In units of 16, and in groups of 8 with one more to skew rows by.
const uint GN_DU = (GN_D + 15u) / 16u, GN_EU = (GN_E + 15u) / 16u, GN_JU = GN_KEYS / 16u;
const uint GN_DG = 2u * GN_DU, GN_EG = 2u * GN_EU;
const uint GN_DP = GN_DG + 1u, GN_EP = GN_EG + 1u;
const uint GN_V0 = GN_KEYS * GN_DP, GN_TILE = GN_V0 + GN_KEYS * GN_EP, GN_OWN0 = 2u * GN_TILE;
const uint GN_OWN = 144u; // what a subgroup has for itself
// Groups of a tile for an invocation: all at once, and in each of GN_JU pieces.
const uint GN_KL = (GN_KEYS * GN_DG + GN_THREADS - 1u) / GN_THREADS, GN_VL = (GN_KEYS * GN_EG + GN_THREADS - 1u) / GN_THREADS;
const uint GN_KJ = (GN_KL + GN_JU - 1u) / GN_JU, GN_VJ = (GN_VL + GN_JU - 1u) / GN_JU;
#if GN_STEP == 2
const uint GN_STAT0 = GN_OWN0 + GN_SUBGROUPS * GN_OWN; // of the queries of a tile
shared uvec4 gn_tile[GN_STAT0 + GN_KEYS];
#else
shared uvec4 gn_tile[GN_OWN0 + GN_SUBGROUPS * GN_OWN];
#endif

#define GN_UNIT_A coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>
#define GN_UNIT_B coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB>
#define GN_UNIT_C coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>
#define GN_ROWS gl_CooperativeMatrixLayoutRowMajor
#define GN_COLUMNS gl_CooperativeMatrixLayoutColumnMajor
#define GN_LOW -3.0e38
#define GN_SLACK 8.0 // of the exponent of 2
// A driver of bfloat16 cuts weights and their gradients off: .0027 of their sum on average, which they are larger by before. As a
// power of 2, and in full:
#define GN_LIFT ((GN_FLAGS & GNI_F_ATTEND_CUTS) != 0u ? 0.0039188 : 0.0)
#define GN_LIFTED ((GN_FLAGS & GNI_F_ATTEND_CUTS) != 0u ? 1.00272 : 1.0)
// Places as a driver was seen to have them: bit 0 of an element's number is a column, bit 1 is 8 columns, bit 2 is 8 rows. An
// element of the same row, and of the same column, that stands for it:
#define GN_IN_ROW(e) (GN_KNOWN ? (e) & 4 : (e))
#define GN_IN_COLUMN(e) (GN_KNOWN ? (e) & 3 : (e))
uint gn_place_of(uint lane, int e) { return lane / 4u * 16u + lane % 4u * 2u + uint((e & 1) + (e & 2) * 4 + (e & 4) * 32); }
#define GN_PLACE(e) (GN_KNOWN ? gn_place_of(lane, e) : uint(place[e]))

// A logarithm of a sum as it is stored, for powers of 2 that are lifted.
float gn_lse_of(uint stored) { return fma(1.4426950408889634, uintBitsToFloat(stored), -GN_LIFT); }

#if GN_STEP == 2
#define GN_OF_QUERY(place) ((place) % 16u)
#define GN_OF_KEY(place) ((place) / 16u)
#else
#define GN_OF_QUERY(place) ((place) / 16u)
#define GN_OF_KEY(place) ((place) % 16u)
#endif

// Whether the score at a place of a matrix does not count.
bool gn_hidden(uint place, uint row, uint column, uint others) {
    uint r = row + place / 16u, c = column + place % 16u;
    return GN_STEP == 2 ? r > c : c >= others || (GN_CAUSAL && c > r);
}

uvec4 gn_fetch_group(GN_HANDLE h, uint base, uint step, uint row, uint rows, uint c, uint groups) {
    uvec4 v = GN_AT4(h, base + min(row, rows - 1u) * step + min(c, groups - 1u));
    return row < rows && c < groups ? v : uvec4(0u);
}

// 8 elements from floats, rounded: a driver of bfloat16 cuts off.
uvec4 gn_eight(vec4 v, vec4 w) {
    uvec4 a = gn_narrow(floatBitsToUint(v), GN_DTYPE), b = gn_narrow(floatBitsToUint(w), GN_DTYPE);
    return uvec4(a.x | (a.y << 16), a.z | (a.w << 16), b.x | (b.y << 16), b.z | (b.w << 16));
}

// What a subgroup has rows of all the time, and what it goes through with the others: x and t are GN_D wide, z and u GN_E.
#if GN_STEP == 2
#define GN_X 1u
#define GN_Z 2u
#define GN_T 0u
#define GN_U 5u
#define GN_X_PARAM GNI_P_ATTEND_K
#define GN_Z_PARAM GNI_P_ATTEND_V
#define GN_T_PARAM GNI_P_ATTEND_Q
#define GN_U_PARAM GNI_P_ATTEND_GY
#else
#define GN_X 0u
#define GN_Z 5u
#define GN_T 1u
#define GN_U 2u
#define GN_X_PARAM GNI_P_ATTEND_Q
#define GN_Z_PARAM GNI_P_ATTEND_GY
#define GN_T_PARAM GNI_P_ATTEND_K
#define GN_U_PARAM GNI_P_ATTEND_V
#endif
#define GN_BASE(p, batch, head) (GN_PARAM(p) + (batch) * GN_PARAM((p) + 1) + (head) * GN_PARAM((p) + 2))

// Group i of an invocation's, of `count` that each has: from the next tile's rows, and into its place. Rows behind the last repeat
// that: what comes of them is hidden, or has no weight.
#define GN_FETCH(to, i, count, k, base, step, groups, width)                                                           \
    if ((count) * GN_THREADS == GN_KEYS * (groups) || (i) * GN_THREADS + me < GN_KEYS * (groups)) {                    \
        uint p = (i) * GN_THREADS + me, c = p % (groups);                                                              \
        to = GN_AT4(GN_OPEN(k), base + min(next + p / (groups), others - 1u) * step + min(c, (width) / 8u - 1u));      \
        if ((width) % 16u != 0u && c >= (width) / 8u) to = uvec4(0u);                                                  \
    }
#define GN_KEEP(from, i, count, first, groups, pitch)                                                                  \
    if ((count) * GN_THREADS == GN_KEYS * (groups) || (i) * GN_THREADS + me < GN_KEYS * (groups)) {                    \
        uint p = (i) * GN_THREADS + me;                                                                                \
        gn_tile[(first) + p / (groups) * (pitch) + p % (groups)] = from;                                               \
    }
#define GN_FETCH_T(to, i, count) GN_FETCH(to, i, count, GN_T, t_base, t_step, GN_DG, GN_D)
#define GN_FETCH_U(to, i, count) GN_FETCH(to, i, count, GN_U, u_base, u_step, GN_EG, GN_E)
#define GN_KEEP_T(from, i, count, tile) GN_KEEP(from, i, count, tile, GN_DG, GN_DP)
#define GN_KEEP_U(from, i, count, tile) GN_KEEP(from, i, count, (tile) + GN_V0, GN_EG, GN_EP)
// Of the tile's queries: their logarithms of sums, so that those behind the last have no weight, and what is taken off.
#define GN_FETCH_STAT                                                                                                  \
    if (me < GN_KEYS) {                                                                                                \
        uint at = (batch * gl_NumWorkGroups.y * heads + next_head) * others + min(next + me, others - 1u);             \
        next_lse = gn_lse_of(GN_AT(GN_OPEN(4u), GN_PARAM(GNI_P_ATTEND_LSE) + at));                                     \
        next_dot = uintBitsToFloat(GN_AT(GN_OPEN(6u), GN_PARAM(GNI_P_ATTEND_DOT) + at));                               \
        if (next + me >= others) next_lse = -GN_LOW;                                                                   \
    }
#define GN_KEEP_STAT(tile)                                                                                             \
    if (me < GN_KEYS) {                                                                                                \
        uint at = GN_STAT0 + ((tile) == 0u ? 0u : GN_KEYS / 2u) + me / 4u;                                             \
        gn_tile[at][me % 4u] = floatBitsToUint(next_lse);                                                              \
        gn_tile[at + GN_KEYS / 4u][me % 4u] = floatBitsToUint(next_dot);                                               \
    }

// Columns 64 c to 64 c + 63 of 16 rows of one of its own, to the subgroup's place in shared memory.
void gn_bring(GN_HANDLE h, uint base, uint step, uint first, uint rows, uint own, uint lane, uint c, uint wide) {
    [[unroll]] for (uint p = lane; p < 128u; p += GN_SUBGROUP)
        gn_tile[own + p / 8u * 9u + p % 8u] = gn_fetch_group(h, base, step, first + p / 8u, rows, 8u * c + p % 8u, wide / 8u);
    subgroupBarrier();
}

// 16 rows of 16 results, columns 16 j on.
void gn_put(GN_UNIT_C x, uint k, uint base, uint step, uint first, uint rows, uint j, uint wide, uint own, uint lane) {
    coopMatStore(x, gn_tile, own, 5u, GN_ROWS);
    subgroupBarrier();
    uint r = lane / 2u, at = own + r * 5u + lane % 2u * 2u, c = 2u * j + lane % 2u;
    if (first + r < rows && c < wide / 8u)
        GN_PUT4(GN_OPEN(k), base + (first + r) * step + c,
                gn_eight(uintBitsToFloat(gn_tile[at]), uintBitsToFloat(gn_tile[at + 1u])));
    subgroupBarrier();
}

// x as the first operand of a product.
#define GN_AS_A(a, x)                                                                                                  \
    if (same) {                                                                                                        \
        [[unroll]] for (int e = 0; e < place.length(); e++) a[e] = float16_t(x[e]);                                    \
    } else {                                                                                                           \
        coopMatStore(x, gn_tile, own, 5u, GN_ROWS);                                                                    \
        subgroupBarrier();                                                                                             \
        uint at = own + lane / 2u * 5u + lane % 2u * 2u;                                                               \
        gn_tile[own + 80u + lane] = gn_eight(uintBitsToFloat(gn_tile[at]), uintBitsToFloat(gn_tile[at + 1u]));         \
        subgroupBarrier();                                                                                             \
        coopMatLoad(a, gn_tile, own + 80u, 2u, GN_ROWS);                                                               \
    }

// The maximum or the sum of each row of x, in all of the row's elements.
vec4 gn_join4(vec4 a, vec4 b, bool add) { return add ? a + b : max(a, b); }
GN_UNIT_C gn_over_row(GN_UNIT_C x, uint own, uint lane, bool add) {
    GN_UNIT_C y;
    if (GN_KNOWN) {
        y = x;
        [[unroll]] for (int e = 0; e < 8; e += 4)
            [[unroll]] for (uint k = 1u; k < 4u; k *= 2u) {
                float other = subgroupShuffleXor(y[e], k);
                y[e] = add ? y[e] + other : max(y[e], other);
            }
        return y;
    }
    coopMatStore(x, gn_tile, own, 5u, GN_ROWS);
    subgroupBarrier();
    if (lane < 16u) {
        uint at = own + lane * 5u;
        vec4 v = gn_join4(gn_join4(uintBitsToFloat(gn_tile[at]), uintBitsToFloat(gn_tile[at + 1u]), add),
                          gn_join4(uintBitsToFloat(gn_tile[at + 2u]), uintBitsToFloat(gn_tile[at + 3u]), add), add);
        float r = add ? (v.x + v.y) + (v.z + v.w) : max(max(v.x, v.y), max(v.z, v.w));
        gn_tile[own + 80u + lane / 4u][lane % 4u] = floatBitsToUint(r);
    }
    subgroupBarrier();
    coopMatLoad(y, gn_tile, own + 80u, 0u, GN_COLUMNS);
    subgroupBarrier();
    return y;
}

// The score x at a place of a matrix, as a power of 2 and masked.
#define GN_MASK(x, place, row, column)                                                                                 \
    {                                                                                                                  \
        uint r = (row) + (place) / 16u, c = (column) + (place) % 16u;                                                  \
        x = gn_masked(x, scale, mask0 + (GN_STEP == 2 ? gn_mask_at(c, r, true) : gn_mask_at(r, c, edge)));             \
    }

// 1, or 0 where dropout takes the weight away, of a matrix of scores.
#define GN_STAYING(f, head, query, key)                                                                                \
    if (GN_KNOWN) {                                                                                                    \
        [[unroll]] for (int e = 0; e < 2; e++) {                                                                       \
            uint p = gn_place_of(lane, e);                                                                             \
            uvec4 drawn = gn_drawn(head, query, key, GN_OF_QUERY(p), GN_OF_KEY(p));                                    \
            [[unroll]] for (int of = 0; of < 4; of++)                                                                  \
                f[e + 2 * of] = gn_stays(drawn[GN_STEP == 2 ? of / 2 + of % 2 * 2 : of]) ? 1.0 : 0.0;                  \
        }                                                                                                              \
    } else                                                                                                             \
        [[unroll]] for (int e = 0; e < place.length(); e++) {                                                          \
            uint p = uint(place[e]), q = GN_OF_QUERY(p), k = GN_OF_KEY(p);                                             \
            f[e] = gn_stays(gn_drawn(head, query, key, q % 8u, k % 8u)[q / 8u * 2u + k / 8u]) ? 1.0 : 0.0;             \
        }

void main() {
    uint me = gl_LocalInvocationIndex, lane = me % GN_SUBGROUP, unit = me / GN_SUBGROUP;
    uint head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z;
    uint tile = GN_CAUSAL && GN_STEP != 2 ? gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x : gl_WorkGroupID.x;
    uint tile0 = tile * GN_SUBGROUPS * GN_BLOCKS * 16u, row0 = tile0 + unit * GN_BLOCKS * 16u, own = GN_OWN0 + unit * GN_OWN;
    const uint together = GN_SUBGROUPS * GN_BLOCKS * 16u; // rows
    // Tiles begin at rows from `from` to before `end`, and from `turn` on, or before it, some scores may be hidden.
#if GN_STEP == 2 // keys, which queries from the first of them on see
    uint rows = GN_M, others = GN_N, heads = GN_PARAM(GNI_P_ATTEND_SHARE), head0 = head * heads, end = others;
    uint from = GN_CAUSAL ? min(tile0, others) / GN_KEYS * GN_KEYS : 0u;
    uint turn = GN_CAUSAL ? min(others, (tile0 + together + GN_KEYS - 2u) / GN_KEYS * GN_KEYS) : 0u;
#else
    uint rows = GN_N, others = GN_M, head0 = head / GN_PARAM(GNI_P_ATTEND_SHARE), from = 0u;
    uint end = GN_CAUSAL ? min(others, tile0 + together) : others;
    uint turn = (GN_CAUSAL ? min(others, tile0 + 1u) : others) / GN_KEYS * GN_KEYS;
#endif
    uint t_step = GN_PARAM(GN_T_PARAM + 3), u_step = GN_PARAM(GN_U_PARAM + 3);
    float scale = GN_PARAM_F(GNI_P_ATTEND_SCALE), factor = GN_MASKED ? 1.0 : scale; // of scores as they are, and once masked
    uint mask0 = GN_MASKED && GN_STEP != 2 ? gn_mask_of(batch, head) : 0u;

    uint next = from, next_head = head0, t_base = GN_BASE(GN_T_PARAM, batch, head0), u_base = GN_BASE(GN_U_PARAM, batch, head0);
    float next_lse = 0.0, next_dot = 0.0;
    if (from < end) {
        uvec4 next_t[GN_KL], next_u[GN_VL];
        [[unroll]] for (uint i = 0u; i < GN_KL; i++) GN_FETCH_T(next_t[i], i, GN_KL)
        [[unroll]] for (uint i = 0u; i < GN_VL; i++) GN_FETCH_U(next_u[i], i, GN_VL)
        [[unroll]] for (uint i = 0u; i < GN_KL; i++) GN_KEEP_T(next_t[i], i, GN_KL, 0u)
        [[unroll]] for (uint i = 0u; i < GN_VL; i++) GN_KEEP_U(next_u[i], i, GN_VL, 0u)
#if GN_STEP == 2
        GN_FETCH_STAT
        GN_KEEP_STAT(0u)
#endif
    }
    GN_UNIT_A x[GN_BLOCKS][GN_DU];
#if GN_STEP != 0
    GN_UNIT_A z[GN_BLOCKS][GN_EU];
#endif
    {
        uint base = GN_BASE(GN_X_PARAM, batch, head), step = GN_PARAM(GN_X_PARAM + 3);
        [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
            [[unroll]] for (uint k = 0u; k < GN_DU; k++) {
                if (k % 4u == 0u) gn_bring(GN_OPEN(GN_X), base, step, row0 + 16u * i, rows, own, lane, k / 4u, GN_D);
                coopMatLoad(x[i][k], gn_tile, own + k % 4u * 2u, 9u, GN_ROWS);
                if (k % 4u == 3u || k == GN_DU - 1u) subgroupBarrier();
            }
        }
    }
#if GN_STEP != 0
    {
        uint base = GN_BASE(GN_Z_PARAM, batch, head), step = GN_PARAM(GN_Z_PARAM + 3);
        [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
            [[unroll]] for (uint k = 0u; k < GN_EU; k++) {
                if (k % 4u == 0u) gn_bring(GN_OPEN(GN_Z), base, step, row0 + 16u * i, rows, own, lane, k / 4u, GN_E);
                coopMatLoad(z[i][k], gn_tile, own + k % 4u * 2u, 9u, GN_ROWS);
                if (k % 4u == 3u || k == GN_EU - 1u) subgroupBarrier();
            }
        }
    }
#endif
    // Where an element is: 16 times its row plus its column.
    GN_UNIT_C place;
    bool same = true, known = true;
    if (!GN_KNOWN) {
        for (uint p = lane; p < 64u; p += GN_SUBGROUP)
            gn_tile[own + p] = floatBitsToUint(vec4(4u * p) + vec4(0.0, 1.0, 2.0, 3.0));
        for (uint p = lane; p < 32u; p += GN_SUBGROUP)
            gn_tile[own + 64u + p] = gn_eight(vec4(8u * p) + vec4(0.0, 1.0, 2.0, 3.0), vec4(8u * p) + vec4(4.0, 5.0, 6.0, 7.0));
        subgroupBarrier();
        coopMatLoad(place, gn_tile, own, 4u, GN_ROWS);
        GN_UNIT_A there;
        coopMatLoad(there, gn_tile, own + 64u, 2u, GN_ROWS);
        if (there.length() != place.length()) same = false;
        else
            [[unroll]] for (int e = 0; e < place.length(); e++) {
                same = same && float(there[e]) == place[e];
                known = known && uint(place[e]) == gn_place_of(lane, e);
            }
        same = subgroupAll(same);
        known = subgroupAll(known) && place.length() == 8;
        if ((GN_FLAGS & GNI_F_ATTEND_SAME) != 0u) same = true;
        subgroupBarrier();
    }
#if GN_STEP == 0
    if ((GN_FLAGS & GNI_F_ATTEND_ASKS) != 0u) {
        GN_UNIT_A cut;
        cut[0] = float16_t(float(GN_N) + 0.00775);
        uint found = GNI_F_ATTEND_SAME | (known ? GNI_F_ATTEND_KNOWN : 0u) | (float(cut[0]) < 1.004 ? GNI_F_ATTEND_CUTS : 0u);
        if (me == 0u) GN_PUT(GN_OPEN(4u), GN_PARAM(GNI_P_ATTEND_LSE), GNI_F_ATTEND_ASKS | (same ? found : 0u));
        return;
    }
#endif
#if GN_STEP != 2
    uint row_of_all = (batch * gl_NumWorkGroups.y + head) * rows, lse0 = GN_PARAM(GNI_P_ATTEND_LSE) + row_of_all;
#endif

#if GN_STEP == 0
    GN_UNIT_C y[GN_BLOCKS][GN_EU], most[GN_BLOCKS], sum[GN_BLOCKS];
    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
        [[unroll]] for (uint e = 0u; e < GN_EU; e++) y[i][e] = GN_UNIT_C(0.0);
        most[i] = GN_UNIT_C(GN_LOW);
        sum[i] = GN_UNIT_C(0.0);
    }
#else
    GN_UNIT_C dx[GN_BLOCKS][GN_DU];
    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
        [[unroll]] for (uint k = 0u; k < GN_DU; k++) dx[i][k] = GN_UNIT_C(0.0);
#if GN_STEP == 2
    GN_UNIT_C dz[GN_BLOCKS][GN_EU];
    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
        [[unroll]] for (uint k = 0u; k < GN_EU; k++) dz[i][k] = GN_UNIT_C(0.0);
#else
    GN_UNIT_C lse[GN_BLOCKS], dot_[GN_BLOCKS];
    if (GN_KNOWN)
        [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
            [[unroll]] for (int e = 0; e < 8; e += 4) {
                uint r = min(row0 + 16u * i + (e != 0 ? 8u : 0u) + lane / 4u, rows - 1u);
                lse[i][e] = gn_lse_of(GN_AT(GN_OPEN(4u), lse0 + r));
                dot_[i][e] = -uintBitsToFloat(GN_AT(GN_OPEN(6u), GN_PARAM(GNI_P_ATTEND_DOT) + row_of_all + r));
                [[unroll]] for (int f = 1; f < 4; f++) dot_[i][e + f] = dot_[i][e];
            }
    else [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
        uint r = row0 + 16u * i + lane % 16u, at = own + (lane / 16u) * 4u + lane % 16u / 4u;
        float v = r >= rows    ? 0.0
                  : lane < 16u ? gn_lse_of(GN_AT(GN_OPEN(4u), lse0 + r))
                               : -uintBitsToFloat(GN_AT(GN_OPEN(6u), GN_PARAM(GNI_P_ATTEND_DOT) + row_of_all + r));
        gn_tile[at][lane % 4u] = floatBitsToUint(v);
        subgroupBarrier();
        coopMatLoad(lse[i], gn_tile, own, 0u, GN_COLUMNS);
        coopMatLoad(dot_[i], gn_tile, own + 4u, 0u, GN_COLUMNS);
        subgroupBarrier();
    }
#endif
#endif
    float keep = GN_DROPS ? GN_PARAM_F(GNI_P_ATTEND_KEEP) : 1.0;
    uint of_head = batch * gl_NumWorkGroups.y + head; // of all queries' heads
    uint now = 0u; // where the tile is
#if GN_STEP == 2
    for (uint h = 0u; h < heads; h++) {
        of_head = batch * gl_NumWorkGroups.y * heads + head0 + h;
        if (GN_MASKED) mask0 = gn_mask_of(batch, head0 + h);
#endif
    uint other = from;
    [[unroll]] for (uint phase = 0u; phase < 2u; phase++) for (; other < (phase == 0u ? turn : end); other += GN_KEYS) {
        bool edge = phase == (GN_STEP == 2 ? 0u : 1u);
        bool skip = edge && GN_CAUSAL && (GN_STEP == 2 ? other + GN_KEYS - 1u < row0 : other > row0 + 16u * GN_BLOCKS - 1u);
        uint then = GN_TILE - now;
        next = other + GN_KEYS;
#if GN_STEP == 2
        if (next >= end) {
            next = from;
            next_head = min(next_head + 1u, head0 + heads - 1u);
        }
        t_base = GN_BASE(GN_T_PARAM, batch, next_head);
        u_base = GN_BASE(GN_U_PARAM, batch, next_head);
#else
        if (next >= end) next = other;
#endif
        barrier();
#if GN_STEP == 0
        uvec4 next_t[GN_KL], next_u[GN_VL];
        [[unroll]] for (uint i = 0u; i < GN_KL; i++) GN_FETCH_T(next_t[i], i, GN_KL)
        GN_UNIT_C s[GN_BLOCKS][GN_JU];
        if (!skip) {
            [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
                [[unroll]] for (uint j = 0u; j < GN_JU; j++) s[i][j] = GN_UNIT_C(0.0);
            [[unroll]] for (uint k = 0u; k < GN_DU; k++)
                [[unroll]] for (uint j = 0u; j < GN_JU; j++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + 16u * j * GN_DP + 2u * k, GN_DP, GN_COLUMNS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) s[i][j] = coopMatMulAdd(x[i][k], b, s[i][j]);
                }
            [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
                if (GN_MASKED)
                    [[unroll]] for (uint j = 0u; j < GN_JU; j++)
                        [[unroll]] for (int e = 0; e < place.length(); e++)
                            GN_MASK(s[i][j][e], GN_PLACE(e), row0 + 16u * i, other + 16u * j)
                if (edge)
                    [[unroll]] for (uint j = 0u; j < GN_JU; j++)
                        [[unroll]] for (int e = 0; e < place.length(); e++)
                            if (gn_hidden(GN_PLACE(e), row0 + 16u * i, other + 16u * j, others)) s[i][j][e] = GN_HIDDEN;
                GN_UNIT_C top = s[i][0];
                bool grows = false;
                [[unroll]] for (int e = 0; e < top.length(); e++) {
                    [[unroll]] for (uint j = 1u; j < GN_JU; j++) top[e] = max(top[e], s[i][j][e]);
                }
                if (GN_KNOWN)
                    [[unroll]] for (int e = 0; e < 8; e += 4)
                        top[e] = max(max(top[e], top[e + 1]), max(top[e + 2], top[e + 3]));
                [[unroll]] for (int e = 0; e < top.length(); e++)
                    if (GN_IN_ROW(e) == e) {
                        top[e] = fma(top[e], factor, -GN_LIFT);
                        grows = grows || top[e] - most[i][e] > GN_SLACK;
                    }
                if (subgroupAny(grows)) {
                    top = gn_over_row(top, own, lane, false);
                    [[unroll]] for (int e = 0; e < top.length(); e++)
                        if (GN_IN_ROW(e) == e) {
                            float was = most[i][e], is = max(was, top[e]);
                            most[i][e] = is;
                            top[e] = exp2(was - is);
                            sum[i][e] *= top[e];
                        }
                    [[unroll]] for (uint j = 0u; j < GN_EU; j++)
                        [[unroll]] for (int e = 0; e < top.length(); e++) y[i][j][e] *= top[GN_IN_ROW(e)];
                }
                [[unroll]] for (uint j = 0u; j < GN_JU; j++)
                    [[unroll]] for (int e = 0; e < top.length(); e++) {
                        s[i][j][e] = exp2(fma(s[i][j][e], factor, -most[i][GN_IN_ROW(e)]));
                        sum[i][GN_IN_ROW(e)] += s[i][j][e];
                    }
                if (GN_DROPS)
                    [[unroll]] for (uint j = 0u; j < GN_JU; j++) {
                        GN_UNIT_C stays;
                        GN_STAYING(stays, of_head, row0 + 16u * i, other + 16u * j)
                        [[unroll]] for (int e = 0; e < place.length(); e++) s[i][j][e] *= stays[e];
                    }
            }
        }
        [[unroll]] for (uint i = 0u; i < GN_KL; i++) GN_KEEP_T(next_t[i], i, GN_KL, then)
        [[unroll]] for (uint i = 0u; i < GN_VL; i++) GN_FETCH_U(next_u[i], i, GN_VL)
        if (!skip)
            [[unroll]] for (uint j = 0u; j < GN_JU; j++) {
                GN_UNIT_A p[GN_BLOCKS];
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) GN_AS_A(p[i], s[i][j])
                [[unroll]] for (uint e = 0u; e < GN_EU; e++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + GN_V0 + 16u * j * GN_EP + 2u * e, GN_EP, GN_ROWS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) y[i][e] = coopMatMulAdd(p[i], b, y[i][e]);
                }
            }
        [[unroll]] for (uint i = 0u; i < GN_VL; i++) GN_KEEP_U(next_u[i], i, GN_VL, then)
#else
#if GN_STEP == 2
        GN_FETCH_STAT
#else
        [[unroll]]
#endif
        for (uint j = 0u; j < GN_JU; j++) {
            uvec4 next_t[GN_KJ], next_u[GN_VJ];
            [[unroll]] for (uint i = 0u; i < GN_KJ; i++) GN_FETCH_T(next_t[i], j * GN_KJ + i, GN_KJ * GN_JU)
            [[unroll]] for (uint i = 0u; i < GN_VJ; i++) GN_FETCH_U(next_u[i], j * GN_VJ + i, GN_VJ * GN_JU)
            if (!skip) {
                GN_UNIT_A a[GN_BLOCKS];
                GN_UNIT_C s[GN_BLOCKS], ds[GN_BLOCKS], stays[GN_BLOCKS];
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) s[i] = GN_UNIT_C(0.0);
                [[unroll]] for (uint k = 0u; k < GN_DU; k++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + 16u * j * GN_DP + 2u * k, GN_DP, GN_COLUMNS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) s[i] = coopMatMulAdd(x[i][k], b, s[i]);
                }
#if GN_STEP == 2
                GN_UNIT_C lse, dot_;
                uint stat = GN_STAT0 + (now == 0u ? 0u : GN_KEYS / 2u) + 4u * j;
                if (GN_KNOWN)
                    [[unroll]] for (int e = 0; e < 8; e++) {
                        if (GN_IN_COLUMN(e) != e) continue;
                        uint q = 4u * stat + gn_place_of(lane, e) % 16u;
                        lse[e] = uintBitsToFloat(gn_tile[q / 4u][q % 4u]);
                        dot_[e] = uintBitsToFloat(gn_tile[q / 4u + GN_KEYS / 4u][q % 4u]);
                    }
                else {
                    coopMatLoad(lse, gn_tile, stat, 0u, GN_ROWS);
                    coopMatLoad(dot_, gn_tile, stat + GN_KEYS / 4u, 0u, GN_ROWS);
                }
#define GN_LSE lse[GN_IN_COLUMN(e)]
#define GN_LESS_DOT(v, e) ((v) - dot_[GN_IN_COLUMN(e)])
#else
#define GN_LSE lse[i][GN_IN_ROW(e)]
#define GN_LESS_DOT(v, e) (GN_DROPS ? (v) + dot_[i][GN_IN_ROW(e)] : (v)) // as sums began
#endif
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
                    [[unroll]] for (int e = 0; e < place.length(); e++) {
                        if (GN_MASKED) GN_MASK(s[i][e], GN_PLACE(e), row0 + 16u * i, other + 16u * j)
                        s[i][e] = exp2(fma(s[i][e], factor, -GN_LSE));
                        if (edge && gn_hidden(GN_PLACE(e), row0 + 16u * i, other + 16u * j, others)) s[i][e] = 0.0;
                    }
                if (GN_DROPS)
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++)
                        GN_STAYING(stays[i], of_head, GN_STEP == 2 ? other + 16u * j : row0 + 16u * i,
                                   GN_STEP == 2 ? row0 + 16u * i : other + 16u * j)
#if GN_STEP == 2
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
                    GN_UNIT_C w = s[i];
                    if (GN_DROPS)
                        [[unroll]] for (int e = 0; e < place.length(); e++) w[e] *= stays[i][e];
                    GN_AS_A(a[i], w)
                }
                [[unroll]] for (uint k = 0u; k < GN_EU; k++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + GN_V0 + 16u * j * GN_EP + 2u * k, GN_EP, GN_ROWS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) dz[i][k] = coopMatMulAdd(a[i], b, dz[i][k]);
                }
#endif
#if GN_STEP == 2
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) ds[i] = GN_UNIT_C(0.0);
#else
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
                    ds[i] = dot_[i];
                    if (GN_DROPS) ds[i] = GN_UNIT_C(0.0);
                }
#endif
                [[unroll]] for (uint k = 0u; k < GN_EU; k++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + GN_V0 + 16u * j * GN_EP + 2u * k, GN_EP, GN_COLUMNS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) ds[i] = coopMatMulAdd(z[i][k], b, ds[i]);
                }
                [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
                    [[unroll]] for (int e = 0; e < place.length(); e++) {
                        if (GN_DROPS) ds[i][e] *= stays[i][e] * keep;
                        ds[i][e] = s[i][e] * GN_LESS_DOT(ds[i][e], e);
                        if (edge && gn_hidden(GN_PLACE(e), row0 + 16u * i, other + 16u * j, others)) ds[i][e] = 0.0;
                    }
                    GN_AS_A(a[i], ds[i])
                }
                [[unroll]] for (uint k = 0u; k < GN_DU; k++) {
                    GN_UNIT_B b;
                    coopMatLoad(b, gn_tile, now + 16u * j * GN_DP + 2u * k, GN_DP, GN_ROWS);
                    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) dx[i][k] = coopMatMulAdd(a[i], b, dx[i][k]);
                }
            }
            [[unroll]] for (uint i = 0u; i < GN_KJ; i++) GN_KEEP_T(next_t[i], j * GN_KJ + i, GN_KJ * GN_JU, then)
            [[unroll]] for (uint i = 0u; i < GN_VJ; i++) GN_KEEP_U(next_u[i], j * GN_VJ + i, GN_VJ * GN_JU, then)
        }
#if GN_STEP == 2
        GN_KEEP_STAT(then)
#endif
#endif
        now = then;
    }
#if GN_STEP == 2
    }
#endif
    uint base = GN_BASE(GNI_P_ATTEND_Y, batch, head), step = GN_PARAM(GNI_P_ATTEND_Y + 3);
#if GN_STEP == 2
    uint base_z = GN_BASE(GNI_P_ATTEND_DV, batch, head), step_z = GN_PARAM(GNI_P_ATTEND_DV + 3);
#endif
    [[unroll]] for (uint i = 0u; i < GN_BLOCKS; i++) {
        uint first = row0 + 16u * i;
#if GN_STEP == 0
        GN_UNIT_C total = gn_over_row(sum[i], own, lane, true);
        if (GN_HAS_LSE) {
            if (GN_KNOWN) {
                if (lane % 4u == 0u)
                    [[unroll]] for (int e = 0; e < 8; e += 4) {
                        uint r = lane / 4u + (e != 0 ? 8u : 0u);
                        gn_tile[own + r * 5u].x = floatBitsToUint(total[e]);
                        gn_tile[own + 80u + r * 4u].x = floatBitsToUint(most[i][e]);
                    }
            } else {
                coopMatStore(total, gn_tile, own, 5u, GN_ROWS);
                coopMatStore(most[i], gn_tile, own + 80u, 4u, GN_ROWS);
            }
            subgroupBarrier();
            if (lane < 16u && first + lane < rows) {
                float t = uintBitsToFloat(gn_tile[own + lane * 5u].x), s = uintBitsToFloat(gn_tile[own + 80u + lane * 4u].x);
                GN_PUT(GN_OPEN(4u), lse0 + first + lane, floatBitsToUint(t == 0.0 ? 0.0 : (s + log2(t)) * 0.6931471805599453));
            }
            subgroupBarrier();
        }
        [[unroll]] for (int e = 0; e < total.length(); e++) total[e] = total[e] == 0.0 ? 0.0 : (GN_DROPS ? keep : 1.0) * GN_LIFTED / total[e];
        [[unroll]] for (uint j = 0u; j < GN_EU; j++) {
            [[unroll]] for (int e = 0; e < total.length(); e++) y[i][j][e] *= total[GN_IN_ROW(e)];
            gn_put(y[i][j], 3u, base, step, first, rows, j, GN_E, own, lane);
        }
#else
        [[unroll]] for (uint j = 0u; j < GN_DU; j++)
            gn_put(dx[i][j] * (scale * 0.6931471805599453), 3u, base, step, first, rows, j, GN_D, own, lane);
#if GN_STEP == 2
        [[unroll]] for (uint j = 0u; j < GN_EU; j++) {
            if (GN_DROPS) dz[i][j] *= keep;
            gn_put(dz[i][j], 7u, base_z, step_z, first, rows, j, GN_E, own, lane);
        }
#endif
#endif
    }
}
