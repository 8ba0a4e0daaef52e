#version 450
// Attention (gni_attend_job) and its gradients in float32 arithmetic, for float32 and devices without matrix units: the scores
// of 64 rows by 64 others stay in registers and shared memory.
//
//! variant attend
//! no-bindings
//
// GN_STEP: gni_attend_step. A workgroup has 64 queries and goes through all keys; for the gradients of keys and values it has 64
// keys and goes through queries. An invocation has 8 rows by 4 columns of every product of 64 by 64. x: what the rows are; t, u:
// what is gone through.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 9
#define GN_INPUTS_CONST
#include "gn.glsl"
#include "memory.glsl"

#define GN_THREADS 128u
layout(local_size_x = 128) in;

layout(constant_id = GNI_S_ATTEND_D) const uint GN_D = 64u;
layout(constant_id = GNI_S_ATTEND_E) const uint GN_E = 64u;
layout(constant_id = GNI_S_ATTEND_FLAGS) const uint GN_FLAGS = 0u;
layout(constant_id = GNI_S_ATTEND_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_ATTEND_DTYPE) const uint GN_DTYPE = 0u;
#define GN_CAUSAL ((GN_FLAGS & GNI_F_ATTEND_CAUSAL) != 0u)
#define GN_HAS_LSE ((GN_FLAGS & GNI_F_ATTEND_LSE) != 0u)
#define GN_FORWARD (GN_STEP == 0u)
#define GN_BY_KEYS (GN_STEP == 2u)
#define GN_LOW -3.0e38
#define GN_SLACK 8.0 // of the exponent of 2: less growth of a maximum scales nothing
#define GN_LOG2_E 1.4426950408889634
#include "attend.glsl"

// In blocks of 64 columns: sums of t's rows (dq, dk), and of u's (y, dv).
const uint GN_DB = GN_STEP == 0u || GN_D == 0u ? 1u : (GN_D + 63u) / 64u;
const uint GN_EB = GN_STEP == 1u || GN_E == 0u ? 1u : (GN_E + 63u) / 64u;

#define GN_PITCH 17u // of a row of 64, in groups of 4
shared vec4 gn_rows[16u * GN_PITCH], gn_others[16u * GN_PITCH], gn_weights[64u * GN_PITCH];
shared uint gn_grown;
const uint GN_DRAWS = GN_DROPS ? 1024u : 1u;
shared uint gn_staying[GN_DRAWS]; // of 64 queries and 64 keys: a bit for each number of gn_drawn

// Where rows are: `base` and `step` in groups of 8.
struct gn_matrix {
    GN_HANDLE buf;
    uint base, step, rows, width;
};
gn_matrix gn_matrix_of(GN_HANDLE buf, uint p, uint batch, uint head, uint rows, uint width) {
    return gn_matrix(buf, GN_PARAM(p) + batch * GN_PARAM(p + 1u) + head * GN_PARAM(p + 2u), GN_PARAM(p + 3u), rows, width);
}
// Columns 4 c to 4 c + 3 of a row, 0 outside.
vec4 gn_four(gn_matrix m, uint row, uint c) {
    if (row >= m.rows || 4u * c >= m.width) return vec4(0.0);
    return uintBitsToFloat(gn_widen(gn_read_raw(m.buf, uvec4(8u * (m.base + row * m.step) + 4u * c), GN_DTYPE, false, true), GN_DTYPE));
}

void gn_multiply(inout vec4 sum[8], vec4 a, vec4 b, vec4 other) {
    [[unroll]] for (int r = 0; r < 4; r++) sum[r] = fma(vec4(a[r]), other, sum[r]);
    [[unroll]] for (int r = 0; r < 4; r++) sum[4 + r] = fma(vec4(b[r]), other, sum[4 + r]);
}

// 64 rows of a by 64 rows of b, over their columns.
void gn_scores(gn_matrix a, uint a0, gn_matrix b, uint b0, out vec4 sum[8]) {
    uint me = gl_LocalInvocationIndex, row = me / 4u, c = me % 4u;
    vec4 next[4];
    [[unroll]] for (uint i = 0u; i < 8u; i++) sum[i] = vec4(0.0);
    for (uint k = 0u; k < a.width + 16u; k += 16u) {
        if (k > 0u) {
            barrier();
            [[unroll]] for (uint i = 0u; i < 2u; i++)
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    uint at = (4u * c + e) * GN_PITCH + row / 4u + 8u * i;
                    gn_rows[at][row % 4u] = next[i][e];
                    gn_others[at][row % 4u] = next[2u + i][e];
                }
            barrier();
        }
        if (k < a.width)
            [[unroll]] for (uint i = 0u; i < 2u; i++) {
                next[i] = gn_four(a, a0 + row + 32u * i, k / 4u + c);
                next[2u + i] = gn_four(b, b0 + row + 32u * i, k / 4u + c);
            }
        if (k > 0u)
            for (uint e = 0u; e < 16u; e++) {
                uint at = e * GN_PITCH + me / 16u * 2u;
                gn_multiply(sum, gn_rows[at], gn_rows[at + 1u], gn_others[e * GN_PITCH + me % 16u]);
            }
    }
}

