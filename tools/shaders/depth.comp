#version 450
// Convolutions of groups of few channels, often one, of images (n, c, h, w) with any strides. Results are in C order.
//
// GNI_DEPTH_FORWARD  y[Y, X] takes x[Y stride + ky dilation - pad, ...] w[ky, kx], of GN_READ channels for each of GN_MADE
// GNI_DEPTH_BACK     the gradient of x from that of y
// GNI_DEPTH_WEIGHT   that of w from x and that of y, of a part of the images for each workgroup: (parts, kernels, taps), float32
//
//! no-bindings
//! variant depth
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
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
layout(constant_id = GNI_S_DEPTH_READ) const uint GN_READ = 1u;
layout(constant_id = GNI_S_DEPTH_MADE) const uint GN_MADE = 1u;
layout(constant_id = GNI_S_DEPTH_BLOCK) const uint GN_BLOCK = 1u; // results' channels that an invocation has
const uint GN_TAPS = GN_ROWS * GN_COLUMNS, GN_SUMS = GN_TAPS * GN_BLOCK;
// Of arrays, which have a size whatever the constants are.
const uint GN_BLOCK_ROOM = GN_BLOCK > 0u ? GN_BLOCK : 1u, GN_SUMS_ROOM = GN_STEP == GNI_DEPTH_WEIGHT && GN_SUMS > 0u ? GN_SUMS : 1u;

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

// Element j of a buffer.
float gn_one(uint k, uint j) {
    uint s = gn_packing(GN_IN);
    return uintBitsToFloat(gn_widen(gn_extract(uvec4(gn_fetch(k, j >> s)), uvec4(j), s), GN_IN).x);
}

// Where a tap of the place `at` reads on an axis: false where that is outside.
bool gn_read_at(inout uint at, uint tap, uint stride, uint pad, uint dilation, uint have) {
    if (GN_STEP == GNI_DEPTH_BACK) {
        at = at + pad - tap * dilation; // what is below 0 is large
        uint q = at / stride;
        bool ok = q * stride == at;
        at = q;
        return ok && q < have;
    }
    at = at * stride + tap * dilation - pad;
    return at < have;
}

// Places of element e: image, channel, row and column.
void gn_places(uint e, out uint n, out uint c, out uint y, out uint x) {
    uint row = gn_over(e, GNI_P_DEPTH_TO_W), plane = gn_over(row, GNI_P_DEPTH_TO_H);
    x = e - row * GN_PARAM(GNI_P_DEPTH_TO_W);
    y = row - plane * GN_PARAM(GNI_P_DEPTH_TO_H);
    n = GN_STEP == GNI_DEPTH_WEIGHT ? plane : gn_over(plane, GNI_P_DEPTH_CHANNELS);
    c = plane - n * GN_PARAM(GNI_P_DEPTH_CHANNELS);
}

// ---- four results of a row

// What the taps of a row of a kernel read for four neighbours from column `first` on, one stretch of the line at `line`.
#define GN_SIDE_BY_SIDE (GN_ACROSS == 1u && GN_DILATION_W == 1u && GN_STEP_IN(3) == 1u)
const uint GN_HALVES = (GN_COLUMNS + 6u) / 4u; // twice two of them, in words of halves
float gn_window[4u * GN_HALVES];

void gn_load_window(uint line, int first) {
    if (GN_STEP == GNI_DEPTH_BACK) first += int(GN_PAD_W) + 1 - int(GN_COLUMNS);
    else first -= int(GN_PAD_W);
    uint s = gn_packing(GN_IN);
    int at = int(line) + first, low = int(line >> s), high = int((line + GN_FROM_W - 1u) >> s);
    if (s == 1u) {
        uint w[2u * GN_HALVES + 1u];
        bool odd = (at & 1) != 0;
        for (uint k = 0u; k <= 2u * GN_HALVES; k++) w[k] = gn_fetch(0u, uint(clamp((at >> 1) + int(k), low, high)));
        for (uint k = 0u; k < 2u * GN_HALVES; k++) w[k] = odd ? w[k] >> 16 | w[k + 1u] << 16 : w[k];
        for (uint k = 0u; k < GN_HALVES; k++) {
            uvec2 u = uvec2(w[2u * k], w[2u * k + 1u]);
            vec4 v = uintBitsToFloat(gn_widen(uvec4(u.x & 0xffffu, u.x >> 16, u.y & 0xffffu, u.y >> 16), GN_IN));
            for (uint e = 0u; e < 4u; e++) gn_window[4u * k + e] = v[e];
        }
    } else {
        for (uint k = 0u; k < GN_COLUMNS + 3u; k++)
            gn_window[k] = uintBitsToFloat(gn_fetch(0u, uint(clamp(at + int(k), low, high))));
    }
    for (uint k = 0u; k < GN_COLUMNS + 3u; k++)
        if (uint(first + int(k)) >= GN_FROM_W) gn_window[k] = 0.0;
}

