#version 450
// Products with few rows or few columns (gni_matmul): s of them, s <= GN_SMALL, times a long dimension.
//
//! variant matvec_1 -DGN_SMALL=1
//! variant matvec_8 -DGN_SMALL=8
//
// x (long, k) is the large operand, y (k, small) the other one. Rows: x has neighbours along k, a team of
// lanes shares a row of x. Columns: x has neighbours along the long dimension, a lane has a group of
// them, and a team shares k. With splits the last workgroup adds the parts up in their order.
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 6
#define GN_READONLY 0xb
#include "gn.glsl"
#include "matrix.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 0) const uint GN_X_DTYPE = 0u;
layout(constant_id = 1) const uint GN_Y_DTYPE = 0u;
layout(constant_id = 2) const uint GN_C_DTYPE = 0u;
layout(constant_id = 3) const uint GN_LAYOUT = 0u;
layout(constant_id = 4) const uint GN_LOG_LANES = 6u;
layout(constant_id = 5) const uint GN_S = 1u; // small dimension
#define GN_COLUMNS ((GN_LAYOUT & 1u) != 0u)
#define GN_X_GROUPS ((GN_LAYOUT & 2u) != 0u)
#define GN_Y_GROUPS ((GN_LAYOUT & 4u) != 0u) // y has aligned groups along k
#define GN_HAS_BIAS ((GN_LAYOUT & 32u) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & 64u) != 0u)
#define GN_LANES (1u << GN_LOG_LANES)
#define GN_TEAMS (256u >> GN_LOG_LANES)

// Here m is the long dimension and n the small one, a is x and b is y. Steps in c and in bias:
#define GN_C_LONG GN_PARAM(42)
#define GN_C_SMALL GN_PARAM(43)
#define GN_BIAS_LONG GN_PARAM(44)
#define GN_BIAS_SMALL GN_PARAM(45)
#define GN_C_BATCH GN_PARAM(47)

shared vec4 gn_team[256];

void gn_write_value(uint l, uint s, uint batch, float v) {
    if (l >= GN_M) return;
    if (GN_HAS_BIAS)
        v += uintBitsToFloat(gn_fetch(GN_BIAS, GN_BIAS_BASE + l * GN_BIAS_LONG + s * GN_BIAS_SMALL));
    if (GN_HAS_RELU) v = v < 0.0 ? 0.0 : v;
    uvec4 r = gn_narrow(uvec4(floatBitsToUint(v)), GN_C_DTYPE);
    uint at = GN_C_BASE + batch * GN_C_BATCH + l * GN_C_LONG + s * GN_C_SMALL;
    gn_write_one(GN_OPEN(GN_C), at, gn_packing(GN_C_DTYPE), r.x);
}

void gn_write_unit(uint unit, uint s, uint batch, vec4 v) {
    if (!GN_COLUMNS) {
        gn_write_value(unit, s, batch, v.x);
        return;
    }
    for (uint e = 0u; e < 4u; e++) gn_write_value(4u * unit + e, s, batch, v[e]);
}

void main() {
    uint me = gl_LocalInvocationIndex, lane_step = GN_COLUMNS ? GN_TEAMS : 1u;
    uint lane = GN_COLUMNS ? me >> (8u - GN_LOG_LANES) : me & (GN_LANES - 1u);
    uint team = GN_COLUMNS ? me & (GN_TEAMS - 1u) : me >> GN_LOG_LANES;
    uint units = GN_COLUMNS ? (GN_M + 3u) / 4u : GN_M;
    uint split = gl_WorkGroupID.y, start = split * GN_CHUNK, end = min(start + GN_CHUNK, GN_K);
    uint unit = gl_WorkGroupID.x * GN_TEAMS + team;
    GN_HANDLE hx = GN_OPEN(GN_A), hy = GN_OPEN(GN_B);
    for (uint batch = gl_WorkGroupID.z; batch < GN_BATCHES; batch += gl_NumWorkGroups.z) {
        uvec2 base = gn_batch(batch);
        vec4 sum[GN_SMALL];
        for (uint s = 0u; s < GN_SMALL; s++) sum[s] = vec4(0.0);
        uint stop = unit < units ? end : 0u;
        if (GN_COLUMNS) {
            uint inside = gn_inside(4u * unit, GN_M);
            for (uint k = start + lane; k < stop; k += GN_LANES) {
                vec4 x = gn_read_run(hx, base.x + 4u * unit * GN_A_ROW + k * GN_A_COLUMN, GN_A_ROW, GN_X_DTYPE, GN_X_GROUPS,
                                     inside);
                for (uint s = 0u; s < GN_SMALL; s++)
                    if (s < GN_S) {
                        uvec4 at = uvec4(base.y + k * GN_B_ROW + s * GN_B_COLUMN);
                        vec4 y = uintBitsToFloat(gn_widen(gn_read_raw(hy, at, GN_Y_DTYPE, true, false), GN_Y_DTYPE));
                        sum[s] = fma(x, y, sum[s]);
                    }
            }
        } else {
            for (uint k = start + 4u * lane; k < stop; k += 4u * GN_LANES) {
                uint inside = gn_inside(k, stop);
                vec4 x = gn_read_run(hx, base.x + unit * GN_A_ROW + k * GN_A_COLUMN, GN_A_COLUMN, GN_X_DTYPE, GN_X_GROUPS,
                                     inside);
                for (uint s = 0u; s < GN_SMALL; s++)
                    if (s < GN_S) {
                        vec4 y = gn_read_run(hy, base.y + k * GN_B_ROW + s * GN_B_COLUMN, GN_B_ROW, GN_Y_DTYPE,
                                             GN_Y_GROUPS, inside);
                        sum[s] = fma(x, y, sum[s]);
                    }
            }
        }
        for (uint s = 0u; s < GN_SMALL; s++) {
            if (s >= GN_S) continue;
            if (!GN_COLUMNS) sum[s] = vec4((sum[s].x + sum[s].y) + (sum[s].z + sum[s].w));
            for (uint h = GN_LANES >> 1; h > 0u; h >>= 1) {
                barrier();
                gn_team[me] = sum[s];
                barrier();
                if (lane < h) sum[s] += gn_team[me + h * lane_step];
            }
        }
        bool writes = lane == 0u && unit < units;
        if (GN_SPLITS > 1u) {
            uint blocks = (units + GN_TEAMS - 1u) / GN_TEAMS, number = batch * units + unit;
            for (uint s = 0u; s < GN_SMALL; s++)
                if (s < GN_S && writes)
                    gn_put_shared(GN_PARTIALS, (number * GN_SPLITS + split) * GN_S + s, floatBitsToUint(sum[s]));
            if (!gn_is_last(GN_COUNTER0 + batch * blocks + gl_WorkGroupID.x)) continue;
            for (uint s = 0u; s < GN_SMALL; s++) {
                if (s >= GN_S || !writes) continue;
                sum[s] = vec4(0.0);
                for (uint p = 0u; p < GN_SPLITS; p++)
                    sum[s] += uintBitsToFloat(gn_get_shared(GN_PARTIALS, (number * GN_SPLITS + p) * GN_S + s));
            }
        }
        for (uint s = 0u; s < GN_SMALL; s++)
            if (s < GN_S && writes) gn_write_unit(unit, s, batch, sum[s]);
    }
}
