#version 450
// A step of an LSTM or a GRU (room sequences), of float32: a workgroup has 8 units of the state and 16 rows of the batch. Its
// invocations share the products' sums among them, four by four numbers each, and what they have is added up in shared memory.
//
// recur       the product of the state before and the weights of a unit's gates, and what the state becomes
// recur_back  the product of the gates' derivatives of the step behind and the weights, and what the gates' derivatives are here
//
//! no-bindings
//! variant recur
//! variant recur_back -DGN_BACK
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 8
#include "gn.glsl"
#include "math.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_RECUR_LSTM) const bool GN_LSTM = true;
const uint GN_ROWS = 16u, GN_UNITS = 8u;

#define GN_BATCH GN_PARAM(GNI_P_RECUR_BATCH)
#define GN_H GN_PARAM(GNI_P_RECUR_H) // a multiple of 4, as all offsets are
#define GN_IS(flag) ((GN_PARAM(GNI_P_RECUR_FLAGS) & uint(flag)) != 0u)
#define GN_AT(k) GN_PARAM(uint(GNI_P_RECUR_BASE) + k)

shared vec4 gn_parts[1024]; // all that the registers allow of what others add to

float gn_get(uint k, uint i) { return uintBitsToFloat(gn_load(k, GN_AT(k) + i)); }
vec4 gn_get4(uint k, uint i) { return uintBitsToFloat(gn_load4(k, (GN_AT(k) + i) / 4u)); }
void gn_put(uint k, uint i, float x) { gn_store(k, GN_AT(k) + i, floatBitsToUint(x)); }

#ifndef GN_BACK