// gn_weights, by rows that run along it.
void gn_put_weights(vec4 p[8]) {
    uint me = gl_LocalInvocationIndex;
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        uint at = (me % 16u * 4u + e) * GN_PITCH + me / 16u * 2u;
        gn_weights[at] = vec4(p[0][e], p[1][e], p[2][e], p[3][e]);
        gn_weights[at + 1u] = vec4(p[4][e], p[5][e], p[6][e], p[7][e]);
    }
}

// Adds the weights' product with 64 rows of b.
#define GN_ADD_PRODUCT(sum, blocks, b, b0)                                                                             \
    {                                                                                                                  \
        uint row = me / 16u, c = me % 16u;                                                                             \
        vec4 next[2];                                                                                                  \
        for (uint at_k = 0u; at_k < 64u; at_k += 16u)                                                                  \
            [[unroll]] for (uint i_b = 0u; i_b < blocks; i_b++) {                                                      \
                [[unroll]] for (uint i = 0u; i < 2u; i++)                                                              \
                    next[i] = gn_four(b, (b0) + at_k + row + 8u * i, i_b * 16u + c);                                   \
                barrier();                                                                                             \
                [[unroll]] for (uint i = 0u; i < 2u; i++) gn_others[(row + 8u * i) * GN_PITCH + c] = next[i];          \
                barrier();                                                                                             \
                for (uint e = 0u; e < 16u; e++) {                                                                      \
                    uint at = (at_k + e) * GN_PITCH + row * 2u;                                                        \
                    gn_multiply(sum[i_b], gn_weights[at], gn_weights[at + 1u], gn_others[e * GN_PITCH + c]);           \
                }                                                                                                      \
            }                                                                                                          \
    }

// The maximum or the sum of what the 16 invocations of a row have.
float gn_join(vec4 v, bool add) { return add ? (v.x + v.y) + (v.z + v.w) : max(max(v.x, v.y), max(v.z, v.w)); }
void gn_over_rows(inout float v[8], bool add) {
    uint me = gl_LocalInvocationIndex, row = me / 16u * 8u, c = me % 16u;
    barrier();
    [[unroll]] for (uint r = 0u; r < 8u; r++) gn_rows[(row + r) * 4u + c / 4u][c % 4u] = v[r];
    barrier();
    [[unroll]] for (uint r = 0u; r < 8u; r++) {
        vec4 all;
        [[unroll]] for (uint i = 0u; i < 4u; i++) all[i] = gn_join(gn_rows[(row + r) * 4u + i], add);
        v[r] = gn_join(all, add);
    }
}

#define GN_WRITE(k, param, head, limit, wide, sum, blocks, factor)                                                     \
    {                                                                                                                  \
        gn_matrix to = gn_matrix_of(GN_OPEN(k), param, batch, head, limit, wide);                                      \
        [[unroll]] for (uint i = 0u; i < blocks; i++)                                                                  \
            [[unroll]] for (uint r = 0u; r < 8u; r++) {                                                                \
                uint row = row0 + me / 16u * 8u + r, at = i * 64u + me % 16u * 4u;                                     \
                if (row < to.rows && at < to.width)                                                                    \
                    gn_write_group(to.buf, 8u * (to.base + row * to.step) + at, GN_DTYPE,                              \
                                   gn_narrow(floatBitsToUint(sum[i][r] * (factor)), GN_DTYPE));                        \
            }                                                                                                          \
    }

// Which weights of 64 queries and 64 keys stay.
void gn_draw(uint head, uint query, uint key) {
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < GN_DRAWS; i += GN_THREADS) {
        uvec4 drawn = gn_drawn(head, query + i / 256u * 16u, key + i / 64u % 4u * 16u, i / 8u % 8u, i % 8u);
        uint bits = 0u;
        [[unroll]] for (uint k = 0u; k < 4u; k++) bits |= gn_stays(drawn[k]) ? 1u << k : 0u;
        gn_staying[i] = bits;
    }
    barrier();
}
float gn_staying_of(uint q, uint k) {
    uint bits = gn_staying[(q / 16u * 4u + k / 16u) * 64u + q % 8u * 8u + k % 8u];
    return (bits >> (q / 8u % 2u * 2u + k / 8u % 2u) & 1u) != 0u ? 1.0 : 0.0;
}

