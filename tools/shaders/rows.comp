#version 450
// What needs a sum or two over each row before it can finish the row's elements (gni_rows): softmax, log_softmax, logsumexp,
// normalisation, and the gradients of all these; and variances.
//
//! variant rows_4 -DGN_VECTORS=4
//! variant rows_8 -DGN_VECTORS=8
//! variant rows_wide -DGN_VECTORS=8 -DGN_THREADS=512
//
// A team of lanes holds its row in registers, GN_VECTORS groups of 4 each, so that memory is read once. Lanes of a subgroup
// exchange by shuffles; only teams of several subgroups wait at barriers. softmax.comp is for longer rows and for devices
// without shuffles.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define GN_BUFFERS 7
#define GN_READONLY 0xf
#include "gn.glsl"

#ifndef GN_THREADS
#define GN_THREADS 256
#endif
layout(local_size_x = GN_THREADS) in;

layout(constant_id = GNI_S_ROWS_KIND) const uint GN_KIND = 0u;
layout(constant_id = GNI_S_ROWS_DTYPES) const uint GN_DTYPES = 0u;
layout(constant_id = GNI_S_ROWS_LOG_LANES) const uint GN_LOG_LANES = 8u;
layout(constant_id = GNI_S_ROWS_HOW) const uint GN_HOW = 0u;
#define GN_HAS(flag) ((GN_HOW & uint(flag)) != 0u)

#define GN_INPUTS_CONST
#include "memory.glsl"
#include "math.glsl"

#define GN_LANES (1u << GN_LOG_LANES)
#define GN_X_DTYPE (GN_DTYPES & 15u)
#define GN_G_DTYPE ((GN_DTYPES >> 4) & 15u)
#define GN_Y_DTYPE ((GN_DTYPES >> 8) & 15u)
#define GN_W_DTYPE(k) ((GN_DTYPES >> (4u * (k) + 4u)) & 15u)

// Buffer arguments.
#define GN_X 0u
#define GN_G 1u      // the gradient of the result
#define GN_WEIGHT 2u
#define GN_BIAS 3u
#define GN_MEAN 4u
#define GN_SCALE 5u
#define GN_Y 6u

#define GN_ROWS GN_PARAM(GNI_P_ROWS_ROWS)
#define GN_N GN_PARAM(GNI_P_ROWS_N)
#define GN_BASE(k) GN_PARAM(uint(GNI_P_ROWS_BASE) + (k))

#define GN_IS(kind) (GN_KIND == uint(kind))
#define GN_SOFT (GN_IS(GNI_ROWS_SOFTMAX) || GN_IS(GNI_ROWS_LOG_SOFTMAX) || GN_IS(GNI_ROWS_LOGSUMEXP))
#define GN_CENTRED (GN_IS(GNI_ROWS_NORM) || GN_IS(GNI_ROWS_BACK_NORM))
#define GN_FORWARD (GN_SOFT || GN_IS(GNI_ROWS_NORM) || GN_IS(GNI_ROWS_RMS) || GN_IS(GNI_ROWS_VARIANCE))

shared vec2 gn_team[GN_THREADS];

#ifdef GN_WGSL // which has no such constant
#define gn_inf uintBitsToFloat(0x7f800000u ^ gn_zero)
#else
#define gn_inf uintBitsToFloat(0x7f800000u)
#endif

// The lanes' numbers are those of full subgroups, if there are such.
const uint GN_ALL_LANES = GN_THREADS;
uint gn_together = gl_NumSubgroups * gl_SubgroupSize == GN_ALL_LANES ? gl_SubgroupSize : 1u;
uint gn_me = gn_together > 1u ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationIndex;

// The sum, or the maximum, over the lanes of a team, for all of them.
vec2 gn_join_two(vec2 a, vec2 b, bool add) { return add ? a + b : max(a, b); }
vec2 gn_team_join(vec2 v, bool add) {
    uint n = GN_LANES;
    for (uint d = min(n, gn_together) >> 1; d > 0u; d >>= 1) v = gn_join_two(v, subgroupShuffleXor(v, d), add);
    if (n > gn_together) {
        uint first = (gn_me >> GN_LOG_LANES) * (n / gn_together);
        barrier();
        if (gn_me % gn_together == 0u) gn_team[gn_me / gn_together] = v;
        barrier();
        v = gn_team[first];
        for (uint k = 1u; k < n / gn_together; k++) v = gn_join_two(v, gn_team[first + k], add);
    }
    return v;
}

