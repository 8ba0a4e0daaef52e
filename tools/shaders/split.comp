#version 450
// float32 matrices made ready for matrix units: every row of a, and every column of b, is scaled by a power of
// two that takes its largest magnitude to [2^14, 2^15), and each element is written as a sum of parts that the
// units take: hi + lo 2^-12 in float16, or three bfloat16 numbers. matmul_half.comp multiplies them.
//
//! variant split_scan --env=vulkan1.3
//! variant split_pack --env=vulkan1.3 -DGN_PACK
//! no-bindings
//
// "Row" stands for a row of a or a column of b. split_scan finds the largest and the smallest magnitude of every
// row; its last workgroup then chooses for the whole product, since only the device knows:
//
//   mode 0   float16. Full precision takes magnitudes within 2^27 of the row's largest
//   mode 1   bfloat16, within 2^100
//   mode 2   no parts: matmul.comp does it
//
// A few rows that the mode cannot hold (infinities and NaN among them) do not change it: they are listed, packed as
// zeros, and matmul_patch.comp makes what depends on them.
//
// Parts lie in slices of 16 elements of k, as pieces of 8: (slice, row / 8, part, piece, row % 8, 8). Rows and slices
// are padded with zeros to whole tiles, so that a tile's slice is one stretch of memory.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 6
#define GN_READONLY 0x1
#include "gn.glsl"
#include "matrix.glsl"
#include "split.glsl"
layout(local_size_x = 256) in;

layout(constant_id = GNI_S_SPLIT_LAYOUT) const uint GN_LAYOUT = 0u;
#define GN_ALONG_ROWS ((GN_LAYOUT & GNI_F_SPLIT_ALONG_ROWS) != 0u)
#define GN_GROUPS ((GN_LAYOUT & GNI_F_SPLIT_GROUPS) != 0u)

#define GN_ROWS GN_PARAM(GNI_P_SPLIT_ROWS)
#define GN_LENGTH GN_PARAM(GNI_P_SPLIT_LENGTH)
#define GN_BASE GN_PARAM(GNI_P_SPLIT_BASE)
#define GN_STEP_ROW GN_PARAM(GNI_P_SPLIT_STEP_ROW)
#define GN_STEP GN_PARAM(GNI_P_SPLIT_STEP)
#define GN_PADDED GN_PARAM(GNI_P_SPLIT_PADDED)
#define GN_SLICES GN_PARAM(GNI_P_SPLIT_SLICES)
#define GN_INFO GN_PARAM(GNI_P_SPLIT_INFO)
#define GN_PIECE GN_PARAM(GNI_P_SPLIT_PIECE)
#define GN_WORKGROUPS GN_PARAM(GNI_P_SPLIT_WORKGROUPS)
#define GN_FIRST_INFO GN_PARAM(GNI_P_SPLIT_FIRST_INFO)
#define GN_TOTAL_A GN_PARAM(GNI_P_SPLIT_TOTAL_A)
#define GN_TOTAL_B GN_PARAM(GNI_P_SPLIT_TOTAL_B)
#define GN_LEAST_MODE GN_PARAM(GNI_P_SPLIT_LEAST_MODE)
#define GN_RANK GN_PARAM(GNI_P_SPLIT_RANK)
#define GN_HAS_BFLOAT (GN_PARAM(GNI_P_SPLIT_BFLOAT) != 0u)

uint gn_operand_at(uint i) {
    uint at = GN_BASE;
    for (uint d = GN_RANK; d > 0u; d--) {
        uint p = GNI_P_SPLIT_DIM + 2u * (d - 1u), q = i / GN_PARAM(p);
        at += (i - q * GN_PARAM(p)) * GN_PARAM(p + 1u);
        i = q;
    }
    return at;
}

#ifndef GN_PACK

shared uint gn_most[64], gn_least[64];
shared uint gn_found[4];

