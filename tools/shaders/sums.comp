#version 450
// out (outer, extent, inner) and then floats in (outer, count, inner) at the places that indices name, where there are many places.
//
// tally  places as words, and how often each of two digits of theirs is among them, by which elements are sorted then (sweep.comp)
// sums   a workgroup measures and adds in shared memory what goes to its places: among the elements whose places are the same
//        from bit GN_SHIFT on. Where these are too many for one, it names its places in buffer 3.
// more   a step for places that are named there, by all workgroups
// add    without any of these, where devices add 64 bits at once
//
//! no-bindings
//! variant sums_tally -DGN_TALLY
//! variant sums_held -DGN_SUMS
//! variant sums_more -DGN_MORE
//! variant sums_add -DGN_ADD
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef GN_ADD
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
#endif
#define GN_BUFFERS 6
#define GN_READONLY 3
#include "gn.glsl"
#define GN_INPUTS_CONST
#include "memory.glsl"
#include "places.glsl"

layout(local_size_x = 256) in;

layout(constant_id = GNI_S_SCATTER_STEP) const uint GN_STEP = 0u;

#include "scatter.glsl"
#define GN_SHIFT GN_PARAM(GNI_P_SCATTER_SHIFT)

#ifdef GN_TALLY

const uint GN_COPIES = 8u;
shared uint gn_counts[2u * 256u * GN_COPIES];

void main() {
    uint me = gl_LocalInvocationIndex, step = gl_NumWorkGroups.x * 256u, copy = me % GN_COPIES, second = GN_PARAM(GNI_P_SCATTER_SECOND);
    for (uint i = me; i < 512u * GN_COPIES; i += 256u) gn_counts[i] = 0u;
    barrier();
    for (uint first = gl_GlobalInvocationID.x; first < GN_N; first += 4u * step) {
        uint place[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) place[k] = gn_place(min(first + k * step, GN_N - 1u));
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            if (first + k * step >= GN_N) continue;
            gn_store(4u, first + k * step, place[k]);
            atomicAdd(gn_counts[(place[k] >> GN_SHIFT & 255u) * GN_COPIES + copy], 1u);
            atomicAdd(gn_counts[(256u + (place[k] >> GN_SHIFT >> 8u & 255u)) * GN_COPIES + copy], 1u);
        }
    }
    barrier();
    for (uint i = me; i < 512u; i += 256u) {
        uint c = 0u;
        for (uint k = 0u; k < GN_COPIES; k++) c += gn_counts[i * GN_COPIES + (k + me) % GN_COPIES];
        if (c != 0u) gn_atomic_add(2u, i < 256u ? i : second + i - 256u, c);
    }
}

#endif

#ifdef GN_SUMS

// Where those of the sorted elements begin and end that a workgroup looks at: its lanes' halves search for one each.
uvec2 gn_share(uint part) {
    uint me = gl_LocalInvocationIndex, which = me / 128u, low = 0u, n = GN_N;
    do {
        uint step = (n + 127u) / 128u, at = low + me % 128u * step + step - 1u;
        bool less = n > 0u && at < low + n && gn_fetch(1u, at) >> GN_SHIFT < part + which;
        barrier();
        if (me < 2u) gn_before[me] = 0u;
        barrier();
        if (less) atomicAdd(gn_before[which], 1u);
        barrier();
        uint from = low + gn_before[which] * step;
        if (n > 0u) n = min(from + step - 1u, low + n) - from;
        low = from;
        if (me % 128u == 0u) {
            gn_sum[which] = low;
            gn_most[which] = n;
        }
        barrier();
    } while ((gn_most[0] | gn_most[1]) != 0u);
    return uvec2(gn_sum[0], gn_sum[1]);
}

// Many workgroups with few registers hide more than loads that are under way together.
void main() {
    uint me = gl_LocalInvocationIndex;
    for (uint part = GN_GROUP; part * GN_HELD < GN_PLACES; part += gl_NumWorkGroups.x) {
        gn_first_place = part * GN_HELD;
        uint held = min(GN_HELD, GN_PLACES - gn_first_place);
        uvec2 share = gn_share(part);
        barrier();
        for (uint i = me; i < GN_HELD; i += 256u) gn_most[i] = gn_sum[2u * i] = gn_sum[2u * i + 1u] = 0u;
        if (share.y - share.x > GN_PARAM(GNI_P_SCATTER_LIMIT)) {
            for (uint i = gn_first_place + me; i < gn_first_place + held; i += 256u) {
                gn_store(4u, i, 0u);
                gn_store2(4u, (GN_PLACES + 1u) / 2u + i, uvec2(0u));
            }
            if (me == 0u) {
                uint at = 4u + 4u * gn_atomic_add(3u, 0u, 1u);
                gn_store(3u, at, share.x);
                gn_store(3u, at + 1u, share.y);
                gn_store(3u, at + 2u, gn_first_place);
            }
            continue;
        }
        barrier();
        for (uint t = share.x + me; t < share.y; t += 256u) gn_measure(gn_fetch(1u, t) - gn_first_place, gn_fetch(0u, GN_IN_BASE + t));
        barrier();
        for (uint t = share.x + me; t < share.y; t += 256u) gn_add_float(gn_fetch(1u, t) - gn_first_place, gn_fetch(0u, GN_IN_BASE + t));
        barrier();
        for (uint i = me; i < held; i += 256u) gn_finish(i, GN_BEFORE(GN_OUT_AT(i)));
        barrier();
    }
}

#endif

#ifdef GN_MORE

// Its places, and the elements that may go to them.
void main() {
    uint first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    uint parts = gn_load(3u, 0u);
    for (uint i = 0u; i < parts; i++) {
        uint begin = gn_load(3u, 4u * i + 4u), end = gn_load(3u, 4u * i + 5u), from = gn_load(3u, 4u * i + 6u);
        if (GN_STEP == uint(GNI_SCATTER_FINISH)) {
            for (uint t = from + first; t < min(from + uint(GNI_SCATTER_HELD), GN_PLACES); t += step) gn_finish(t, GN_BEFORE(GN_OUT_AT(t)));
            continue;
        }
        for (uint t = begin + first; t < end; t += step) {
            uint place = gn_fetch(1u, t);
            if (GN_STEP == uint(GNI_SCATTER_MEASURE)) gn_measure(place, gn_fetch(0u, GN_IN_BASE + t));
            else gn_add_float(place, gn_fetch(0u, GN_IN_BASE + t));
        }
    }
}

#endif

#ifdef GN_ADD

void main() {
    uint first = gl_GlobalInvocationID.x, step = gl_NumWorkGroups.x * 256u;
    for (uint t = first; t < GN_N; t += step) gn_add_float(gn_place(t), gn_fetch(0u, GN_IN_BASE + t));
}

#endif
