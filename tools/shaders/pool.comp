#version 450
// Pooling of images in C order by windows of one size; an invocation makes one element of the result, or two halves.
//
// GNI_POOL_LARGEST  the largest of each window, NaN before all, and where asked for the number of its tap, int32
// GNI_POOL_AVERAGE  the average of what is in the image, or of the pad's zeros as well
// GNI_POOL_BACK     the gradient of an image from that of its largest ones and their taps
// GNI_POOL_SPREAD   the sum of what all windows that an element is in have
// GNI_POOL_FRAME    the image within an array that is full of a number
//
//! no-bindings
//! variant pool
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 4
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "math.glsl"
#include "divide.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_POOL_STEP) const uint GN_STEP = 0u;
layout(constant_id = GNI_S_POOL_DTYPE) const uint GN_DTYPE = 0u;
layout(constant_id = GNI_S_POOL_ROWS) const uint GN_ROWS = 2u;
layout(constant_id = GNI_S_POOL_COLUMNS) const uint GN_COLUMNS = 2u;
layout(constant_id = GNI_S_POOL_DOWN) const uint GN_DOWN = 2u; // strides
layout(constant_id = GNI_S_POOL_ACROSS) const uint GN_ACROSS = 2u;
layout(constant_id = GNI_S_POOL_DILATION_H) const uint GN_DILATION_H = 1u;
layout(constant_id = GNI_S_POOL_DILATION_W) const uint GN_DILATION_W = 1u;
layout(constant_id = GNI_S_POOL_HOW) const uint GN_HOW = 0u;

// Buffers: images, or the gradient; its taps; the result; taps of it.
#define GN_N GN_PARAM(GNI_P_POOL_N)
#define GN_FROM_H GN_PARAM(GNI_P_POOL_FROM) // of what is read
#define GN_FROM_W GN_PARAM(GNI_P_POOL_FROM + 1)
#define GN_PAD_H GN_PARAM(GNI_P_POOL_PAD)
#define GN_PAD_W GN_PARAM(GNI_P_POOL_PAD + 1)
#define GN_BASE(k) GN_PARAM(GNI_P_POOL_BASE + (k))

float gn_element(uint j) {
    uint s = gn_packing(GN_DTYPE);
    return uintBitsToFloat(gn_widen(gn_extract(uvec4(gn_fetch(0u, j >> s)), uvec4(j), s), GN_DTYPE).x);
}
// An integer in the order of numbers, subnormal ones too; NaN is above all.
int gn_order(float v) {
    uint u = floatBitsToUint(v), size = u & 0x7fffffffu;
    return size > 0x7f800000u ? 0x7fffffff : u == size ? int(size) : -int(size);
}

// How many elements of an axis a window averages over.
int gn_size(int from, uint size, uint have, uint pad) {
    bool inside = (GN_HOW & GNI_F_POOL_INSIDE) != 0u;
    return min(from + int(size), int(have + (inside ? 0u : pad))) - (inside ? max(from, 0) : from);
}

// The window from (top, left) on, of the image whose first element is `image`.
float gn_window(uint image, int top, int left, out uint tap) {
    // The first that is in the image, where all are -inf.
    uint r0 = top < 0 ? (uint(-top) + GN_DILATION_H - 1u) / GN_DILATION_H : 0u;
    uint c0 = left < 0 ? (uint(-left) + GN_DILATION_W - 1u) / GN_DILATION_W : 0u;
    float best = uintBitsToFloat(0xff800000u), sum = 0.0;
    tap = r0 * GN_COLUMNS + c0;
    for (uint r = 0u; r < GN_ROWS; r++) {
        int y = top + int(r * GN_DILATION_H);
        bool within = uint(y) < GN_FROM_H;
        uint line = image + uint(clamp(y, 0, int(GN_FROM_H) - 1)) * GN_FROM_W;
        float part = 0.0;
        for (uint c = 0u; c < GN_COLUMNS; c++) {
            int x = left + int(c * GN_DILATION_W);
            bool there = within && uint(x) < GN_FROM_W;
            float v = gn_element(line + uint(clamp(x, 0, int(GN_FROM_W) - 1)));
            if (GN_STEP == GNI_POOL_AVERAGE) {
                precise float more = part + (there ? v : 0.0);
                part = more;
            } else if (there && gn_order(v) > gn_order(best)) {
                best = v;
                tap = r * GN_COLUMNS + c;
            }
        }
        precise float more = sum + part;
        sum = more;
    }
    if (GN_STEP != GNI_POOL_AVERAGE) return best;
    int count = gn_size(top, GN_ROWS, GN_FROM_H, GN_PAD_H) * gn_size(left, GN_COLUMNS, GN_FROM_W, GN_PAD_W);
    return gn_div(vec4(sum), vec4(float(count))).x;
}