float gn_max4(vec4 x) { return max(max(x.x, x.y), max(x.z, x.w)); }
float gn_sum4(vec4 x) { return (x.x + x.y) + (x.z + x.w); }
bvec4 gn_inside(uint i) { return lessThan(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N)); }

// Group g of a row that starts at `at`; what is behind its end is any of its elements.
vec4 gn_group_read(uint k, uint t, uint at, uint g, bool group) {
    uvec4 j = at + min(4u * g + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N - 1u));
    return uintBitsToFloat(gn_widen(gn_read_raw(GN_OPEN(k), j, t, false, group), t));
}
vec4 gn_x_read(uint row, uint g) {
    return gn_group_read(GN_X, GN_X_DTYPE, GN_BASE(GN_X) + row * GN_N, g, GN_HAS(GNI_F_ROWS_GROUPS));
}
vec4 gn_g_read(uint row, uint g) {
    return gn_group_read(GN_G, GN_G_DTYPE, GN_BASE(GN_G) + row * GN_N, g, GN_HAS(GNI_F_ROWS_GROUPS));
}

// The weights of group g: one for each place of the row, or, float32, for stretches of it.
vec4 gn_weights(uint k, uint row, uint g) {
    if (!GN_HAS(GNI_F_ROWS_STRETCHES)) return gn_group_read(k, GN_W_DTYPE(k), GN_BASE(k), g, GN_HAS(GNI_F_ROWS_WEIGHT_GROUPS));
    uint inner = GN_PARAM(GNI_P_ROWS_INNER), i = 4u * g;
    uint at = GN_BASE(k) + (row % GN_PARAM(GNI_P_ROWS_PERIOD)) * GN_PARAM(GNI_P_ROWS_STRETCHES);
    GN_HANDLE h = GN_OPEN(k);
    if (inner % 4u == 0u) return vec4(uintBitsToFloat(GN_AT(h, at + min(i, GN_N - 1u) / inner)));
    uvec4 j = at + min(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N - 1u)) / inner;
    return uintBitsToFloat(uvec4(GN_AT(h, j.x), GN_AT(h, j.y), GN_AT(h, j.z), GN_AT(h, j.w)));
}

void gn_row_write(uint row, uint g, vec4 y) {
    uint at = GN_BASE(GN_Y) + row * GN_N + 4u * g;
    uvec4 v = gn_narrow(floatBitsToUint(y), GN_Y_DTYPE);
    if (GN_HAS(GNI_F_ROWS_GROUPS) && 4u * g + 4u <= GN_N) gn_write_group(GN_OPEN(GN_Y), at, GN_Y_DTYPE, v);
    else if (4u * g < GN_N) gn_write_each(GN_OPEN(GN_Y), at + uvec4(0u, 1u, 2u, 3u), GN_Y_DTYPE, v, min(GN_N - 4u * g, 4u));
}

// exp(x) for x that is not above 0, or +infinity, which softmax never comes to.
vec4 gn_exp_row(vec4 x) {
    vec4 y = mix(x, vec4(-104.0), lessThan(x, vec4(-104.0))), n, r;
    if (!GN_IS(GNI_ROWS_SOFTMAX)) y = mix(y, vec4(89.0), greaterThan(y, vec4(89.0)));
    r = gn_exp_reduce(y, n);
    return gn_scale(gn_exp_poly(r) + 1.0, ivec4(n));
}

vec4 x[GN_VECTORS], g[GN_VECTORS];
#define GN_EACH [[unroll]] for (uint v = 0u; v < GN_VECTORS; v++)