void main() {
    uint me = gl_LocalInvocationIndex, head = gl_WorkGroupID.y, batch = gl_WorkGroupID.z, share = GN_PARAM(GNI_P_ATTEND_SHARE);
    uint n = GN_PARAM(GNI_P_ATTEND_N), m = GN_PARAM(GNI_P_ATTEND_M), rows = GN_BY_KEYS ? m : n, others = GN_BY_KEYS ? n : m;
    uint row0 = (GN_CAUSAL && !GN_BY_KEYS ? gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x : gl_WorkGroupID.x) * 64u;
    uint from = GN_CAUSAL && GN_BY_KEYS ? min(row0, others) / 64u * 64u : 0u;
    uint end = GN_CAUSAL && !GN_BY_KEYS ? min(others, row0 + 64u) : others;
    uint heads = gl_NumWorkGroups.y * (GN_BY_KEYS ? share : 1u); // of queries
    float scale = GN_PARAM_F(GNI_P_ATTEND_SCALE), factor = GN_MASKED ? 1.0 : scale;
    float keep = GN_DROPS ? GN_PARAM_F(GNI_P_ATTEND_KEEP) : 1.0;
    vec4 by_t[GN_DB][8], by_u[GN_EB][8];
    float most[8], sum[8];
    [[unroll]] for (uint r = 0u; r < 8u; r++) {
        [[unroll]] for (uint i = 0u; i < GN_DB; i++) by_t[i][r] = vec4(0.0);
        [[unroll]] for (uint i = 0u; i < GN_EB; i++) by_u[i][r] = vec4(0.0);
        most[r] = GN_LOW;
        sum[r] = 0.0;
    }
    uint line = (batch * heads + head) * n + row0 + me / 16u * 8u, lse0 = GN_PARAM(GNI_P_ATTEND_LSE), dot0 = GN_PARAM(GNI_P_ATTEND_DOT);
    if (GN_STEP == 1u)
        [[unroll]] for (uint r = 0u; r < 8u; r++) {
            if (row0 + me / 16u * 8u + r >= n) continue;
            most[r] = GN_LOG2_E * uintBitsToFloat(GN_AT(GN_OPEN(4u), lse0 + line + r));
            sum[r] = uintBitsToFloat(GN_AT(GN_OPEN(6u), dot0 + line + r));
        }
    if (me == 0u) gn_grown = 0u;
    uint count = 0u;
    for (uint shared_by = 0u; shared_by < (GN_BY_KEYS ? share : 1u); shared_by++) {
        uint q_head = GN_BY_KEYS ? head * share + shared_by : head, k_head = GN_BY_KEYS ? head : head / share;
        gn_matrix q = gn_matrix_of(GN_OPEN(0u), GNI_P_ATTEND_Q, batch, q_head, n, GN_D);
        gn_matrix k = gn_matrix_of(GN_OPEN(1u), GNI_P_ATTEND_K, batch, k_head, m, GN_D);
        gn_matrix v = gn_matrix_of(GN_OPEN(2u), GNI_P_ATTEND_V, batch, k_head, m, GN_E), gy;
        if (!GN_FORWARD) gy = gn_matrix_of(GN_OPEN(5u), GNI_P_ATTEND_GY, batch, q_head, n, GN_E);
        for (uint other = from; other < end; other += 64u) {
            vec4 s[8], ds[8];
            if (GN_BY_KEYS) gn_scores(k, row0, q, other, s);
            else gn_scores(q, row0, k, other, s);
            uint c0 = other + me % 16u * 4u, r0 = row0 + me / 16u * 8u;
            if (GN_MASKED) {
                uint mask0 = gn_mask_of(batch, q_head);
                [[unroll]] for (uint r = 0u; r < 8u; r++)
                    [[unroll]] for (uint e = 0u; e < 4u; e++) {
                        uint at = mask0 + (GN_BY_KEYS ? gn_mask_at(c0 + e, r0 + r, true) : gn_mask_at(r0 + r, c0 + e, true));
                        s[r][e] = gn_masked(s[r][e], scale, at);
                    }
            }
            if (GN_DROPS) gn_draw(batch * heads + q_head, GN_BY_KEYS ? other : row0, GN_BY_KEYS ? row0 : other);
            if (GN_FORWARD) {
                bool grows = false;
                float top[8];
                [[unroll]] for (uint r = 0u; r < 8u; r++) {
                    uint row = r0 + r, seen = min(GN_CAUSAL ? row + 1u : m, m);
                    [[unroll]] for (uint e = 0u; e < 4u; e++)
                        s[r][e] = c0 + e < seen ? s[r][e] * factor : GN_HIDDEN;
                    top[r] = gn_join(s[r], false);
                    grows = grows || top[r] - most[r] > GN_SLACK;
                }
                count++;
                if (grows) gn_grown = count;
                barrier();
                if (gn_grown == count) {
                    gn_over_rows(top, false);
                    [[unroll]] for (uint r = 0u; r < 8u; r++) {
                        float now = max(most[r], top[r]), by = exp2(most[r] - now);
                        most[r] = now;
                        sum[r] *= by;
                        [[unroll]] for (uint i = 0u; i < GN_EB; i++) by_u[i][r] *= by;
                    }
                }
                [[unroll]] for (uint r = 0u; r < 8u; r++) {
                    s[r] = exp2(s[r] - most[r]);
                    sum[r] += gn_join(s[r], true);
                    if (GN_DROPS)
                        [[unroll]] for (uint e = 0u; e < 4u; e++) s[r][e] *= gn_staying_of(r0 + r - row0, c0 + e - other);
                }
                gn_put_weights(s);
                GN_ADD_PRODUCT(by_u, GN_EB, v, other)
                continue;
            }
            vec4 lse = vec4(0.0), dot_ = vec4(0.0);
            if (GN_BY_KEYS) {
                gn_scores(v, row0, gy, other, ds);
                uint at = (batch * heads + q_head) * n + c0;
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    if (c0 + e >= n) continue;
                    lse[e] = GN_LOG2_E * uintBitsToFloat(GN_AT(GN_OPEN(4u), lse0 + at + e));
                    dot_[e] = uintBitsToFloat(GN_AT(GN_OPEN(6u), dot0 + at + e));
                }
            } else gn_scores(gy, row0, v, other, ds);
            [[unroll]] for (uint r = 0u; r < 8u; r++) {
                uint row = r0 + r;
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    bool seen = c0 + e < others && (!GN_CAUSAL || (GN_BY_KEYS ? c0 + e >= row : c0 + e <= row));
                    s[r][e] = seen ? exp2(fma(s[r][e], factor, -(GN_BY_KEYS ? lse[e] : most[r]))) : 0.0;
                    float stays = 1.0;
                    if (GN_DROPS)
                        stays = GN_BY_KEYS ? gn_staying_of(c0 + e - other, row - row0) : gn_staying_of(row - row0, c0 + e - other);
                    if (GN_DROPS) ds[r][e] *= stays * keep;
                    ds[r][e] = seen ? s[r][e] * (ds[r][e] - (GN_BY_KEYS ? dot_[e] : sum[r])) : 0.0;
                    if (GN_DROPS) s[r][e] *= stays;
                }
            }
            if (GN_BY_KEYS) {
                gn_put_weights(s);
                GN_ADD_PRODUCT(by_u, GN_EB, gy, other)
                barrier();
            }
            gn_put_weights(ds);
            if (GN_BY_KEYS) GN_ADD_PRODUCT(by_t, GN_DB, q, other)
            else GN_ADD_PRODUCT(by_t, GN_DB, k, other)
        }
    }
    if (GN_FORWARD) {
        gn_over_rows(sum, true);
        [[unroll]] for (uint r = 0u; r < 8u; r++) {
            if (GN_HAS_LSE && me % 16u == 0u && row0 + me / 16u * 8u + r < n)
                GN_PUT(GN_OPEN(4u), lse0 + line + r, floatBitsToUint(sum[r] == 0.0 ? 0.0 : (most[r] + log2(sum[r])) * 0.6931471805599453));
            float by = sum[r] == 0.0 ? 0.0 : keep / sum[r];
            [[unroll]] for (uint i = 0u; i < GN_EB; i++) by_u[i][r] *= by;
        }
        GN_WRITE(3u, GNI_P_ATTEND_Y, head, n, GN_E, by_u, GN_EB, 1.0)
    } else {
        GN_WRITE(3u, GNI_P_ATTEND_Y, head, rows, GN_D, by_t, GN_DB, scale * 0.6931471805599453)
        if (GN_BY_KEYS) GN_WRITE(7u, GNI_P_ATTEND_DV, head, m, GN_E, by_u, GN_EB, keep)
    }
}
