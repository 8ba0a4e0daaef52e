#version 450
// softmax, log_softmax and logsumexp over rows of n elements (gni_softmax).
//
//! variant softmax_1 -DGN_VECTORS=1
//! variant softmax_4 -DGN_VECTORS=4
//! variant softmax_8 -DGN_VECTORS=8
//! variant softmax_wide -DGN_VECTORS=8 -DGN_THREADS=512
//! variant softmax_long -DGN_LONG
//
// Short rows: a team of lanes holds its row in registers, GN_VECTORS groups of 4 each. Long rows: the
// maximum and the sum are kept up while reading, and the row is read again to write it. Few long rows
// are split: one dispatch leaves (maximum, sum) of each split, the next joins them and writes.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 3
#define GN_READONLY 1
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "math.glsl"

#ifndef GN_THREADS
#define GN_THREADS 256
#endif
layout(local_size_x = GN_THREADS) in;

layout(constant_id = GNI_S_SOFTMAX_KIND) const uint GN_KIND = 0u;
layout(constant_id = GNI_S_SOFTMAX_DTYPE) const uint GN_DTYPES = 0u;
layout(constant_id = GNI_S_SOFTMAX_LOG_LANES) const uint GN_LOG_LANES = 8u;
layout(constant_id = GNI_S_SOFTMAX_ALIGNED) const uint GN_ALIGNED = 0u;
layout(constant_id = GNI_S_SOFTMAX_PHASE) const uint GN_PHASE = 3u;
#define GN_DTYPE (GN_DTYPES & 15u)
#define GN_OUT_DTYPE (GN_DTYPES >> 4)
#define GN_SOFTMAX 0u
#define GN_LOG_SOFTMAX 1u
#define GN_LOGSUMEXP 2u
#define GN_LANES (1u << GN_LOG_LANES)

#define GN_ROWS GN_PARAM(GNI_P_SOFTMAX_ROWS)
#define GN_N GN_PARAM(GNI_P_SOFTMAX_N)
#define GN_ROW_STRIDE GN_PARAM(GNI_P_SOFTMAX_ROW_STRIDE)
#define GN_IN_BASE GN_PARAM(GNI_P_SOFTMAX_IN_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_SOFTMAX_OUT_BASE)
#define GN_SPLITS GN_PARAM(GNI_P_SOFTMAX_SPLITS)
#define GN_CHUNK GN_PARAM(GNI_P_SOFTMAX_CHUNK)

shared float gn_team[GN_THREADS];
shared float gn_team2[GN_THREADS];

#ifdef GN_WGSL // which has no such constant
#define gn_inf uintBitsToFloat(0x7f800000u ^ gn_zero)
#else
#define gn_inf uintBitsToFloat(0x7f800000u)
#endif

// NaN may get lost here: it comes back with the sum.
float gn_max4(vec4 x) { return max(max(x.x, x.y), max(x.z, x.w)); }

#ifdef GN_LONG
// Groups are those of memory, which a row may begin within: `lead` elements behind the first one's start.
uint gn_lead(uint row) { return (GN_IN_BASE + row * GN_ROW_STRIDE) & 3u; }
vec4 gn_row_read(uint row, uint g) {
    uint at = GN_IN_BASE + row * GN_ROW_STRIDE, lead = at & 3u;
    uvec4 v = gn_widen(gn_read_raw(GN_OPEN(0u), uvec4(at - lead + 4u * g), GN_DTYPE, false, true), GN_DTYPE);
    uint i = 4u * g - lead;
    // Those in front of the row are far behind its end.
    if (i >= GN_N || i + 4u > GN_N)
        v = mix(v, uvec4(0xff800000u), greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N)));
    return uintBitsToFloat(v);
}