// The modes of eight rows at once, so that their loads overlap.
void gn_row_modes(uint first, uint total, out uint mode[8]) {
    uvec2 info[8];
    [[unroll]] for (uint e = 0u; e < 8u; e++)
        info[e] = gn_row_info(GN_FIRST_INFO + 2u * min(first + 256u * e, total - 1u));
    [[unroll]] for (uint e = 0u; e < 8u; e++) mode[e] = first + 256u * e < total ? gn_row_mode(info[e]) : 0u;
}

// Of the rows that a mode cannot hold, as many as fit are listed.
void gn_choose() {
    uint me = gl_LocalInvocationIndex, total = GN_TOTAL_A + GN_TOTAL_B, of[8];
    if (me < 4u) gn_found[me] = 0u;
    barrier();
    for (uint i = me; i < total; i += 2048u) {
        gn_row_modes(i, total, of);
        [[unroll]] for (uint e = 0u; e < 8u; e++) {
            uint b = i + 256u * e < GN_TOTAL_A ? 0u : 1u;
            if (of[e] > 0u) atomicAdd(gn_found[b], 1u);
            if (of[e] > 1u) atomicAdd(gn_found[2u + b], 1u);
        }
    }
    barrier();
    uint few = max(gn_found[0], gn_found[1]), none = max(gn_found[2], gn_found[3]);
    uint mode = max(few <= GN_PATCHES ? 0u : none <= GN_PATCHES ? 1u : 2u, GN_LEAST_MODE);
    if (mode == 1u && (!GN_HAS_BFLOAT || none > GN_PATCHES)) mode = 2u;
    bool listed = mode < 2u && (mode == 0u ? few : none) > 0u;
    barrier();
    if (me < 2u) gn_found[me] = 0u;
    barrier();
    for (uint i = me; listed && i < total; i += 2048u) {
        gn_row_modes(i, total, of);
        [[unroll]] for (uint e = 0u; e < 8u; e++) {
            if (of[e] <= mode) continue;
            uint row = i + 256u * e, b = row < GN_TOTAL_A ? 0u : 1u, n = atomicAdd(gn_found[b], 1u);
            gn_store_coherent(GN_COUNTERS, GN_LIST + b * GN_PATCHES + n, b == 0u ? row : row - GN_TOTAL_A);
        }
    }
    barrier();
    if (me == 0u) {
        gn_store_coherent(GN_COUNTERS, GN_MODE, mode);
        gn_store_coherent(GN_COUNTERS, GN_LISTED, gn_found[0]);
        gn_store_coherent(GN_COUNTERS, GN_LISTED + 1u, gn_found[1]);
    }
}

