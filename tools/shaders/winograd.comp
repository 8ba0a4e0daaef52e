#version 450
// Convolutions with kernels of 3x3 by tiles of 4x4 results: Winograd's F(4x4, 3x3), for points 0, 3/4, -3/4, 3/2, -3/2 and
// infinity, whose rounding errors are half of those for 1 and 2. A tile of 6x6 of the image becomes 36 numbers, a kernel
// as well, and for each of the 36 a product of matrices sums over the channels: a quarter of the multiplications.
//
//   step 0   x (n, c, h, w) to (36, c, tiles)                     B' d B
//   step 1   the gradient of y (n, o, h, w) to (36, o, tiles)     A g A'
//   step 2   w (o, c, 3, 3) to (36, o, c)                         G w G'
//   step 3   (36, o, tiles) to y                                  A' m A
//   step 4   (36, o, c) to the gradient of w                      G' m G
//
// Behind the 36 of steps 0 to 2 lies what is largest in each workgroup's, infinities and NaN left out: for each channel one
// number of 128 tiles or c.
//
// An invocation has one tile of a channel (steps 2 and 4: one c of an o). Results that are not finite are made again as they
// are defined: one number too large in a tile spoils the whole of it. They are rare, or all is lost anyway.
//
//! no-bindings
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define GN_BUFFERS 4     // 0: what is transformed, 1: what comes out. Steps 3 and 4: 2: x, 3: w or the gradient of y
#define GN_READONLY 0xd
#include "gn.glsl"
#include "divide.glsl"

layout(local_size_x = 128) in;
layout(constant_id = GNI_S_WINOGRAD_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_WINOGRAD_GROUPS) const uint GN_GROUPS = 0u; // rows of x or y come in aligned groups of 4, and one place is in front of x

#define GN_TILES GN_PARAM(GNI_P_WINOGRAD_TILES)
#define GN_CHANNELS GN_PARAM(GNI_P_WINOGRAD_CHANNELS)

// Where element (n, channel, y, x) of buffer k is, whose base and strides are parameters from p on.
uint gn_place(uint p, uint n, uint channel, uvec2 at) {
    return GN_PARAM(p) + n * GN_PARAM(p + 1u) + channel * GN_PARAM(p + 2u) + at.y * GN_PARAM(p + 3u) + at.x * GN_PARAM(p + 4u);
}

// The transforms of a row or a column.
void gn_of_image(inout float d[6]) {
    float a = d[4] - 2.25 * d[2], b = 0.75 * d[3] - 1.6875 * d[1], e = d[4] - 0.5625 * d[2], f = 1.5 * d[3] - 0.84375 * d[1];
    float first = 1.265625 * d[0] - 2.8125 * d[2] + d[4], last = 1.265625 * d[1] - 2.8125 * d[3] + d[5];
    d = float[6](first, a + b, a - b, e + f, e - f, last);
}
void gn_of_gradient(inout float d[6]) { // of 4
    float a = d[0] + 0.5625 * d[2], b = 0.75 * d[1] + 0.421875 * d[3], e = d[0] + 2.25 * d[2], f = 1.5 * d[1] + 3.375 * d[3];
    d = float[6](d[0], a + b, a - b, e + f, e - f, d[3]);
}
void gn_of_kernel(inout float d[6]) { // of 3
    const float h = 128.0 / 243.0, i = 8.0 / 27.0, j = 32.0 / 81.0;
    float a = -h * d[0] - i * d[2], b = j * d[1], e = 0.25 * h * d[0] + i * d[2], f = 0.5 * j * d[1];
    d = float[6](64.0 / 81.0 * d[0], a - b, a + b, e + f, e - f, d[2]);
}
void gn_to_result(inout float d[6]) { // 4 come out
    float a = d[1] + d[2], b = d[1] - d[2], e = d[3] + d[4], f = d[3] - d[4];
    d = float[6](d[0] + a + e, 0.75 * b + 1.5 * f, 0.5625 * a + 2.25 * e, 0.421875 * b + 3.375 * f + d[5], 0.0, 0.0);
}
void gn_to_kernel(inout float d[6]) { // 3 come out
    const float h = 128.0 / 243.0, i = 8.0 / 27.0, j = 32.0 / 81.0;
    float a = d[1] + d[2], b = d[1] - d[2], e = d[3] + d[4], f = d[3] - d[4];
    d = float[6](64.0 / 81.0 * d[0] - h * a + 0.25 * h * e, 0.5 * j * f - j * b, i * (e - a) + d[5], 0.0, 0.0, 0.0);
}
void gn_transform(inout float d[6]) {
    if (GN_STEP == 0u) gn_of_image(d);
    else if (GN_STEP == 1u) gn_of_gradient(d);
    else if (GN_STEP == 2u) gn_of_kernel(d);
    else if (GN_STEP == 3u) gn_to_result(d);
    else gn_to_kernel(d);
}