void gn_row_write(uint row, uint g, vec4 y) {
    uint at = GN_OUT_BASE + row * GN_N, i = 4u * g - gn_lead(row);
    uvec4 v = gn_narrow(floatBitsToUint(y), GN_OUT_DTYPE);
    if (((at + i) & 3u) == 0u && i < GN_N && i + 4u <= GN_N) {
        gn_write_group(GN_OPEN(1u), at + i, GN_OUT_DTYPE, v);
    } else {
        for (uint e = 0u; e < 4u; e++)
            if (i + e < GN_N) gn_write_one(GN_OPEN(1u), at + i + e, gn_packing(GN_OUT_DTYPE), v[e]);
    }
}
#else
vec4 gn_row_read(uint row, uint g) {
    uint at = GN_IN_BASE + row * GN_ROW_STRIDE, i = 4u * g;
    bool group = (GN_ALIGNED & GNI_F_SOFTMAX_IN_GROUPS) != 0u;
    uvec4 j = at + min(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N - 1u));
    uvec4 v = gn_widen(gn_read_raw(GN_OPEN(0u), j, GN_DTYPE, false, group), GN_DTYPE);
    return uintBitsToFloat(mix(v, uvec4(0xff800000u), greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_N))));
}

void gn_row_write(uint row, uint g, vec4 y) {
    uint at = GN_OUT_BASE + row * GN_N + 4u * g;
    uvec4 v = gn_narrow(floatBitsToUint(y), GN_OUT_DTYPE);
    if ((GN_ALIGNED & GNI_F_SOFTMAX_OUT_GROUPS) != 0u && 4u * g + 4u <= GN_N) gn_write_group(GN_OPEN(1u), at, GN_OUT_DTYPE, v);
    else if (4u * g < GN_N) gn_write_each(GN_OPEN(1u), at + uvec4(0u, 1u, 2u, 3u), GN_OUT_DTYPE, v, min(GN_N - 4u * g, 4u));
}
#endif

// What is taken off the elements before exp: the maximum, unless that is infinite. The sum is infinite,
// 0 or NaN then, as it should be. In softmax such a row is all NaN.
float gn_row_shift(float top) { return GN_KIND != GN_SOFTMAX && gn_isinf(vec4(top)).x ? 0.0 : top; }

// From the sum to what finishes an element.
float gn_row_finish(float sum) { return GN_KIND == GN_SOFTMAX ? 1.0 / sum : gn_log(vec4(sum)).x; }

// exp(x) for x that is not above 0, or +infinity, which softmax never comes to.
vec4 gn_exp_row(vec4 x) {
    vec4 y = mix(x, vec4(-104.0), lessThan(x, vec4(-104.0))), n, r;
    if (GN_KIND != GN_SOFTMAX) y = mix(y, vec4(89.0), greaterThan(y, vec4(89.0)));
    r = gn_exp_reduce(y, n);
#ifdef GN_WGSL // whose compilers may suppose that there is no NaN
    return gn_mix_nan(gn_scale(gn_exp_poly(r) + 1.0, ivec4(n)), x);
#else
    return gn_scale(gn_exp_poly(r) + 1.0, ivec4(n));
#endif
}

void gn_row_result(uint row, float shift, float l) {
    gn_store(1u, GN_OUT_BASE + 2u * row, floatBitsToUint(shift));
    gn_store(1u, GN_OUT_BASE + 2u * row + 1u, floatBitsToUint(l));
}

#ifndef GN_LONG

// The maximum or the sum over the lanes of a team, for all of them.
float gn_join_two(float v, float w, bool add) { return add ? v + w : max(v, w); }
float gn_team_join(uint lane, float v, bool add) {
    uint me = gl_LocalInvocationIndex, first = me - lane, n = min(GN_LANES, 16u);
    barrier();
    gn_team[me] = v;
    barrier();
    // Two steps instead of a tree: waiting for each other takes longer than a few sums.
    if (GN_LANES > 16u) {
        if (lane < 16u) {
            for (uint k = lane + 16u; k < GN_LANES; k += 16u) v = gn_join_two(v, gn_team[first + k], add);
            gn_team2[me] = v;
        }
        barrier();
        v = gn_team2[first];
        for (uint k = 1u; k < 16u; k++) v = gn_join_two(v, gn_team2[first + k], add);
    } else {
        v = gn_team[first];
        for (uint k = 1u; k < n; k++) v = gn_join_two(v, gn_team[first + k], add);
    }
    return v;
}