void main() {
    uint me = gl_LocalInvocationIndex, batch = gl_WorkGroupID.z;
    uint rows = GN_ALONG_ROWS ? 64u : 16u, row0 = gl_WorkGroupID.x * rows;
    uint start = gl_WorkGroupID.y * GN_PIECE, end = min(start + GN_PIECE, GN_LENGTH), at = gn_operand_at(batch);
    if (me < 64u) gn_most[me] = gn_least[me] = 0u;
    barrier();
    uvec4 most = uvec4(0u), least = uvec4(0u);
    if (GN_ALONG_ROWS) {
        uint row = row0 + me % 16u * 4u, inside = gn_inside(row, GN_ROWS);
        for (uint k = start + me / 16u; k < end; k += 64u) {
            uvec4 v[4];
            [[unroll]] for (uint e = 0u; e < 4u; e++)
                v[e] = floatBitsToUint(gn_read_run(GN_OPEN(0u), at + row * GN_STEP_ROW + (k + 16u * e) * GN_STEP,
                                                   GN_STEP_ROW, GN_T_F32, GN_GROUPS,
                                                   k + 16u * e < end ? inside : 0u)) & 0x7fffffffu;
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                most = max(most, v[e]);
                least = max(least, mix(~v[e], uvec4(0u), equal(v[e], uvec4(0u))));
            }
        }
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            atomicMax(gn_most[me % 16u * 4u + e], most[e]);
            atomicMax(gn_least[me % 16u * 4u + e], least[e]);
        }
    } else {
        uint row = row0 + me / 16u;
        for (uint k = start + me % 16u * 4u; row < GN_ROWS && k < end; k += 256u) {
            uvec4 v[4];
            [[unroll]] for (uint e = 0u; e < 4u; e++)
                v[e] = floatBitsToUint(gn_read_run(GN_OPEN(0u), at + row * GN_STEP_ROW + (k + 64u * e) * GN_STEP, GN_STEP,
                                                   GN_T_F32, GN_GROUPS, gn_inside(k + 64u * e, end))) & 0x7fffffffu;
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                most = max(most, v[e]);
                least = max(least, mix(~v[e], uvec4(0u), equal(v[e], uvec4(0u))));
            }
        }
        most.xy = max(most.xy, most.zw);
        least.xy = max(least.xy, least.zw);
        atomicMax(gn_most[me / 16u], max(most.x, most.y));
        atomicMax(gn_least[me / 16u], max(least.x, least.y));
    }
    barrier();
    if (me < rows && row0 + me < GN_ROWS) {
        uint info = GN_INFO + 2u * (batch * GN_PADDED + row0 + me);
        gn_atomic_max(GN_COUNTERS, info, gn_most[me]);
        gn_atomic_max(GN_COUNTERS, info + 1u, gn_least[me]);
    }
    if (gn_is_last_of(GN_SCANNED, GN_WORKGROUPS)) gn_choose();
}

#else

void main() {
    uint me = gl_LocalInvocationIndex, batch = gl_WorkGroupID.z, mode = gn_load(GN_COUNTERS, GN_MODE);
    if (mode > 1u) return;
    uint row = gl_WorkGroupID.x * 32u + (GN_ALONG_ROWS ? me % 32u : me / 8u);
    uint piece = GN_ALONG_ROWS ? me / 32u : me % 8u, at = gn_operand_at(batch);
    uvec2 info = row < GN_ROWS ? uvec2(gn_load(GN_COUNTERS, GN_INFO + 2u * (batch * GN_PADDED + row)),
                                       gn_load(GN_COUNTERS, GN_INFO + 2u * (batch * GN_PADDED + row) + 1u))
                               : uvec2(0u);
    bool held = row < GN_ROWS && gn_row_mode(info) <= mode;
    float scale = gn_row_scale(info);
    for (uint slice = gl_WorkGroupID.y * 4u + piece / 2u; slice < GN_SLICES; slice += gl_NumWorkGroups.y * 4u) {
        vec4 v[2];
        [[unroll]] for (uint e = 0u; e < 2u; e++) {
            uint k = slice * 16u + (piece & 1u) * 8u + 4u * e;
            v[e] = gn_read_run(GN_OPEN(0u), at + row * GN_STEP_ROW + k * GN_STEP, GN_STEP, GN_T_F32,
                               !GN_ALONG_ROWS && GN_GROUPS, held ? gn_inside(k, GN_LENGTH) : 0u) * scale;
        }
        uint to = ((batch * GN_SLICES + slice) * GN_PADDED + (row & ~7u)) * 2u * (mode == 0u ? 2u : 3u) + (piece & 1u) * 8u + row % 8u;
        if (mode == 0u) {
            uvec4 parts[2] = gn_half_parts(v);
            gn_store4(GN_C, to, parts[0]);
            gn_store4(GN_C, to + 16u, parts[1]);
        } else {
            for (uint p = 0u; p < 3u; p++) {
                vec4 top[2];
                [[unroll]] for (uint e = 0u; e < 2u; e++) {
                    top[e] = p < 2u ? gn_round(v[e], 65537.0) : v[e];
                    v[e] -= top[e];
                }
                gn_store4(GN_C, to + 16u * p, uvec4(gn_pair(floatBitsToUint(top[0]) >> 16), gn_pair(floatBitsToUint(top[1]) >> 16)));
            }
        }
    }
}

#endif