bool gn_is_finite(float v) { return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u; }

float gn_number(uint k, uint at) { return uintBitsToFloat(k == 2u ? gn_fetch(2u, at) : gn_fetch(3u, at)); }
// Of x, with zeros around it; y and x count from the first place that a window covers.
float gn_of_x(uint n, uint channel, uvec2 at) {
    at -= uvec2(GN_PARAM(GNI_P_WINOGRAD_BEFORE), GN_PARAM(GNI_P_WINOGRAD_BEFORE + 1u));
    bool inside = at.x < GN_PARAM(GNI_P_WINOGRAD_X_HAVE) && at.y < GN_PARAM(GNI_P_WINOGRAD_X_HAVE + 1u);
    return inside ? gn_number(2u, gn_place(GNI_P_WINOGRAD_X, n, channel, at)) : 0.0;
}

// One y as it is defined.
float gn_slow_result(uint n, uint o, uvec2 at) {
    float sum = 0.0;
    for (uint c = 0u; c < GN_PARAM(GNI_P_WINOGRAD_DEPTH); c++)
        for (uint tap = 0u; tap < 9u; tap++) {
            uvec2 shift = uvec2(tap % 3u, tap / 3u);
            sum += gn_of_x(n, c, at + shift) * gn_number(3u, gn_place(GNI_P_WINOGRAD_W, o, c, shift));
        }
    return sum;
}

// One tap's gradient, by the workgroup. What it is comes to its first invocation.
shared float gn_sums[128];
float gn_slow_kernel(uint o, uint c, uvec2 shift) {
    uint me = gl_LocalInvocationIndex;
    uvec2 size = uvec2(GN_PARAM(GNI_P_WINOGRAD_PLACES), GN_PARAM(GNI_P_WINOGRAD_PLACES + 1u));
    float sum = 0.0;
    for (uint n = 0u; n < GN_PARAM(GNI_P_WINOGRAD_DEPTH); n++)
        for (uint i = me; i < size.x * size.y; i += 128u) {
            uvec2 at = uvec2(i % size.x, i / size.x);
            sum += gn_of_x(n, c, at + shift) * gn_number(3u, gn_place(GNI_P_WINOGRAD_W, n, o, at));
        }
    barrier();
    gn_sums[me] = sum;
    barrier();
    for (uint i = 64u; i > 0u; i /= 2u) {
        if (me < i) gn_sums[me] += gn_sums[me + i];
        barrier();
    }
    return gn_sums[0];
}
shared uint gn_spoilt[4], gn_most;