// What comes to (y, x): it is in the window of place y + pad over stride, and in those before while these reach it.
float gn_gradient(uint image, uint y, uint x) {
    const uint up = (GN_ROWS - 1u) * GN_DILATION_H / GN_DOWN, back = (GN_COLUMNS - 1u) * GN_DILATION_W / GN_ACROSS;
    float sum = 0.0;
    for (uint m = 0u; m <= up; m++) {
        uint i = (y + GN_PAD_H) / GN_DOWN - m, d = y + GN_PAD_H - i * GN_DOWN, r = d / GN_DILATION_H;
        bool within = i < GN_FROM_H && r < GN_ROWS && r * GN_DILATION_H == d; // what is below 0 is large
        for (uint n = 0u; n <= back; n++) {
            uint j = (x + GN_PAD_W) / GN_ACROSS - n, e = x + GN_PAD_W - j * GN_ACROSS, c = e / GN_DILATION_W;
            if (!within || j >= GN_FROM_W || c >= GN_COLUMNS || c * GN_DILATION_W != e) continue;
            uint at = image + i * GN_FROM_W + j;
            if (GN_STEP == GNI_POOL_BACK && gn_fetch(1u, GN_BASE(1u) + at) != r * GN_COLUMNS + c) continue;
            precise float more = sum + gn_element(GN_BASE(0u) + at);
            sum = more;
        }
    }
    return sum;
}

// Element e of the result.
uint gn_make(uint e) {
    uint row = gn_over(e, GNI_P_POOL_TO_W), plane = gn_over(row, GNI_P_POOL_TO_H), tap;
    uint x = e - row * GN_PARAM(GNI_P_POOL_TO_W), y = row - plane * GN_PARAM(GNI_P_POOL_TO_H);
    uint image = plane * GN_FROM_H * GN_FROM_W;
    float v;
    if (GN_STEP == GNI_POOL_FRAME) {
        y -= GN_PAD_H; // what is below 0 is large
        x -= GN_PAD_W;
        v = GN_PARAM_F(GNI_P_POOL_VALUE);
        if (y < GN_FROM_H && x < GN_FROM_W) v = gn_element(GN_BASE(0u) + image + y * GN_FROM_W + x);
    } else if (GN_STEP >= GNI_POOL_BACK) {
        v = gn_gradient(image, y, x);
    } else {
        v = gn_window(GN_BASE(0u) + image, int(y * GN_DOWN) - int(GN_PAD_H), int(x * GN_ACROSS) - int(GN_PAD_W), tap);
        if ((GN_HOW & GNI_F_POOL_TAPS) != 0u) gn_store(3u, GN_BASE(3u) + e, tap);
    }
    return gn_narrow(uvec4(floatBitsToUint(v)), GN_DTYPE).x;
}

void main() {
    uint s = gn_packing(GN_DTYPE), units = (GN_N + s) >> s;
    GN_HANDLE h = GN_OPEN(2u);
    for (uint i = gl_GlobalInvocationID.x; i < units; i += gl_NumWorkGroups.x * 256u) {
        uint first = i << s, v = gn_make(first);
        if (s == 0u) {
            GN_PUT(h, GN_BASE(2u) + i, v);
        } else if (first + 1u < GN_N) {
            v |= gn_make(first + 1u) << 16;
            GN_PUT(h, (GN_BASE(2u) >> 1) + i, v);
        } else {
            gn_write_one(h, GN_BASE(2u) + first, s, v);
        }
    }
}
