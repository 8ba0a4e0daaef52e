#version 450
// Products of a matrix and a vector (gni_matmul).
//
// x (long, k) is the matrix, y (k) the vector. Rows: x has neighbours along k, a team of lanes shares a row
// of x. Columns: x has neighbours along the long dimension, a lane has a group of them, and a team shares k.
// A load takes 16 bytes where x is aligned so: 4 elements, or 8 of 16 bits.
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

layout(constant_id = GNI_S_MATMUL_A_DTYPE) const uint GN_X_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_B_DTYPE) const uint GN_Y_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_C_DTYPE) const uint GN_C_DTYPE = 0u;
layout(constant_id = GNI_S_MATMUL_LAYOUT) const uint GN_LAYOUT = 0u;
layout(constant_id = GNI_S_MATVEC_LOG_LANES) const uint GN_LOG_LANES = 6u;
#define GN_COLUMNS ((GN_LAYOUT & GNI_F_MATVEC_COLUMNS) != 0u)
#define GN_X_GROUPS ((GN_LAYOUT & GNI_F_MATVEC_X_GROUPS) != 0u)
#define GN_Y_GROUPS ((GN_LAYOUT & GNI_F_MATVEC_Y_GROUPS) != 0u)
#define GN_EIGHTS ((GN_LAYOUT & GNI_F_MATVEC_EIGHTS) != 0u)
#define GN_HAS_BIAS ((GN_LAYOUT & GNI_F_MATVEC_BIAS) != 0u)
#define GN_HAS_RELU ((GN_LAYOUT & GNI_F_MATVEC_RELU) != 0u)
#define GN_LANES (1u << GN_LOG_LANES)
#define GN_TEAMS (256u >> GN_LOG_LANES)

// Here m is the long dimension, a is x and b is y.
#define GN_C_LONG GN_PARAM(GNI_P_MATVEC_C_LONG)
#define GN_BIAS_LONG GN_PARAM(GNI_P_MATVEC_BIAS_LONG)
#define GN_C_BATCH GN_PARAM(GNI_P_MATVEC_C_BATCH)

#define GN_UNIT (GN_COLUMNS ? (GN_EIGHTS ? 8u : 4u) : 1u) // elements of c that a team makes
#define GN_WIDE_COLUMNS (GNI_F_MATVEC_COLUMNS | GNI_F_MATVEC_EIGHTS)
#define GN_HALVES ((GN_LAYOUT & GN_WIDE_COLUMNS) == GN_WIDE_COLUMNS ? 2u : 1u) // that much of `sum` counts
#define GN_PIECE (GN_EIGHTS ? 8u : 4u)                    // elements of x in a load

shared vec4 gn_team[256];

void gn_write_value(uint l, uint batch, float v) {
    if (l >= GN_M) return;
    if (GN_HAS_BIAS) v += uintBitsToFloat(gn_fetch(GN_BIAS, GN_BIAS_BASE + l * GN_BIAS_LONG));
#ifdef GN_WGSL // as in store.glsl
    if (GN_HAS_RELU) v = (floatBitsToUint(v) ^ 0x80000000u) <= 0x7f800000u ? 0.0 : v;
#else
    if (GN_HAS_RELU) v = v < 0.0 ? 0.0 : v;
#endif
    if (GN_HAS_PROGRAM) v = gn_epilogue(vec4(v), l, 0u, batch, 1u).x;
    uvec4 r = gn_narrow(uvec4(floatBitsToUint(v)), GN_C_DTYPE);
    uint at = GN_C_BASE + batch * GN_C_BATCH + l * GN_C_LONG;
    gn_write_one(GN_OPEN(GN_C), at, gn_packing(GN_C_DTYPE), r.x);
}

void gn_write_unit(uint unit, uint batch, vec4 v[2]) {
    [[unroll]] for (uint i = 0u; i < GN_UNIT; i++) gn_write_value(GN_UNIT * unit + i, batch, v[i / 4u][i % 4u]);
}