void main() {
    uint me = gl_LocalInvocationIndex, t = gl_WorkGroupID.x * 128u + me, channel = gl_WorkGroupID.y;
    if (GN_STEP < 3u) {
        if (me == 0u) gn_most = 0u;
        barrier();
    }
    bool there = t < GN_TILES, exists = true, images = GN_STEP != 2u && GN_STEP != 4u;
    uint n = channel, inner = t; // of kernels
    uvec2 at = uvec2(0u);
    if (images) {
        uint row = gn_over(t, GNI_P_WINOGRAD_OF_X), q = gn_over(row, GNI_P_WINOGRAD_OF_Y);
        at = 4u * uvec2(t - row * GN_PARAM(GNI_P_WINOGRAD_OF_X), row - q * GN_PARAM(GNI_P_WINOGRAD_OF_Y));
        n = q;
        inner = channel;
        exists = n < GN_PARAM(GNI_P_WINOGRAD_IMAGES);
    }
    const uint have = GN_STEP == 1u ? 4u : GN_STEP == 2u ? 3u : 6u, give = GN_STEP == 3u ? 4u : GN_STEP == 4u ? 3u : 6u;
    float d[6][6]; // rows
    uint step = GN_CHANNELS * GN_TILES, e = GN_PARAM(GNI_P_WINOGRAD_TO) + channel * GN_TILES + t;
    if (GN_STEP < 3u) {
        uvec2 from = at, size = uvec2(GN_PARAM(GNI_P_WINOGRAD_HAVE), GN_PARAM(GNI_P_WINOGRAD_HAVE + 1u));
        if (GN_STEP == 0u) from -= uvec2(GN_PARAM(GNI_P_WINOGRAD_BEFORE), GN_PARAM(GNI_P_WINOGRAD_BEFORE + 1u));
        uint row = GN_PARAM(GNI_P_WINOGRAD_PLAIN + 3u), column = GN_PARAM(GNI_P_WINOGRAD_PLAIN + 4u);
        uint place = gn_place(GNI_P_WINOGRAD_PLAIN, n, inner, from), lead = GN_STEP == 0u ? 1u : 0u;
        [[unroll]] for (uint i = 0u; i < 6u; i++) {
            bool inside = there && exists && i < have && from.y + i < size.y; // what is in front of the image is very large
            uint first = place + i * row;
            d[i] = float[6](0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
            if (GN_GROUPS != 0u) {
                vec4 v = inside ? uintBitsToFloat(gn_fetch4(0u, (first + lead) / 4u)) : vec4(0.0);
                [[unroll]] for (uint j = 0u; j < 4u; j++) d[i][lead + j] = v[j];
                if (GN_STEP == 0u && inside && at.x > 0u) d[i][0] = uintBitsToFloat(gn_fetch(0u, first));
                if (GN_STEP == 0u && inside && at.x + 4u < size.x) d[i][5] = uintBitsToFloat(gn_fetch(0u, first + 5u));
            } else
                [[unroll]] for (uint j = 0u; j < 6u; j++)
                    if (inside && j < have && from.x + j < size.x) d[i][j] = uintBitsToFloat(gn_fetch(0u, first + j * column));
        }
    } else
        [[unroll]] for (uint i = 0u; i < 36u; i++) d[i / 6u][i % 6u] = there ? uintBitsToFloat(gn_fetch(0u, e + i * step)) : 0.0;
    [[unroll]] for (uint i = 0u; i < 6u; i++)
        if (i < have) gn_transform(d[i]);
    [[unroll]] for (uint j = 0u; j < 6u; j++) {
        if (j >= give) continue;
        float column[6] = float[6](d[0][j], d[1][j], d[2][j], d[3][j], d[4][j], d[5][j]);
        gn_transform(column);
        [[unroll]] for (uint i = 0u; i < 6u; i++) d[i][j] = column[i];
    }
    if (GN_STEP < 3u) {
        uint most = 0u;
        [[unroll]] for (uint i = 0u; i < 36u; i++) {
            uint v = floatBitsToUint(d[i / 6u][i % 6u]), size = v & 0x7fffffffu;
            if (there) gn_store(1u, e + i * step, v);
            if (size < 0x7f800000u) most = max(most, size);
        }
        most = subgroupMax(most);
        if (subgroupElect()) atomicMax(gn_most, most);
        barrier();
        if (me == 0u) gn_store(1u, GN_PARAM(GNI_P_WINOGRAD_TO) + 36u * step + channel * gl_NumWorkGroups.x + gl_WorkGroupID.x, gn_most);
        return;
    }
    if (!exists) return;
    bool spoilt = false;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) spoilt = spoilt || (i < give && j < give && !gn_is_finite(d[i][j]));
    uvec2 size = GN_STEP == 4u ? uvec2(3u) : uvec2(GN_PARAM(GNI_P_WINOGRAD_HAVE), GN_PARAM(GNI_P_WINOGRAD_HAVE + 1u));
    uint to = gn_place(GNI_P_WINOGRAD_PLAIN, n, inner, at), row = GN_PARAM(GNI_P_WINOGRAD_PLAIN + 3u),
         column = GN_PARAM(GNI_P_WINOGRAD_PLAIN + 4u);
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        if (!there || at.y + i >= size.y || (GN_STEP == 4u && spoilt)) continue;
        if (GN_STEP == 3u && GN_GROUPS != 0u)
            gn_store4(1u, (to + i * row) / 4u, floatBitsToUint(vec4(d[i][0], d[i][1], d[i][2], d[i][3])));
        else
            [[unroll]] for (uint j = 0u; j < 4u; j++)
                if (at.x + j < size.x) gn_store(1u, to + i * row + j * column, floatBitsToUint(d[i][j]));
    }
    if (GN_STEP == 3u) {
        if (!there || !spoilt) return;
        [[dont_unroll]] for (uint e = 0u; e < 16u; e++) {
            uvec2 p = at + uvec2(e % 4u, e / 4u);
            if (p.x < size.x && p.y < size.y)
                gn_store(1u, to + e / 4u * row + e % 4u * column, floatBitsToUint(gn_slow_result(n, inner, p)));
        }
        return;
    }
    if (me < 4u) gn_spoilt[me] = 0u;
    barrier();
    if (there && spoilt) atomicOr(gn_spoilt[me / 32u], 1u << me % 32u);
    barrier();
    if ((gn_spoilt[0] | gn_spoilt[1] | gn_spoilt[2] | gn_spoilt[3]) == 0u) return;
    for (uint e = 0u; e < 128u; e++) {
        if ((gn_spoilt[e / 32u] >> e % 32u & 1u) == 0u) continue;
        uint c = gl_WorkGroupID.x * 128u + e;
        for (uint tap = 0u; tap < 9u; tap++) {
            uvec2 shift = uvec2(tap % 3u, tap / 3u);
            float v = gn_slow_kernel(channel, c, shift);
            if (me == 0u) gn_store(1u, gn_place(GNI_P_WINOGRAD_PLAIN, channel, c, shift), floatBitsToUint(v));
        }
    }
}