void main() {
    uint me = gl_LocalInvocationIndex, lane = me & (GN_LANES - 1u), teams = uint(GN_THREADS) >> GN_LOG_LANES;
    uint groups = (GN_N + 3u) / 4u;
    for (uint first = gl_WorkGroupID.x * teams; first < GN_ROWS; first += gl_NumWorkGroups.x * teams) {
        // Lanes of rows that do not exist work on the last one and write nothing.
        uint row = first + (me >> GN_LOG_LANES), from = min(row, GN_ROWS - 1u);
        vec4 x[GN_VECTORS];
        [[unroll]] for (uint v = 0u; v < GN_VECTORS; v++) {
            x[v] = vec4(-gn_inf);
            if (lane + v * GN_LANES < groups) x[v] = gn_row_read(from, lane + v * GN_LANES);
        }
        vec4 top4 = x[0];
        [[unroll]] for (uint v = 1u; v < GN_VECTORS; v++) top4 = max(top4, x[v]);
        float top = gn_team_join(lane, gn_max4(top4), false), shift = gn_row_shift(top);
        precise vec4 sum4 = vec4(0.0);
        [[unroll]] for (uint v = 0u; v < GN_VECTORS; v++) {
            vec4 e = gn_exp_row(x[v] - shift);
            sum4 += e;
            x[v] = GN_KIND == GN_SOFTMAX ? e : x[v] - shift;
        }
        float sum = gn_team_join(lane, (sum4.x + sum4.y) + (sum4.z + sum4.w), true);
        float f = gn_row_finish(sum);
        // One end for all, so that barriers stay in uniform control flow.
        if (GN_KIND == GN_LOGSUMEXP) {
            if (lane == 0u && row < GN_ROWS) gn_row_result(row, shift, f);
        } else if (row < GN_ROWS) {
            [[unroll]] for (uint v = 0u; v < GN_VECTORS; v++)
                gn_row_write(row, lane + v * GN_LANES, GN_KIND == GN_SOFTMAX ? x[v] * f : x[v] - f);
        }
    }
}

#else

// Sum and what rounding cut off it.
void gn_add_to(inout vec4 s, inout vec4 c, vec4 v) {
    precise vec4 y = v - c;
    precise vec4 t = s + y;
    precise vec4 d = (t - s) - y;
    s = t;
    c = d;
}

// exp(v - top) for v of at most top, where both may be -inf.
vec4 gn_exp_below(vec4 v, float top) {
    vec4 y = v - (floatBitsToUint(top) == 0xff800000u ? 0.0 : top), n, r;
    r = gn_exp_reduce(mix(y, vec4(-104.0), lessThan(y, vec4(-104.0))), n);
    return gn_scale_down(gn_exp_poly(r) + 1.0, gn_int(n));
}

// The same for a sum that has a 1 among its terms: e^-87 for all that is less. `top` is finite, or what comes out is not used.
vec4 gn_exp_term(vec4 v, float top) {
    precise vec4 y = max(v - top, vec4(-87.0)), t = fma(y, vec4(1.44269502), vec4(12582912.0)); // rounds to an integer
    precise vec4 n = t - 12582912.0, r = fma(n, vec4(-0.693145752), y);
    r = fma(n, vec4(-1.42860677e-06), r);
    return (gn_exp_poly(r) + 1.0) * uintBitsToFloat((floatBitsToUint(t) << 23) + 0x3f800000u);
}

// (top, sum) over the workgroup, for all of it.
vec2 gn_all_join(float top, float sum) {
    uint me = gl_LocalInvocationIndex;
    barrier();
    gn_team[me] = top;
    gn_team2[me] = sum;
    for (uint s = 128u; s > 0u; s >>= 1) {
        barrier();
        if (me < s) {
            float t = gn_team[me + s], m = gn_max(vec4(top), vec4(t)).x;
            vec4 e = gn_exp_below(vec4(top, t, top, t), m);
            sum = sum * e.x + gn_team2[me + s] * e.y;
            top = m;
            gn_team[me] = top;
            gn_team2[me] = sum;
        }
    }
    barrier();
    return vec2(gn_team[0], gn_team2[0]);
}