// Four neighbours from column `first` on, those that the row at `to` has.
void gn_put_four(uint to, int first, uint width, vec4 sum) {
    uint s = gn_packing(GN_OUT);
    uvec4 v = gn_narrow(floatBitsToUint(sum), GN_OUT);
    if (first >= 0 && first + 4 <= int(width)) {
        gn_write_group(GN_OPEN(2u), to + uint(first), GN_OUT, v);
        return;
    }
    for (uint e = 0u; e < 4u; e++) {
        bool real = uint(first) + e < width, next = uint(first) + e + 1u < width;
        if (s == 1u && (e & 1u) == 0u && real && next) {
            uint word = v[e] | v[e + 1u] << 16;
            gn_store(2u, (to + uint(first) + e) >> 1, word);
            e++;
        } else if (real) {
            gn_write_one(GN_OPEN(2u), to + uint(first) + e, s, v[e]);
        }
    }
}

void gn_results() {
    uint width = GN_PARAM(GNI_P_DEPTH_TO_W), rows = gn_over(GN_N, GNI_P_DEPTH_TO_W);
    // Groups of four are those of memory, so that rows may begin and end within one.
    uint across = ((width | GN_OUT_BASE) & 3u) == 0u ? width / 4u : (width + 6u) / 4u;
    for (uint t = gl_GlobalInvocationID.x; t < rows * across; t += gl_NumWorkGroups.x * 256u) {
        uint row = t / across, n, c, y, x;
        gn_places(row * width, n, c, y, x);
        uint to = GN_OUT_BASE + (row + (row - y) * (GN_BLOCK - 1u)) * width;
        int first = int(4u * (t - row * across)) - int(to & 3u);
        if (first >= int(width)) continue;
        uint from = c * GN_BLOCK / GN_MADE * GN_READ; // the first channel that is read
        uint plane = GN_PARAM(GNI_P_DEPTH_IN) + n * GN_STEP_IN(0) + from * GN_STEP_IN(1), kernel = GN_PARAM(GNI_P_DEPTH_OTHER);
        bool back = GN_STEP == GNI_DEPTH_BACK;
        uint of_made = back ? GN_STEP_OTHER(1) : GN_STEP_OTHER(0), of_read = back ? GN_STEP_OTHER(0) : GN_STEP_OTHER(1);
        kernel += (back ? c * GN_BLOCK % GN_MADE : c * GN_BLOCK) * of_made + (back ? from * of_read : 0u);
        vec4 sum[GN_BLOCK_ROOM];
        [[unroll]] for (uint o = 0u; o < GN_BLOCK; o++) sum[o] = vec4(0.0);
        for (uint taps = 0u; taps < GN_READ * GN_ROWS; taps++) {
            uint r = taps / GN_ROWS, ky = taps % GN_ROWS, line = y;
            bool inside = gn_read_at(line, ky, GN_DOWN, GN_PAD_H, GN_DILATION_H, GN_FROM_H);
            line = plane + r * GN_STEP_IN(1) + line * GN_STEP_IN(2);
            uint weights = kernel + r * of_read + ky * GN_STEP_OTHER(2);
            if (GN_SIDE_BY_SIDE && inside) gn_load_window(line, first);
            for (uint kx = 0u; kx < GN_COLUMNS; kx++) {
                vec4 v = vec4(0.0);
                uint k = back ? GN_COLUMNS - 1u - kx : kx;
                if (GN_SIDE_BY_SIDE && inside) {
                    v = vec4(gn_window[k], gn_window[k + 1u], gn_window[k + 2u], gn_window[k + 3u]);
                } else if (inside) {
                    for (uint e = 0u; e < 4u; e++) {
                        uint column = uint(first) + e;
                        if (gn_read_at(column, kx, GN_ACROSS, GN_PAD_W, GN_DILATION_W, GN_FROM_W))
                            v[e] = gn_one(0u, line + column * GN_STEP_IN(3));
                    }
                }
                [[unroll]] for (uint o = 0u; o < GN_BLOCK; o++)
                    sum[o] += gn_one(1u, weights + o * of_made + kx * GN_STEP_OTHER(3)) * v;
            }
        }
        [[unroll]] for (uint o = 0u; o < GN_BLOCK; o++) gn_put_four(to + o * GN_PARAM(GNI_P_DEPTH_TO_H) * width, first, width, sum[o]);
    }
}

