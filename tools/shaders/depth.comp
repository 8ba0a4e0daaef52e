#version 450
// Convolutions of each channel with a kernel of its own, of images (n, c, h, w) with any strides. Results are in C order.
//
// GNI_DEPTH_FORWARD  y[Y, X] takes x[Y stride + ky dilation - pad, ...] w[ky, kx]
// GNI_DEPTH_BACK     the gradient of x from that of y
// GNI_DEPTH_WEIGHT   that of w from x and that of y, of a part of the images for each workgroup: (parts, c, taps), float32
//
//! no-bindings
//! variant depth -DGN_TAPS=GNI_DEPTH_FEW
//! variant depth_large -DGN_TAPS=GNI_DEPTH_TAPS
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#define GN_READONLY 2
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "divide.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_DEPTH_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_DEPTH_IN) const uint GN_IN = 0u;
layout(constant_id = GNI_S_DEPTH_OUT) const uint GN_OUT = 0u;
layout(constant_id = GNI_S_DEPTH_ROWS) const uint GN_ROWS = 3u;
layout(constant_id = GNI_S_DEPTH_COLUMNS) const uint GN_COLUMNS = 3u;
layout(constant_id = GNI_S_DEPTH_DOWN) const uint GN_DOWN = 1u; // strides
layout(constant_id = GNI_S_DEPTH_ACROSS) const uint GN_ACROSS = 1u;

// Buffers: what is read by taps; w, or the gradient of y; results.
#define GN_N GN_PARAM(GNI_P_DEPTH_N) // elements of the result, or of the gradient of y in a channel
#define GN_FROM_H GN_PARAM(GNI_P_DEPTH_FROM)
#define GN_FROM_W GN_PARAM(GNI_P_DEPTH_FROM + 1)
#define GN_PAD_H GN_PARAM(GNI_P_DEPTH_PAD)
#define GN_PAD_W GN_PARAM(GNI_P_DEPTH_PAD + 1)
#define GN_DILATION_H GN_PARAM(GNI_P_DEPTH_DILATION)
#define GN_DILATION_W GN_PARAM(GNI_P_DEPTH_DILATION + 1)
#define GN_STEP_IN(i) GN_PARAM(GNI_P_DEPTH_IN + 1 + (i))
#define GN_STEP_OTHER(i) GN_PARAM(GNI_P_DEPTH_OTHER + 1 + (i))
#define GN_OUT_BASE GN_PARAM(GNI_P_DEPTH_OUT)
#define GN_PARTS GN_PARAM(GNI_P_DEPTH_PARTS)

// Elements j.x and j.y of a buffer, or 0.
vec2 gn_pair(uint k, uvec2 j, bvec2 inside) {
    uint s = gn_packing(GN_IN);
    uvec4 w = uvec4(0u);
    if (inside.x) w.x = gn_fetch(k, j.x >> s);
    if (inside.y) w.y = gn_fetch(k, j.y >> s);
    return uintBitsToFloat(gn_widen(gn_extract(w, j.xyxy, s), GN_IN)).xy;
}

// Where a tap of the places `at` reads on an axis: false where that is outside.
bvec2 gn_read_at(inout uvec2 at, uint tap, uint stride, uint pad, uint dilation, uint have) {
    if (GN_STEP == GNI_DEPTH_BACK) {
        at = at + pad - tap * dilation;
        uvec2 q = at / stride; // what is below 0 is large
        bvec2 ok = equal(q * stride, at);
        at = q;
        return bvec2(ok.x && q.x < have, ok.y && q.y < have);
    }
    at = at * stride + tap * dilation - pad;
    return lessThan(at, uvec2(have));
}

// Places of elements e: image, channel, row and column.
void gn_places(uvec2 e, out uvec2 n, out uvec2 c, out uvec2 y, out uvec2 x) {
    for (uint i = 0u; i < 2u; i++) {
        uint row = gn_over(e[i], GNI_P_DEPTH_TO_W), plane = gn_over(row, GNI_P_DEPTH_TO_H);
        x[i] = e[i] - row * GN_PARAM(GNI_P_DEPTH_TO_W);
        y[i] = row - plane * GN_PARAM(GNI_P_DEPTH_TO_H);
        n[i] = GN_STEP == GNI_DEPTH_WEIGHT ? plane : gn_over(plane, GNI_P_DEPTH_CHANNELS);
        c[i] = plane - n[i] * GN_PARAM(GNI_P_DEPTH_CHANNELS);
    }
}