// Elements of a piece, the first four or the last.
vec4 gn_values(uvec4 raw, uint dtype, uint last) {
    if (!GN_EIGHTS) return uintBitsToFloat(gn_widen(raw, dtype));
    uvec2 w = last == 0u ? raw.xy : raw.zw;
    if (dtype == GN_T_F16 && GN_EXACT_HALVES) return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
    if (dtype == GN_T_BF16) return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
    return uintBitsToFloat(gn_widen(uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16), dtype));
}
uvec4 gn_piece(GN_HANDLE h, uint at, uint dtype) {
    return GN_EIGHTS ? GN_AT4(h, at >> 3) : gn_read_raw(h, uvec4(at), dtype, false, true);
}
float gn_one(GN_HANDLE h, uint at, uint dtype) {
    return uintBitsToFloat(gn_widen(gn_read_raw(h, uvec4(at), dtype, true, false), dtype).x);
}
// Four elements of y.
vec4 gn_four(GN_HANDLE h, uint at, uint dtype) {
    return uintBitsToFloat(gn_widen(gn_read_raw(h, uvec4(at), dtype, false, true), dtype));
}

// Loads that are under way at once, so that memory is kept busy.
#ifndef GN_AHEAD
#define GN_AHEAD 4u
#endif

// What a lane makes of columns `at` on, of its share of k.
void gn_add_columns(inout vec4 sum[2], uvec2 base, uint unit, uint start, uint lane, uint stop) {
    GN_HANDLE hx = GN_OPEN(GN_A), hy = GN_OPEN(GN_B);
    uint k0 = start + lane, at = base.x + GN_UNIT * unit * GN_A_ROW, inside = gn_inside(4u * unit, GN_M);
    if (GN_X_GROUPS)
        for (; k0 + (GN_AHEAD - 1u) * GN_LANES < stop; k0 += GN_AHEAD * GN_LANES) {
            uvec4 x[GN_AHEAD];
            float y[GN_AHEAD];
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                x[u] = gn_piece(hx, at + (k0 + u * GN_LANES) * GN_A_COLUMN, GN_X_DTYPE);
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++)
                y[u] = gn_one(hy, base.y + (k0 + u * GN_LANES) * GN_B_ROW, GN_Y_DTYPE);
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                sum[0] = fma(gn_values(x[u], GN_X_DTYPE, 0u), vec4(y[u]), sum[0]);
                if (GN_EIGHTS) sum[1] = fma(gn_values(x[u], GN_X_DTYPE, 1u), vec4(y[u]), sum[1]);
            }
        }
    if (GN_EIGHTS) {
        for (; k0 < stop; k0 += GN_LANES) {
            uvec4 x = gn_piece(hx, at + k0 * GN_A_COLUMN, GN_X_DTYPE);
            vec4 y = vec4(gn_one(hy, base.y + k0 * GN_B_ROW, GN_Y_DTYPE));
            sum[0] = fma(gn_values(x, GN_X_DTYPE, 0u), y, sum[0]);
            sum[1] = fma(gn_values(x, GN_X_DTYPE, 1u), y, sum[1]);
        }
        return;
    }
    for (; k0 < stop; k0 += GN_AHEAD * GN_LANES) {
        vec4 x[GN_AHEAD], y[GN_AHEAD];
        [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
            uint k = k0 + u * GN_LANES;
            x[u] = gn_read_run(hx, at + k * GN_A_COLUMN, GN_A_ROW, GN_X_DTYPE, GN_X_GROUPS, k < stop ? inside : 0u);
            y[u] = vec4(k < stop ? gn_one(hy, base.y + k * GN_B_ROW, GN_Y_DTYPE) : 0.0);
        }
        [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) sum[0] = fma(x[u], y[u], sum[0]);
    }
}