shared float gn_sums[256];

void gn_weights() {
    float sum[GN_SUMS_ROOM];
    for (uint k = 0u; k < GN_SUMS_ROOM; k++) sum[k] = 0.0;
    uint me = gl_LocalInvocationIndex, channels = GN_PARAM(GNI_P_DEPTH_CHANNELS), part = GN_GROUP / channels;
    // Fours of a row of the gradient of y.
    uint width = GN_PARAM(GNI_P_DEPTH_TO_W), across = (width + 3u) / 4u, fours = gn_over(GN_N, GNI_P_DEPTH_TO_W) * across;
    uint kernel = GN_GROUP - part * channels, made = kernel / GN_READ * GN_BLOCK, read = made / GN_MADE * GN_READ + kernel % GN_READ;
    uint each = (fours + GN_PARTS - 1u) / GN_PARTS;
    if (part >= GN_PARTS) return;
    for (uint t = part * each + me; t < min((part + 1u) * each, fours); t += 256u) {
        uint row = t / across, first = 4u * (t - row * across), n, c, y, x;
        gn_places(row * width, n, c, y, x);
        uint from = GN_PARAM(GNI_P_DEPTH_IN) + n * GN_STEP_IN(0) + read * GN_STEP_IN(1);
        uint at = GN_PARAM(GNI_P_DEPTH_OTHER) + n * GN_STEP_OTHER(0) + made * GN_STEP_OTHER(1) + y * GN_STEP_OTHER(2);
        vec4 gy[GN_BLOCK_ROOM];
        [[unroll]] for (uint o = 0u; o < GN_BLOCK; o++)
            for (uint e = 0u; e < 4u; e++)
                gy[o][e] = first + e < width ? gn_one(1u, at + o * GN_STEP_OTHER(1) + (first + e) * GN_STEP_OTHER(3)) : 0.0;
        [[unroll]] for (uint ky = 0u; ky < GN_ROWS; ky++) {
            uint line = y;
            bool inside = gn_read_at(line, ky, GN_DOWN, GN_PAD_H, GN_DILATION_H, GN_FROM_H);
            line = from + line * GN_STEP_IN(2);
            if (GN_SIDE_BY_SIDE && inside) gn_load_window(line, int(first));
            [[unroll]] for (uint kx = 0u; kx < GN_COLUMNS; kx++) {
                vec4 v = vec4(0.0);
                if (!inside) continue;
                if (GN_SIDE_BY_SIDE) {
                    v = vec4(gn_window[kx], gn_window[kx + 1u], gn_window[kx + 2u], gn_window[kx + 3u]);
                } else {
                    for (uint e = 0u; e < 4u; e++) {
                        uint column = first + e;
                        if (gn_read_at(column, kx, GN_ACROSS, GN_PAD_W, GN_DILATION_W, GN_FROM_W) && first + e < width)
                            v[e] = gn_one(0u, line + column * GN_STEP_IN(3));
                    }
                }
                for (uint e = 1u; e < 4u; e++)
                    if (first + e >= width) v[e] = 0.0;
                [[unroll]] for (uint o = 0u; o < GN_BLOCK; o++) sum[o * GN_TAPS + ky * GN_COLUMNS + kx] += dot(gy[o], v);
            }
        }
    }
    for (uint k = 0u; k < GN_SUMS_ROOM; k++) {
        gn_sums[me] = sum[k];
        for (uint half_of = 128u; half_of > 0u; half_of /= 2u) {
            barrier();
            if (me < half_of) gn_sums[me] += gn_sums[me + half_of];
        }
        if (me == 0u) {
            float all = gn_sums[0];
            uint of = part * channels * GN_BLOCK + (made + k / GN_TAPS) * GN_READ + kernel % GN_READ;
            gn_store(2u, GN_OUT_BASE + of * GN_TAPS + k % GN_TAPS, floatBitsToUint(all));
        }
        barrier();
    }
}

void main() {
    if (GN_STEP == GNI_DEPTH_WEIGHT) gn_weights();
    else gn_results();
}
