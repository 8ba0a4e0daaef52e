#version 450
// A step of an LSTM or a GRU (room sequences), of float32: a workgroup has 8 units of the state and 32 or 64 rows of the batch.
//
// recur       the product of the state before and the four (three) gates' weights of a unit, in registers, and what the state
//             becomes
// recur_back  the product of the gates' derivatives of the step behind and the weights, for each gate in other invocations, and
//             what the gates' derivatives are here
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
layout(constant_id = GNI_S_RECUR_ROWS) const uint GN_ROWS = 1u; // of an invocation, 1 or 2
const uint GN_TILE = 32u * GN_ROWS, GN_UNITS = 8u, GN_PITCH = 9u;

#define GN_BATCH GN_PARAM(GNI_P_RECUR_BATCH)
#define GN_H GN_PARAM(GNI_P_RECUR_H) // a multiple of 4, as all offsets are
#define GN_IS(flag) ((GN_PARAM(GNI_P_RECUR_FLAGS) & uint(flag)) != 0u)
#define GN_AT(k) GN_PARAM(uint(GNI_P_RECUR_BASE) + k)

shared vec4 gn_a[64u * GN_PITCH], gn_b[32u * GN_PITCH]; // rows of the batch, columns: 32 numbers each

float gn_get(uint k, uint i) { return uintBitsToFloat(gn_load(k, GN_AT(k) + i)); }
vec4 gn_get4(uint k, uint i) { return uintBitsToFloat(gn_load4(k, (GN_AT(k) + i) / 4u)); }
void gn_put(uint k, uint i, float x) { gn_store(k, GN_AT(k) + i, floatBitsToUint(x)); }

#ifndef GN_BACK