void gn_results() {
    uint s = gn_packing(GN_OUT), first = GN_OUT_BASE & s; // so that words of two halves are whole
    for (uint t = gl_GlobalInvocationID.x; 2u * t < GN_N + first; t += gl_NumWorkGroups.x * 256u) {
        uvec2 e = 2u * t + uvec2(0u, 1u) - first, n, c, y, x;
        bvec2 real = lessThan(e, uvec2(GN_N));
        gn_places(min(e, uvec2(GN_N - 1u)), n, c, y, x);
        uvec2 plane = GN_PARAM(GNI_P_DEPTH_IN) + n * GN_STEP_IN(0) + c * GN_STEP_IN(1);
        uvec2 kernel = GN_PARAM(GNI_P_DEPTH_OTHER) + c * GN_STEP_OTHER(0);
        vec2 sum = vec2(0.0);
        for (uint ky = 0u; ky < GN_ROWS; ky++) {
            uvec2 row = y;
            bvec2 rows = gn_read_at(row, ky, GN_DOWN, GN_PAD_H, GN_DILATION_H, GN_FROM_H);
            for (uint kx = 0u; kx < GN_COLUMNS; kx++) {
                uvec2 column = x;
                bvec2 ok = gn_read_at(column, kx, GN_ACROSS, GN_PAD_W, GN_DILATION_W, GN_FROM_W);
                ok = bvec2(ok.x && rows.x, ok.y && rows.y);
                vec2 w = gn_pair(1u, kernel + ky * GN_STEP_OTHER(2) + kx * GN_STEP_OTHER(3), bvec2(true));
                sum += w * gn_pair(0u, plane + row * GN_STEP_IN(2) + column * GN_STEP_IN(3), ok);
            }
        }
        uvec4 v = gn_narrow(floatBitsToUint(sum.xyxy), GN_OUT);
        if (s == 1u && real.x && real.y) {
            uint word = v.x | v.y << 16;
            gn_store(2u, (GN_OUT_BASE + e.x) >> 1, word);
        } else {
            if (real.x) gn_write_one(GN_OPEN(2u), GN_OUT_BASE + e.x, s, v.x);
            if (real.y) gn_write_one(GN_OPEN(2u), GN_OUT_BASE + e.y, s, v.y);
        }
    }
}

shared float gn_sums[256];

void gn_weights() {
    float sum[GN_TAPS];
    for (uint k = 0u; k < GN_TAPS; k++) sum[k] = 0.0;
    uint me = gl_LocalInvocationIndex, channels = GN_PARAM(GNI_P_DEPTH_CHANNELS), part = GN_GROUP / channels;
    uint channel = GN_GROUP - part * channels, each = (GN_N + GN_PARTS - 1u) / GN_PARTS;
    if (part >= GN_PARTS) return;
    for (uint e = part * each + me; e < min((part + 1u) * each, GN_N); e += 256u) {
        uvec2 n, c, y, x;
        gn_places(uvec2(e), n, c, y, x);
        uint from = GN_PARAM(GNI_P_DEPTH_IN) + n.x * GN_STEP_IN(0) + channel * GN_STEP_IN(1);
        uint at = GN_PARAM(GNI_P_DEPTH_OTHER) + n.x * GN_STEP_OTHER(0) + channel * GN_STEP_OTHER(1) + y.x * GN_STEP_OTHER(2);
        float gy = gn_pair(1u, uvec2(at + x.x * GN_STEP_OTHER(3)), bvec2(true, false)).x;
        for (uint ky = 0u; ky < GN_ROWS; ky++) {
            uvec2 row = y;
            bvec2 rows = gn_read_at(row, ky, GN_DOWN, GN_PAD_H, GN_DILATION_H, GN_FROM_H);
            for (uint kx = 0u; kx < GN_COLUMNS; kx++) {
                uvec2 column = x;
                bvec2 ok = gn_read_at(column, kx, GN_ACROSS, GN_PAD_W, GN_DILATION_W, GN_FROM_W);
                uvec2 j = uvec2(from + row.x * GN_STEP_IN(2) + column.x * GN_STEP_IN(3));
                sum[ky * GN_COLUMNS + kx] += gy * gn_pair(0u, j, bvec2(ok.x && rows.x, false)).x;
            }
        }
    }
    uint taps = GN_ROWS * GN_COLUMNS;
    for (uint k = 0u; k < taps; k++) {
        gn_sums[me] = sum[k];
        for (uint half_of = 128u; half_of > 0u; half_of /= 2u) {
            barrier();
            if (me < half_of) gn_sums[me] += gn_sums[me + half_of];
        }
        if (me == 0u) {
            float all = gn_sums[0];
            gn_store(2u, GN_OUT_BASE + GN_GROUP * taps + k, floatBitsToUint(all));
        }
        barrier();
    }
}

void main() {
    if (GN_STEP == GNI_DEPTH_WEIGHT) gn_weights();
    else gn_results();
}