// Buffers: the input's part of the gates, weights, the state before, c before (GRU: a bias), states, gates, c.
void main() {
    uint me = gl_LocalInvocationIndex, unit = me % GN_UNITS, group = me / 8u % 4u, part = me / 32u, h = GN_H;
    uint row0 = gl_WorkGroupID.y * GN_ROWS, j = gl_WorkGroupID.x * GN_UNITS + unit, gates = GN_LSTM ? 4u : 3u;
    uint share = (h / 4u + 7u) / 8u, first = part * share, end = min(first + share, h / 4u);
    uint row = row0 + me / GN_UNITS, at = row * h + j, gate = row * gates * h + j;
    bool mine = me < GN_ROWS * GN_UNITS && row < GN_BATCH && j < h;
    vec4 sum[4], x = vec4(0.0), more = vec4(0.0); // on their way beside the operands of the product
    if (mine) {
        x = vec4(gn_get(0u, gate), gn_get(0u, gate + h), gn_get(0u, gate + 2u * h), 0.0);
        if (GN_LSTM) x.w = gn_get(0u, gate + 3u * h);
        if (GN_LSTM) more.x = gn_get(3u, at);
        else if (GN_IS(GNI_RECUR_BIAS)) more = vec4(gn_get(3u, j), gn_get(3u, j + h), gn_get(3u, j + 2u * h), 0.0);
    }
    [[unroll]] for (uint r = 0u; r < 4u; r++) sum[r] = vec4(0.0);
    for (uint v = first; v < end; v++) {
        vec4 b[4];
        [[unroll]] for (uint q = 0u; q < 4u; q++)
            b[q] = q < gates ? gn_get4(1u, (q * h + min(j, h - 1u)) * h + 4u * v) : vec4(0.0);
        [[unroll]] for (uint r = 0u; r < 4u; r++) {
            vec4 a = gn_get4(2u, min(row0 + group * 4u + r, GN_BATCH - 1u) * h + 4u * v);
            sum[r] += vec4(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
        }
    }
    [[unroll]] for (uint r = 0u; r < 4u; r++) gn_parts[(part * GN_ROWS + group * 4u + r) * GN_UNITS + unit] = sum[r];
    barrier();
    if (!mine) return;
    vec4 s = gn_parts[me];
    for (uint p = 1u; p < 8u; p++) s += gn_parts[p * GN_ROWS * GN_UNITS + me];
    if (GN_LSTM) {
        s += x;
        if (GN_IS(GNI_RECUR_KEEPS)) {
            gn_put(5u, gate, s.x);
            gn_put(5u, gate + h, s.y);
            gn_put(5u, gate + 2u * h, s.z);
            gn_put(5u, gate + 3u * h, s.w);
        }
        vec4 p = gn_sigmoid(s);
        float c = p.y * more.x + p.x * gn_tanh(s).z;
        gn_put(6u, at, c);
        if (GN_IS(GNI_RECUR_LAST)) gn_store(4u, GN_PARAM(GNI_P_RECUR_LAST) + at, floatBitsToUint(c));
        gn_put(4u, at, p.w * gn_tanh(vec4(c)).x);
    } else {
        s += more;
        vec4 p = gn_sigmoid(x + s);
        float n = gn_tanh(vec4(x.z + p.x * s.z)).x;
        if (GN_IS(GNI_RECUR_KEEPS)) {
            gn_put(5u, gate, p.x);
            gn_put(5u, gate + h, p.y);
            gn_put(5u, gate + 2u * h, n);
        }
        gn_put(4u, at, n + p.y * (gn_get(2u, at) - n));
    }
}

#else

// Buffers: the states' derivatives, weights, the gates' derivatives of the step behind, gates, c (GRU: states before), c before
// (GRU: the state's part of n), what goes from step to step beside the state, the gates' derivatives or the state's.
void main() {
    uint me = gl_LocalInvocationIndex, quad = me % 2u, group = me / 2u % 4u, part = me / 8u, h = GN_H;
    uint row0 = gl_WorkGroupID.y * GN_ROWS, j0 = gl_WorkGroupID.x * GN_UNITS, gates = GN_LSTM ? 4u : 3u, behind = GN_LSTM ? 0u : h;
    uint many = gates * h / 4u, share = (many + 31u) / 32u, first = part * share, end = min(first + share, many);
    uint unit = me % GN_UNITS, row = row0 + me / GN_UNITS, j = j0 + unit, at = row * h + j, out4 = row * 4u * h + j;
    bool mine = me < GN_ROWS * GN_UNITS && row < GN_BATCH && j < h, done = GN_IS(GNI_RECUR_LAST);
    vec4 sum[4], p = vec4(0.0), y;
    float d = 0.0, carry = 0.0, here = 0.0, before = 0.0;
    if (mine) {
        // Of an LSTM the derivative by c, first that by the last one; of a GRU what goes past the gates.
        if (!GN_IS(GNI_RECUR_FIRST)) carry = gn_get(6u, at);
        else if (GN_LSTM) carry = uintBitsToFloat(gn_load(0u, GN_PARAM(GNI_P_RECUR_LAST) + at));
    }
    if (mine && !done) {
        uint g = row * gates * h + j;
        p = vec4(gn_get(3u, g), gn_get(3u, g + h), gn_get(3u, g + 2u * h), 0.0);
        if (GN_LSTM) p.w = gn_get(3u, g + 3u * h);
        d = gn_get(0u, at);
        here = gn_get(4u, at);
        before = gn_get(5u, at);
    }
    [[unroll]] for (uint r = 0u; r < 4u; r++) sum[r] = vec4(0.0);
    if (GN_IS(GNI_RECUR_FIRST)) end = 0u;
    for (uint v = first; v < end; v++) {
        vec4 b[4];
        [[unroll]] for (uint e = 0u; e < 4u; e++) b[e] = gn_get4(1u, (4u * v + e) * h + min(j0 + quad * 4u, h - 4u));
        [[unroll]] for (uint r = 0u; r < 4u; r++) {
            vec4 a = gn_get4(2u, min(row0 + group * 4u + r, GN_BATCH - 1u) * 4u * h + behind + 4u * v);
            sum[r] += a.x * b[0] + a.y * b[1] + a.z * b[2] + a.w * b[3];
        }
    }
    [[unroll]] for (uint r = 0u; r < 4u; r++) gn_parts[(part * GN_ROWS + group * 4u + r) * 2u + quad] = sum[r];
    barrier();
    if (!mine) return;
    float sums = 0.0;
    for (uint k = 0u; k < 32u; k++) sums += gn_parts[(k * GN_ROWS + me / GN_UNITS) * 2u + unit / 4u][unit % 4u];
    d = (GN_LSTM ? sums : sums + carry) + d;
    if (done) {
        gn_put(7u, at, d);
        return;
    }
    if (GN_LSTM) {
        float t = gn_tanh(vec4(here)).x, n = gn_tanh(p).z;
        p = gn_sigmoid(p);
        float c = carry + d * p.w * (1.0 - t * t);
        gn_put(6u, at, c * p.y);
        vec4 rest = p * (1.0 - p);
        y = vec4(c * n * rest.x, c * before * rest.y, c * p.x * (1.0 - n * n), d * t * rest.w);
    } else {
        float z = p.y, n = p.z;
        y.x = d * (1.0 - z) * (1.0 - n * n);
        y.y = y.x * before * (p.x * (1.0 - p.x));
        y.z = d * (here - n) * (z * (1.0 - z));
        y.w = y.x * p.x;
        gn_put(6u, at, d * z);
    }
    gn_put(7u, out4, y.x);
    gn_put(7u, out4 + h, y.y);
    gn_put(7u, out4 + 2u * h, y.z);
    gn_put(7u, out4 + 3u * h, y.w);
}

#endif