// What is taken off before exp is the maximum, unless that is infinite: the sum is infinite, 0 or NaN then, as it should be. In
// softmax such a row is all NaN. NaN may get lost in the maximum; it comes back with the sum.
vec2 gn_softmax(uint lane) {
    vec4 top4 = vec4(-gn_inf), sum4 = vec4(0.0);
    GN_EACH {
        x[v] = mix(vec4(-gn_inf), x[v], gn_inside(4u * (lane + v * GN_LANES)));
        top4 = max(top4, x[v]);
    }
    float top = gn_team_join(vec2(gn_max4(top4)), false).x;
    float shift = !GN_IS(GNI_ROWS_SOFTMAX) && gn_isinf(vec4(top)).x ? 0.0 : top;
    GN_EACH {
        vec4 e = gn_exp_row(x[v] - shift);
        sum4 += e;
        x[v] = GN_IS(GNI_ROWS_SOFTMAX) ? e : x[v] - shift;
    }
    float sum = gn_team_join(vec2(gn_sum4(sum4), 0.0), true).x;
    float f = GN_IS(GNI_ROWS_SOFTMAX) ? 1.0 / sum : gn_log(vec4(sum)).x;
    GN_EACH x[v] = GN_IS(GNI_ROWS_SOFTMAX) ? x[v] * f : x[v] - f;
    return vec2(shift, f);
}

// y (g - sum(y g)), or g - exp(y) sum(g).
void gn_softmax_back(uint lane) {
    vec4 sum4 = vec4(0.0);
    GN_EACH {
        vec4 s = GN_IS(GNI_ROWS_BACK_SOFTMAX) ? x[v] * g[v] : g[v];
        sum4 += mix(vec4(0.0), s, gn_inside(4u * (lane + v * GN_LANES)));
    }
    float sum = gn_team_join(vec2(gn_sum4(sum4), 0.0), true).x;
    GN_EACH x[v] = GN_IS(GNI_ROWS_BACK_SOFTMAX) ? x[v] * (g[v] - sum) : g[v] - gn_exp(x[v]) * sum;
}

// The variance is that about the mean as float32 has it, corrected for its rounding.
void gn_normalise(uint row, uint lane, bool writes) {
    float n = float(GN_N), mean = 0.0;
    vec4 sum4 = vec4(0.0), square4 = vec4(0.0);
    if (GN_CENTRED) {
        GN_EACH sum4 += mix(vec4(0.0), x[v], gn_inside(4u * (lane + v * GN_LANES)));
        mean = gn_team_join(vec2(gn_sum4(sum4), 0.0), true).x / n;
        sum4 = vec4(0.0);
    }
    GN_EACH {
        bvec4 inside = gn_inside(4u * (lane + v * GN_LANES));
        x[v] -= mean;
        sum4 += mix(vec4(0.0), x[v], inside);
        square4 += mix(vec4(0.0), x[v] * x[v], inside);
    }
    vec2 s = gn_team_join(vec2(gn_sum4(sum4), gn_sum4(square4)), true) / n;
    float rest = GN_CENTRED ? s.x : 0.0, var = s.y - rest * rest;
    float scale = 1.0 / sqrt((var < 0.0 ? 0.0 : var) + GN_PARAM_F(GNI_P_ROWS_EPS));
    if (writes && lane == 0u) {
        if (GN_CENTRED) gn_store(GN_MEAN, GN_BASE(GN_MEAN) + row, floatBitsToUint(mean + rest));
        gn_store(GN_SCALE, GN_BASE(GN_SCALE) + row, floatBitsToUint(scale));
    }
    GN_EACH {
        x[v] = (x[v] - rest) * scale;
        if (GN_HAS(GNI_F_ROWS_WEIGHT)) x[v] *= gn_weights(GN_WEIGHT, row, lane + v * GN_LANES);
        if (GN_HAS(GNI_F_ROWS_BIAS)) x[v] += gn_weights(GN_BIAS, row, lane + v * GN_LANES);
    }
}

// With z = (x - mean) scale and h = g w: scale (h - mean(h) - z mean(h z)).
void gn_normalise_back(uint row, uint lane) {
    float mean = GN_CENTRED ? uintBitsToFloat(gn_load(GN_MEAN, GN_BASE(GN_MEAN) + row)) : 0.0;
    float scale = uintBitsToFloat(gn_load(GN_SCALE, GN_BASE(GN_SCALE) + row)), n = float(GN_N);
    vec4 h4 = vec4(0.0), hz4 = vec4(0.0);
    GN_EACH {
        bvec4 inside = gn_inside(4u * (lane + v * GN_LANES));
        x[v] = (x[v] - mean) * scale;
        if (GN_HAS(GNI_F_ROWS_WEIGHT)) g[v] *= gn_weights(GN_WEIGHT, row, lane + v * GN_LANES);
        h4 += mix(vec4(0.0), g[v], inside);
        hz4 += mix(vec4(0.0), g[v] * x[v], inside);
    }
    vec2 s = gn_team_join(vec2(gn_sum4(h4), gn_sum4(hz4)), true) / n;
    GN_EACH x[v] = ((g[v] - x[v] * s.y) - (GN_CENTRED ? s.x : 0.0)) * scale;
}