// What a lane makes of its share of a row.
void gn_add_row(inout vec4 sum[2], uvec2 base, uint row, uint start, uint lane, uint stop) {
    GN_HANDLE hx = GN_OPEN(GN_A), hy = GN_OPEN(GN_B);
    uint at = base.x + row * GN_A_ROW, k0 = start + GN_PIECE * lane, step = GN_PIECE * GN_LANES;
    // Without a look at the end, as far as that goes.
    if (GN_X_GROUPS && GN_Y_GROUPS)
        for (; k0 + (GN_AHEAD - 1u) * step + GN_PIECE <= stop; k0 += GN_AHEAD * step) {
            uvec4 x[GN_AHEAD];
            vec4 y[GN_AHEAD], z[GN_AHEAD];
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) x[u] = gn_piece(hx, at + k0 + u * step, GN_X_DTYPE);
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                y[u] = gn_four(hy, base.y + k0 + u * step, GN_Y_DTYPE);
                if (GN_EIGHTS) z[u] = gn_four(hy, base.y + k0 + u * step + 4u, GN_Y_DTYPE);
            }
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                sum[0] = fma(gn_values(x[u], GN_X_DTYPE, 0u), y[u], sum[0]);
                if (GN_EIGHTS) sum[1] = fma(gn_values(x[u], GN_X_DTYPE, 1u), z[u], sum[1]);
            }
        }
    for (; k0 < stop; k0 += GN_AHEAD * step)
        [[unroll]] for (uint p = 0u; p < GN_PIECE; p += 4u) {
            vec4 x[GN_AHEAD], y[GN_AHEAD];
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) {
                uint k = k0 + u * step + p, inside = gn_inside(k, stop);
                x[u] = gn_read_run(hx, at + k * GN_A_COLUMN, GN_A_COLUMN, GN_X_DTYPE, GN_X_GROUPS, inside);
                y[u] = gn_read_run(hy, base.y + k * GN_B_ROW, GN_B_ROW, GN_Y_DTYPE, GN_Y_GROUPS, inside);
            }
            [[unroll]] for (uint u = 0u; u < GN_AHEAD; u++) sum[0] = fma(x[u], y[u], sum[0]);
        }
    sum[0] += sum[1];
    sum[0] = vec4((sum[0].x + sum[0].y) + (sum[0].z + sum[0].w));
}

// The sum over a team's lanes, in its first lane.
vec4 gn_team_sum(vec4 sum, uint lane) {
    uint me = gl_LocalInvocationIndex, lane_step = GN_COLUMNS ? GN_TEAMS : 1u;
    for (uint h = GN_LANES >> 1; h > 0u; h >>= 1) {
        barrier();
        gn_team[me] = sum;
        barrier();
        if (lane < h) sum += gn_team[me + h * lane_step];
    }
    return sum;
}

void main() {
    uint me = gl_LocalInvocationIndex;
    uint lane = GN_COLUMNS ? me >> (8u - GN_LOG_LANES) : me & (GN_LANES - 1u);
    uint team = GN_COLUMNS ? me & (GN_TEAMS - 1u) : me >> GN_LOG_LANES;
    uint units = (GN_M + GN_UNIT - 1u) / GN_UNIT;
    uint split = gl_WorkGroupID.y, start = split * GN_CHUNK, end = min(start + GN_CHUNK, GN_K);
    uint unit = gl_WorkGroupID.x * GN_TEAMS + team;
    for (uint batch = gl_WorkGroupID.z; batch < GN_BATCHES; batch += gl_NumWorkGroups.z) {
        vec4 sum[2];
        sum[0] = sum[1] = vec4(0.0);
        uint stop = unit < units ? end : 0u;
        if (GN_COLUMNS) gn_add_columns(sum, gn_batch(batch), unit, start, lane, stop);
        else gn_add_row(sum, gn_batch(batch), unit, start, lane, stop);
        [[unroll]] for (uint i = 0u; i < GN_HALVES; i++) sum[i] = gn_team_sum(sum[i], lane);
        bool writes = lane == 0u && unit < units;
#ifndef GN_WGSL // where nobody waits for others
        if (GN_SPLITS > 1u) {
            // Parts of a split lie beside each other.
            uint blocks = (units + GN_TEAMS - 1u) / GN_TEAMS, first = batch * GN_SPLITS * GN_HALVES * units + unit;
            if (writes)
                [[unroll]] for (uint i = 0u; i < GN_HALVES; i++)
                    gn_put_shared(GN_PARTIALS, first + (split * GN_HALVES + i) * units, floatBitsToUint(sum[i]));
            if (!gn_is_last(GN_COUNTER0 + batch * blocks + gl_WorkGroupID.x)) continue;
            [[unroll]] for (uint i = 0u; i < GN_HALVES; i++) {
                vec4 part = vec4(0.0);
                if (unit < units)
                    for (uint p = lane; p < GN_SPLITS; p += GN_LANES)
                        part += uintBitsToFloat(gn_get_shared(GN_PARTIALS, first + (p * GN_HALVES + i) * units));
                sum[i] = gn_team_sum(part, lane);
            }
        }
#endif
        if (writes) gn_write_unit(unit, batch, sum);
    }
}
