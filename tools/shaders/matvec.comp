#version 450
// Products of a matrix and a vector (gni_matmul).
//
// x (long, k) is the matrix, y (k) the vector. Rows: x has neighbours along k, a team of lanes shares a row
// of x. Columns: x has neighbours along the long dimension, a lane has a group of them, and a team shares k.
// With splits the last workgroup adds the parts up in their order.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef GN_BINDINGS
#define GN_BUFFERS 6
#else
#define GN_BUFFERS 8 // two are epilogue.glsl's
#endif
#define GN_READONLY 0xb
#include "gn.glsl"
#include "matrix.glsl"
#include "epilogue.glsl"

layout(local_size_x = 256) in;

layout(constant_id = 0) const uint GN_X_DTYPE = 0u;
layout(constant_id = 1) const uint GN_Y_DTYPE = 0u;
layout(constant_id = 2) const uint GN_C_DTYPE = 0u;
layout(constant_id = 3) const uint GN_LAYOUT = 0u;
layout(constant_id = 4) const uint GN_LOG_LANES = 6u;
#define GN_COLUMNS ((GN_LAYOUT & 1u) != 0u)
#define GN_X_GROUPS ((GN_LAYOUT & 2u) != 0u)
#define GN_Y_GROUPS ((GN_LAYOUT & 4u) != 0u) // y has aligned groups along k
#define GN_HAS_BIAS ((GN_LAYOUT & 32u) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & 64u) != 0u)
#define GN_LANES (1u << GN_LOG_LANES)
#define GN_TEAMS (256u >> GN_LOG_LANES)

// Here m is the long dimension, a is x and b is y. Steps in c and in bias:
#define GN_C_LONG GN_PARAM(42)
#define GN_BIAS_LONG GN_PARAM(44)
#define GN_C_BATCH GN_PARAM(47)

shared vec4 gn_team[256];

void gn_write_value(uint l, uint batch, float v) {
    if (l >= GN_M) return;
    if (GN_HAS_BIAS) v += uintBitsToFloat(gn_fetch(GN_BIAS, GN_BIAS_BASE + l * GN_BIAS_LONG));
    if (GN_HAS_RELU) v = v < 0.0 ? 0.0 : v;
    if (GN_HAS_PROGRAM) v = gn_epilogue(vec4(v), l, 0u, batch, 1u).x;
    uvec4 r = gn_narrow(uvec4(floatBitsToUint(v)), GN_C_DTYPE);
    uint at = GN_C_BASE + batch * GN_C_BATCH + l * GN_C_LONG;
    gn_write_one(GN_OPEN(GN_C), at, gn_packing(GN_C_DTYPE), r.x);
}

void gn_write_unit(uint unit, uint batch, vec4 v) {
    if (!GN_COLUMNS) {
        gn_write_value(unit, batch, v.x);
        return;
    }
    for (uint e = 0u; e < 4u; e++) gn_write_value(4u * unit + e, batch, v[e]);
}

// Loads that are under way at once, so that memory is kept busy.
#define GN_AHEAD 4u

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
        vec4 sum = vec4(0.0), x[GN_AHEAD], y[GN_AHEAD];
        uint stop = unit < units ? end : 0u;
        if (GN_COLUMNS) {
            uint inside = gn_inside(4u * unit, GN_M), at = base.x + 4u * unit * GN_A_ROW;
            uint k0 = start + lane;
            if (GN_X_GROUPS)
                for (; k0 + (GN_AHEAD - 1u) * GN_LANES < stop; k0 += GN_AHEAD * GN_LANES) {
                    uvec4 rx[GN_AHEAD], ry[GN_AHEAD];
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        rx[u] = gn_read_raw(hx, uvec4(at + (k0 + u * GN_LANES) * GN_A_COLUMN), GN_X_DTYPE, false, true);
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        ry[u] = gn_read_raw(hy, uvec4(base.y + (k0 + u * GN_LANES) * GN_B_ROW), GN_Y_DTYPE, true, false);
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        sum = fma(uintBitsToFloat(gn_widen(rx[u], GN_X_DTYPE)), uintBitsToFloat(gn_widen(ry[u], GN_Y_DTYPE)), sum);
                }
            for (; k0 < stop; k0 += GN_AHEAD * GN_LANES) {
                [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                    uint k = k0 + u * GN_LANES;
                    x[u] = gn_read_run(hx, at + k * GN_A_COLUMN, GN_A_ROW, GN_X_DTYPE, GN_X_GROUPS, k < stop ? inside : 0u);
                    uvec4 place = uvec4(base.y + min(k, stop - 1u) * GN_B_ROW);
                    y[u] = uintBitsToFloat(gn_widen(gn_read_raw(hy, place, GN_Y_DTYPE, true, false), GN_Y_DTYPE));
                    if (k >= stop) y[u] = vec4(0.0);
                }
                [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) sum = fma(x[u], y[u], sum);
            }
        } else {
            uint at = base.x + unit * GN_A_ROW, k0 = start + 4u * lane;
            // Without a look at the end, as far as that goes.
            if (GN_X_GROUPS && GN_Y_GROUPS)
                for (; k0 + (GN_AHEAD - 1u) * 4u * GN_LANES + 4u <= stop; k0 += GN_AHEAD * 4u * GN_LANES) {
                    uvec4 rx[GN_AHEAD], ry[GN_AHEAD];
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        rx[u] = gn_read_raw(hx, uvec4(at + k0 + u * 4u * GN_LANES), GN_X_DTYPE, false, true);
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        ry[u] = gn_read_raw(hy, uvec4(base.y + k0 + u * 4u * GN_LANES), GN_Y_DTYPE, false, true);
                    [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                        sum = fma(uintBitsToFloat(gn_widen(rx[u], GN_X_DTYPE)), uintBitsToFloat(gn_widen(ry[u], GN_Y_DTYPE)), sum);
                }
            for (; k0 < stop; k0 += GN_AHEAD * 4u * GN_LANES) {
                [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                    uint k = k0 + u * 4u * GN_LANES, inside = gn_inside(k, stop);
                    x[u] = gn_read_run(hx, at + k * GN_A_COLUMN, GN_A_COLUMN, GN_X_DTYPE, GN_X_GROUPS, inside);
                    y[u] = gn_read_run(hy, base.y + k * GN_B_ROW, GN_B_ROW, GN_Y_DTYPE, GN_Y_GROUPS, inside);
                }
                [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) sum = fma(x[u], y[u], sum);
            }
            sum = vec4((sum.x + sum.y) + (sum.z + sum.w));
        }
        for (uint h = GN_LANES >> 1; h > 0u; h >>= 1) {
            barrier();
            gn_team[me] = sum;
            barrier();
            if (lane < h) sum += gn_team[me + h * lane_step];
        }
        bool writes = lane == 0u && unit < units;
        if (GN_SPLITS > 1u) {
            uint blocks = (units + GN_TEAMS - 1u) / GN_TEAMS, number = batch * units + unit;
            if (writes) gn_put_shared(GN_PARTIALS, number * GN_SPLITS + split, floatBitsToUint(sum));
            if (!gn_is_last(GN_COUNTER0 + batch * blocks + gl_WorkGroupID.x)) continue;
            if (writes) {
                sum = vec4(0.0);
                for (uint p = 0u; p < GN_SPLITS; p++)
                    sum += uintBitsToFloat(gn_get_shared(GN_PARTIALS, number * GN_SPLITS + p));
            }
        }
        if (writes) gn_write_unit(unit, batch, sum);
    }
}