// Buffers: the input's part of the gates, weights, the state before, c before (GRU: a bias), states, gates, c.
void main() {
    uint me = gl_LocalInvocationIndex, unit = me % GN_UNITS, team = me / GN_UNITS, row0 = gl_WorkGroupID.y * GN_TILE;
    uint j0 = gl_WorkGroupID.x * GN_UNITS, j = j0 + unit, gates = GN_LSTM ? 4u : 3u, h = GN_H;
    vec4 sum[2];
    sum[0] = sum[1] = vec4(0.0);
    for (uint k0 = 0u; k0 < h; k0 += 32u) {
        barrier();
        for (uint i = me; i < GN_TILE * 8u; i += 256u) {
            uint row = row0 + i / 8u, k = k0 + i % 8u * 4u;
            gn_a[i / 8u * GN_PITCH + i % 8u] = row < GN_BATCH && k < h ? gn_get4(2u, row * h + k) : vec4(0.0);
        }
        uint c = me / 8u, k = k0 + me % 8u * 4u;
        bool there = c / 8u < gates && j0 + c % 8u < h && k < h;
        gn_b[c * GN_PITCH + me % 8u] = there ? gn_get4(1u, (c / 8u * h + j0 + c % 8u) * h + k) : vec4(0.0);
        barrier();
        [[unroll]] for (uint v = 0u; v < 8u; v++) {
            vec4 b[4];
            [[unroll]] for (uint q = 0u; q < 4u; q++) b[q] = gn_b[(q * 8u + unit) * GN_PITCH + v];
            [[unroll]] for (uint r = 0u; r < 2u; r++) {
                if (r < GN_ROWS) {
                    vec4 a = gn_a[(team * GN_ROWS + r) * GN_PITCH + v];
                    sum[r] += vec4(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
                }
            }
        }
    }
    [[unroll]] for (uint r = 0u; r < 2u; r++) {
        uint row = row0 + team * GN_ROWS + r, at = row * h + j, gate = row * gates * h + j;
        if (r >= GN_ROWS || row >= GN_BATCH || j >= h) continue;
        vec4 x = vec4(gn_get(0u, gate), gn_get(0u, gate + h), gn_get(0u, gate + 2u * h), 0.0), s = sum[r];
        if (GN_LSTM) {
            x.w = gn_get(0u, gate + 3u * h);
            s += x;
            if (GN_IS(GNI_RECUR_KEEPS)) {
                gn_put(5u, gate, s.x);
                gn_put(5u, gate + h, s.y);
                gn_put(5u, gate + 2u * h, s.z);
                gn_put(5u, gate + 3u * h, s.w);
            }
            vec4 p = gn_sigmoid(s);
            float c = p.y * gn_get(3u, at) + p.x * gn_tanh(s).z;
            gn_put(6u, at, c);
            if (GN_IS(GNI_RECUR_LAST)) gn_store(4u, GN_PARAM(GNI_P_RECUR_LAST) + at, floatBitsToUint(c));
            gn_put(4u, at, p.w * gn_tanh(vec4(c)).x);
        } else {
            if (GN_IS(GNI_RECUR_BIAS)) s += vec4(gn_get(3u, j), gn_get(3u, j + h), gn_get(3u, j + 2u * h), 0.0);
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
}

#else

// Buffers: the states' derivatives, weights, the gates' derivatives of the step behind, gates, c (GRU: states before), c before
// (GRU: the state's part of n), what goes from step to step beside the state, the gates' derivatives or the state's.
void main() {
    uint me = gl_LocalInvocationIndex, quad = me % 2u, team = me / 2u % 32u, gate = me / 64u, row0 = gl_WorkGroupID.y * GN_TILE;
    uint j0 = gl_WorkGroupID.x * GN_UNITS, h = GN_H, gates = GN_LSTM ? 4u : 3u, behind = GN_LSTM ? 0u : h;
    vec4 sum[2];
    sum[0] = sum[1] = vec4(0.0);
    for (uint k0 = 0u; k0 < h && !GN_IS(GNI_RECUR_FIRST); k0 += 8u) {
        barrier();
        for (uint i = me; i < GN_TILE * 8u; i += 256u) {
            uint row = row0 + i / 8u, v = i % 8u, k = k0 + (v & 1u) * 4u;
            bool there = row < GN_BATCH && k < h && v / 2u < gates;
            gn_a[i / 8u * GN_PITCH + v] = there ? gn_get4(2u, row * 4u * h + behind + v / 2u * h + k) : vec4(0.0);
        }
        uint k = k0 + me / 8u % 8u, j = j0 + me % 8u;
        gn_b[me % 8u * GN_PITCH + me / 32u][me / 8u % 4u] =
            k < h && j < h && gate < gates ? gn_get(1u, (gate * h + k) * h + j) : 0.0;
        barrier();
        [[unroll]] for (uint v = 0u; v < 2u; v++) {
            vec4 b[4];
            [[unroll]] for (uint q = 0u; q < 4u; q++) b[q] = gn_b[(quad * 4u + q) * GN_PITCH + gate * 2u + v];
            [[unroll]] for (uint r = 0u; r < 2u; r++) {
                if (r < GN_ROWS) {
                    vec4 a = gn_a[(team * GN_ROWS + r) * GN_PITCH + gate * 2u + v];
                    sum[r] += vec4(dot(a, b[0]), dot(a, b[1]), dot(a, b[2]), dot(a, b[3]));
                }
            }
        }
    }
    barrier();
    [[unroll]] for (uint r = 0u; r < 2u; r++)
        if (r < GN_ROWS) gn_a[(gate * GN_TILE + team * GN_ROWS + r) * 2u + quad] = sum[r];
    barrier();
    for (uint i = me; i < GN_TILE * GN_UNITS; i += 256u) {
        uint unit = i % GN_UNITS, row = row0 + i / GN_UNITS, j = j0 + unit, at = row * h + j, out4 = row * 4u * h + j;
        if (row >= GN_BATCH || j >= h) continue;
        float d = 0.0, carry = 0.0;
        for (uint q = 0u; q < gates; q++) d += gn_a[(q * GN_TILE + i / GN_UNITS) * 2u + unit / 4u][unit % 4u];
        // Of an LSTM the derivative by c, first that by the last one; of a GRU what goes past the gates.
        if (!GN_IS(GNI_RECUR_FIRST)) carry = gn_get(6u, at);
        else if (GN_LSTM) carry = uintBitsToFloat(gn_load(0u, GN_PARAM(GNI_P_RECUR_LAST) + at));
        if (!GN_LSTM) d += carry;
        if (GN_IS(GNI_RECUR_LAST)) {
            gn_put(7u, at, d);
            continue;
        }
        d += gn_get(0u, at);
        uint g = row * gates * h + j;
        vec4 p = vec4(gn_get(3u, g), gn_get(3u, g + h), gn_get(3u, g + 2u * h), 0.0), y;
        if (GN_LSTM) {
            p.w = gn_get(3u, g + 3u * h);
            float t = gn_tanh(vec4(gn_get(4u, at))).x, n = gn_tanh(p).z;
            p = gn_sigmoid(p);
            float c = carry + d * p.w * (1.0 - t * t);
            gn_put(6u, at, c * p.y);
            vec4 rest = p * (1.0 - p);
            y = vec4(c * n * rest.x, c * gn_get(5u, at) * rest.y, c * p.x * (1.0 - n * n), d * t * rest.w);
        } else {
            float z = p.y, n = p.z;
            y.x = d * (1.0 - z) * (1.0 - n * n);
            y.y = y.x * gn_get(5u, at) * (p.x * (1.0 - p.x));
            y.z = d * (gn_get(4u, at) - n) * (z * (1.0 - z));
            y.w = y.x * p.x;
            gn_put(6u, at, d * z);
        }
        gn_put(7u, out4, y.x);
        gn_put(7u, out4 + h, y.y);
        gn_put(7u, out4 + 2u * h, y.z);
        gn_put(7u, out4 + 3u * h, y.w);
    }
}

#endif