// (maximum, sum) of this invocation's groups of the row. A NaN becomes the maximum and stays it.
vec2 gn_measure(uint row, uint first, uint end) {
    float top = -gn_inf;
    vec4 s = vec4(0.0), c = vec4(0.0);
    for (uint g = first + gl_LocalInvocationIndex; g < end; g += 1024u) {
        vec4 x[4];
        [[unroll]] for (uint u = 0u; u < 4u; u++) {
            x[u] = vec4(-gn_inf);
            if (g + 256u * u < end) x[u] = gn_row_read(row, g + 256u * u);
        }
        float m = max(gn_max4(max(max(x[0], x[1]), max(x[2], x[3]))), top);
        uvec4 most = max(max(GN_BITS_MAG(x[0]), GN_BITS_MAG(x[1])), max(GN_BITS_MAG(x[2]), GN_BITS_MAG(x[3])));
        uint largest = max(max(most.x, most.y), max(most.z, most.w));
        if (largest > 0x7f800000u || gn_isnan(vec4(top)).x) m = uintBitsToFloat(largest | 0x7fc00000u);
        if (floatBitsToUint(m) != floatBitsToUint(top)) { // from -inf on: what was summed up is nothing
            vec4 f = gn_exp_below(vec4(top), m);
            s *= f;
            c *= f;
            top = m;
        }
        float shift = floatBitsToUint(top) == 0xff800000u ? 0.0 : top;
        [[unroll]] for (uint u = 0u; u < 4u; u++) x[u] = gn_exp_term(x[u], shift);
        gn_add_to(s, c, (x[0] + x[1]) + (x[2] + x[3]));
    }
    float sum = (s.x + s.y) + (s.z + s.w);
    if (!gn_isfinite(vec4(top)).x) sum = floatBitsToUint(top) == 0xff800000u ? 0.0 : gn_nan_of(vec4(top)).x;
    return vec2(top, sum);
}

void main() {
    uint me = gl_LocalInvocationIndex, split = gl_WorkGroupID.y, first = split * GN_CHUNK;
    for (uint row = gl_WorkGroupID.x; row < GN_ROWS; row += gl_NumWorkGroups.x) {
        vec2 r = vec2(-gn_inf, 0.0);
        uint groups = (GN_N + gn_lead(row) + 3u) / 4u, end = split + 1u < GN_SPLITS ? first + GN_CHUNK : groups;
        if ((GN_PHASE & GNI_F_SOFTMAX_MEASURES) != 0u) {
            r = gn_measure(row, first, end);
        } else {
            for (uint p = me; p < GN_SPLITS; p += 256u) { // at most 256 splits
                uvec2 w = gn_load2(2u, row * GN_SPLITS + p);
                r = uintBitsToFloat(w);
            }
        }
        r = gn_all_join(r.x, r.y);
        if (GN_PHASE == GNI_F_SOFTMAX_MEASURES) {
            if (me == 0u) gn_store2(2u, row * GN_SPLITS + split, floatBitsToUint(r));
            continue;
        }
        float shift = gn_row_shift(r.x);
        // What was summed up is relative to the maximum.
        if (GN_KIND != GN_SOFTMAX && floatBitsToUint(r.x) == 0x7f800000u) r.y = gn_inf;
        float f = gn_row_finish(r.y);
        if (GN_KIND == GN_LOGSUMEXP) {
            if (me == 0u) gn_row_result(row, shift, f);
            continue;
        }
        for (uint g = first + me; g < end; g += 1024u) {
            vec4 x[4];
            [[unroll]] for (uint u = 0u; u < 4u; u++)
                if (g + 256u * u < end) x[u] = gn_row_read(row, g + 256u * u) - shift;
            [[unroll]] for (uint u = 0u; u < 4u; u++)
                if (g + 256u * u < end) gn_row_write(row, g + 256u * u, GN_KIND == GN_SOFTMAX ? gn_exp(x[u]) * f : x[u] - f);
        }
    }
}

#endif
