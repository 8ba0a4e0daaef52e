#version 450
// How often each number is among int64 elements, or how many float32 elements are between each two of edges that rise: as
// low words of int64, which are zeros before. The first few numbers are counted in shared memory, with copies for neighbours.
//
//! variant count
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 3
#define GN_READONLY 5
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "order.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_FIND_COPIES) const uint GN_COPIES = 1u;
layout(constant_id = GNI_S_FIND_EDGES) const bool GN_EDGES = false;

// Buffers: elements, counts, edges.
#define GN_N GN_PARAM(GNI_P_FIND_N)
#define GN_BINS GN_PARAM(GNI_P_FIND_LINE)
#define GN_IN_BASE GN_PARAM(GNI_P_FIND_IN_BASE)
#define GN_EDGE_BASE GN_PARAM(GNI_P_FIND_LINE_BASE)
#define GN_OUT_BASE GN_PARAM(GNI_P_FIND_OUT_BASE)
#define GN_LEAST GN_PARAM(GNI_P_FIND_LEAST)
#define GN_SCALE GN_PARAM_F(GNI_P_FIND_SCALE)
const uint GN_HOLDS = uint(GNI_COUNT_HOLDS);
shared uint gn_counts[GN_HOLDS];
shared uint gn_edges[GNI_COUNT_EDGES + 1]; // as keys

// How many edges are not above x.
uint gn_behind(uint bits) {
    uint u = gn_key_of(uvec2(bits, 0u)).x, at = 0u, n = GN_BINS + 1u;
    if (GN_SCALE == 0.0) {
        while (n > 0u) {
            uint middle = n / 2u;
            bool up = gn_edges[at + middle] <= u;
            at = up ? at + middle + 1u : at;
            n = up ? n - middle - 1u : middle;
        }
        return at;
    }
    float about = (uintBitsToFloat(bits) - GN_PARAM_F(GNI_P_FIND_START)) * GN_SCALE;
    at = min(uint(clamp(about, 0.0, float(GN_BINS))), GN_BINS);
    while (at > 0u && gn_edges[at - 1u] > u) at--;
    while (at < n && gn_edges[at] <= u) at++;
    return at;
}

void gn_count_one(uint at, uint few, uint copy) {
    if (at < few) atomicAdd(gn_counts[at * GN_COPIES + copy], 1u);
    else if (at < GN_BINS) gn_atomic_add(1u, 2u * (GN_OUT_BASE + at), 1u);
}

void main() {
    uint me = gl_LocalInvocationIndex, few = min(GN_BINS, GN_HOLDS / GN_COPIES), copy = me % GN_COPIES;
    for (uint i = me; i < few * GN_COPIES; i += 256u) gn_counts[i] = 0u;
    if (GN_EDGES)
        for (uint i = me; i <= GN_BINS; i += 256u) gn_edges[i] = gn_key_of(uvec2(gn_fetch(2u, GN_EDGE_BASE + i), 0u)).x;
    barrier();
    // About how far edges, rounded as they are, and a product may be from where they should is taken from half a bin: what is
    // farther from the middle of one is compared.
    float sure = 0.0, shift = -GN_PARAM_F(GNI_P_FIND_START) * GN_SCALE - 0.5;
    if (GN_EDGES && GN_SCALE > 0.0) {
        float most = max(abs(uintBitsToFloat(gn_fetch(2u, GN_EDGE_BASE))), abs(uintBitsToFloat(gn_fetch(2u, GN_EDGE_BASE + GN_BINS))));
        sure = 0.5 - (4.8e-7 * (GN_SCALE * most + float(GN_BINS)) + 4.8e-38 * GN_SCALE);
    }
    // 16 bytes at a time, of which some at both ends are none of the elements; four such in flight.
    const uint EACH = GN_EDGES ? 4u : 2u;
    uint begin = GN_IN_BASE, end = begin + GN_N, step = gl_NumWorkGroups.x * 256u, groups = (end + EACH - 1u) / EACH;
    for (uint first = begin / EACH + gl_GlobalInvocationID.x; first < groups; first += 4u * step) {
        uvec4 w[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) w[k] = gn_fetch4(0u, min(first + k * step, groups - 1u));
        uint unsure = 0u;
        if (first * EACH < begin || (first + 3u * step + 1u) * EACH > end) { // in place of what is none: NaN, or beyond int32
            [[unroll]] for (uint k = 0u; k < 4u; k++)
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    uint j = (first + k * step) * EACH + (GN_EDGES ? e : e / 2u);
                    if (j < begin || j >= end) w[k][e] = 0xffffffffu;
                }
        }
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            [[unroll]] for (uint e = 0u; e < EACH; e++) {
                if (GN_EDGES) {
                    // The integer nearest to half a bin less, by a sum whose last bit counts 1: conversions are slow.
                    float less = fma(uintBitsToFloat(w[k][e]), GN_SCALE, shift);
                    precise float sum = less + 12582912.0, part = less - (sum - 12582912.0);
                    uint bin = floatBitsToUint(sum) - 0x4b400000u;
                    bool clear = abs(part) < sure;
                    if (clear && bin < few) atomicAdd(gn_counts[bin * GN_COPIES + copy], 1u); // all that there are
                    unsure |= clear ? 0u : 1u << (4u * k + e);
                } else {
                    uvec2 u = e == 0u ? w[k].xy : w[k].zw;
                    if (u.y == 0u) gn_count_one(u.x - GN_LEAST, few, copy);
                }
            }
        for (; unsure != 0u; unsure &= unsure - 1u) {
            uint i = uint(findLSB(unsure)), j = (first + i / 4u * step) * 4u + i % 4u;
            if (j >= begin && j < end) gn_count_one(gn_behind(gn_fetch(0u, j)) - 1u, few, copy);
        }
    }
    barrier();
    for (uint i = me; i < few; i += 256u) {
        uint c = 0u;
        for (uint k = 0u; k < GN_COPIES; k++) c += gn_counts[i * GN_COPIES + (k + me) % GN_COPIES];
        if (c != 0u) gn_atomic_add(1u, 2u * (GN_OUT_BASE + i), c);
    }
}
