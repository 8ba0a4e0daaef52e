// What the matrix kernels share: elements as float, int (-DGN_INT32) or double (-DGN_X64), reads with
// bounds, batches, and joining the partial results of several workgroups. Include gn.glsl first.

#define GN_INPUTS_CONST
#include "memory.glsl"

#ifdef GN_X64
#define GN_VALUE double
#define GN_VALUES dvec2
#define GN_ZERO dvec2(0.0)
#define GN_TO_VALUES(r) gn_double(r)
#define GN_FROM_VALUES(v) gn_bits(v)
#define GN_MADD(a, b, c) fma(a, b, c)
#define GN_EACH 2
#elif defined(GN_INT32)
#define GN_VALUE uint
#define GN_VALUES uvec4
#define GN_ZERO uvec4(0u)
#define GN_TO_VALUES(r) (r)
#define GN_FROM_VALUES(v) (v)
#define GN_MADD(a, b, c) ((a) * (b) + (c))
#define GN_EACH 4
#else
#define GN_VALUE float
#define GN_VALUES vec4
#define GN_ZERO vec4(0.0)
#define GN_TO_VALUES(r) uintBitsToFloat(r)
#define GN_FROM_VALUES(v) floatBitsToUint(v)
#define GN_MADD(a, b, c) fma(a, b, c)
#define GN_EACH 4
#endif

// The same partial results for everyone: plain loads might see stale lines.
#ifdef GN_BINDINGS
void gn_put_shared(uint k, uint i, uvec4 v) {
    for (uint e = 0u; e < 4u; e++) gn_store_coherent(k, 4u * i + e, v[e]);
}
uvec4 gn_get_shared(uint k, uint i) {
    uvec4 v;
    for (uint e = 0u; e < 4u; e++) v[e] = gn_load_coherent(k, 4u * i + e);
    return v;
}
#else
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer gn_shared_words4 { uvec4 v[]; };
void gn_put_shared(uint k, uint i, uvec4 v) { gn_shared_words4(gn_address(k)).v[i] = v; }
uvec4 gn_get_shared(uint k, uint i) { return gn_shared_words4(gn_address(k)).v[i]; }
#endif

// `count` of the elements at, at + step, ..., zeros after them.
GN_VALUES gn_read_run(GN_HANDLE h, uint at, uint step, uint dtype, bool group, uint count) {
    if (count == 0u) return GN_ZERO;
    uvec4 e = uvec4(0u, 1u, 2u, 3u), j = at + step * min(e, uvec4(count - 1u));
    uvec4 v = gn_widen(gn_read_raw(h, j, dtype, false, group), dtype);
#ifdef GN_X64
    if (count < 2u) v.zw = uvec2(0u);
#else
    if (count < 4u) v = mix(v, uvec4(0u), greaterThanEqual(e, uvec4(count)));
#endif
    return GN_TO_VALUES(v);
}

// How many of GN_EACH elements from i on are below n.
uint gn_inside(uint i, uint n) { return i >= n ? 0u : min(n - i, uint(GN_EACH)); }

// Parameters that all matrix kernels have in the same place.
#define GN_M GN_PARAM(GNI_P_MATMUL_M)
#define GN_N GN_PARAM(GNI_P_MATMUL_N)
#define GN_K GN_PARAM(GNI_P_MATMUL_K)
#define GN_BATCHES GN_PARAM(GNI_P_MATMUL_BATCHES)
#define GN_A_BASE GN_PARAM(GNI_P_MATMUL_A_BASE)
#define GN_A_ROW GN_PARAM(GNI_P_MATMUL_A_ROW)
#define GN_A_COLUMN GN_PARAM(GNI_P_MATMUL_A_COLUMN)
#define GN_B_BASE GN_PARAM(GNI_P_MATMUL_B_BASE)
#define GN_B_ROW GN_PARAM(GNI_P_MATMUL_B_ROW)
#define GN_B_COLUMN GN_PARAM(GNI_P_MATMUL_B_COLUMN)
#define GN_C_BASE GN_PARAM(GNI_P_MATMUL_C_BASE)
#define GN_BIAS_BASE GN_PARAM(GNI_P_MATMUL_BIAS_BASE)
#define GN_SPLITS GN_PARAM(GNI_P_MATMUL_SPLITS)
#define GN_CHUNK GN_PARAM(GNI_P_MATMUL_CHUNK)
#define GN_COUNTER0 GN_PARAM(GNI_P_MATMUL_COUNTER0)
#define GN_TILES_M GN_PARAM(GNI_P_MATMUL_TILES_M)
#define GN_TILES_N GN_PARAM(GNI_P_MATMUL_TILES_N)
#define GN_BATCH_RANK GN_PARAM(GNI_P_MATMUL_BATCH_RANK)
#define GN_STRIPE GN_PARAM(GNI_P_MATMUL_STRIPE)

#define GN_A 0u // buffer arguments
#define GN_B 1u
#define GN_C 2u
#define GN_BIAS 3u
#define GN_PARTIALS 4u
#define GN_COUNTERS 5u

// Where batch number i starts in a and in b.
uvec2 gn_batch(uint i) {
    uvec2 at = uvec2(GN_A_BASE, GN_B_BASE);
    for (uint d = GN_BATCH_RANK; d > 0u; d--) {
        uint p = GNI_P_MATMUL_BATCH + 3u * (d - 1u), q = i / GN_PARAM(p);
        at += (i - q * GN_PARAM(p)) * uvec2(GN_PARAM(p + 1u), GN_PARAM(p + 2u));
        i = q;
    }
    return at;
}

// Place of a tile, in tiles. They are taken in stripes of GN_STRIPE rows, each stripe column by column: what
// runs at the same time shares rows of a and columns of b.
uvec2 gn_tile_place(uint tile) {
    uint area = GN_STRIPE * GN_TILES_N, first = tile / area * GN_STRIPE, i = tile % area;
    uint rows = min(GN_TILES_M - first, GN_STRIPE);
    return uvec2(first + i % rows, i / rows);
}

shared uint gn_arrived;

#ifndef GN_WGSL
// Counts a workgroup; true for all invocations of the last one of `count`.
bool gn_is_last_of(uint counter, uint count) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0u) gn_arrived = gn_atomic_add(GN_COUNTERS, counter, 1u);
    barrier();
    bool last = gn_arrived == count - 1u;
    memoryBarrierBuffer();
    // Ready for the next job.
    if (last && gl_LocalInvocationIndex == 0u) gn_store_coherent(GN_COUNTERS, counter, 0u);
    return last;
}
bool gn_is_last(uint counter) { return gn_is_last_of(counter, GN_SPLITS); }
#endif

// Parts of k are added up in groups of GN_JOIN by the group's last workgroup, then these sums likewise, until
// one is left: always the same sums, whoever makes them. A tile has this many counters.
#define GN_JOIN 16u
uint gn_tile_counters() {
    uint n = 0u;
    for (uint left = GN_SPLITS; left > 1u;) {
        left = (left + GN_JOIN - 1u) / GN_JOIN;
        n += left;
    }
    return n;
}