// About the first element, then about the mean; infinite where squares leave the range, and NaN where an element is not finite.
float gn_variance(uint row, uint lane) {
    float n = float(GN_N), first = gn_x_read(row, 0u).x;
    vec4 sum4 = vec4(0.0), square4 = vec4(0.0), beyond4 = vec4(0.0);
    GN_EACH {
        x[v] = mix(vec4(first), x[v], gn_inside(4u * (lane + v * GN_LANES)));
        beyond4 += mix(vec4(1.0), vec4(0.0), gn_isfinite(x[v]));
        x[v] -= first;
        sum4 += x[v];
    }
    vec2 s = gn_team_join(vec2(gn_sum4(sum4), gn_sum4(beyond4)), true);
    float mean = s.x / n, beyond = s.y;
    sum4 = vec4(0.0);
    GN_EACH {
        x[v] = mix(vec4(0.0), x[v] - mean, gn_inside(4u * (lane + v * GN_LANES)));
        sum4 += x[v];
        square4 += x[v] * x[v];
    }
    s = gn_team_join(vec2(gn_sum4(sum4), gn_sum4(square4)), true);
    float rest = s.y - s.x * s.x / n;
    uint size = floatBitsToUint(rest) & 0x7fffffffu;
    if (size >= 0x7f800000u) rest = beyond > 0.0 ? uintBitsToFloat(0x7fc00000u) : gn_inf;
    vec4 var = gn_div(vec4(rest < 0.0 ? 0.0 : rest), vec4(GN_PARAM_F(GNI_P_ROWS_EPS)));
    return GN_HAS(GNI_F_ROWS_ROOT) ? gn_sqrt(var).x : var.x;
}

void main() {
    uint lane = gn_me & (GN_LANES - 1u), teams = uint(GN_THREADS) >> GN_LOG_LANES, groups = (GN_N + 3u) / 4u;
    for (uint first = gl_WorkGroupID.x * teams; first < GN_ROWS; first += gl_NumWorkGroups.x * teams) {
        // Lanes of rows that do not exist work on the last one and write nothing.
        uint row = first + (gn_me >> GN_LOG_LANES), from = min(row, GN_ROWS - 1u);
        vec2 f = vec2(0.0);
        GN_EACH {
            x[v] = g[v] = vec4(0.0);
            if (lane + v * GN_LANES < groups) {
                x[v] = gn_x_read(from, lane + v * GN_LANES);
                if (!GN_FORWARD) g[v] = gn_g_read(from, lane + v * GN_LANES);
            }
        }
        if (GN_SOFT) f = gn_softmax(lane);
        else if (GN_IS(GNI_ROWS_NORM) || GN_IS(GNI_ROWS_RMS)) gn_normalise(from, lane, row < GN_ROWS);
        else if (GN_IS(GNI_ROWS_BACK_NORM) || GN_IS(GNI_ROWS_BACK_RMS)) gn_normalise_back(from, lane);
        else if (GN_IS(GNI_ROWS_VARIANCE)) f.x = gn_variance(from, lane);
        else gn_softmax_back(lane);
        if (GN_IS(GNI_ROWS_LOGSUMEXP)) {
            if (lane == 0u && row < GN_ROWS) {
                gn_store(GN_Y, GN_BASE(GN_Y) + 2u * row, floatBitsToUint(f.x));
                gn_store(GN_Y, GN_BASE(GN_Y) + 2u * row + 1u, floatBitsToUint(f.y));
            }
        } else if (GN_IS(GNI_ROWS_VARIANCE)) {
            uint y = gn_narrow(uvec4(floatBitsToUint(f.x)), GN_Y_DTYPE).x;
            if (lane == 0u && row < GN_ROWS) gn_write_one(GN_OPEN(GN_Y), GN_BASE(GN_Y) + row, gn_packing(GN_Y_DTYPE), y);
        } else if (row < GN_ROWS) {
            GN_EACH gn_row_write(row, lane + v * GN_LANES, x[v]);
        }
    }
}
