// Shared by elementwise.comp and elementwise_fast.comp: one program (gni_map) over n elements.
//
// The specialised form: an invocation takes GN_PER_LANE groups, those of a workgroup are one stretch.
//
// Tiles: an operand that runs along another dimension (its row) than the vectors makes memory's order and
// the order of groups cross. There a workgroup takes 64 x 64 elements of these two dimensions, and an
// invocation 4 x 4 of them: what runs along the rows is loaded by columns and turned in registers. Of 8-byte
// elements it takes 64 x 32, and an invocation twice 2 x 2.

#define GN_BUFFERS 12
#define GN_READONLY 0xff
#define GN_MANY
#include "gn.glsl"
#define GN_NO_SCALAR
#if !defined(GN_X64) && !defined(GN_RAW64)
#define GN_DRAWS
#endif
#ifndef GN_GENERIC
// What is written one by one is so by neighbouring invocations: a group's elements are as far apart as these are many.
#define GN_SPREAD (((GN_W5 >> 5) & 1u) != 0u)
#define GN_APART_BY (GN_SPREAD ? 256u : 1u)
#endif
#include "program.glsl"

layout(local_size_x = 256) in;

#define GN_N GN_PARAM(uint(GNI_P_MAP_N))

#ifdef GN_GENERIC

void main() {
    uint n = GN_N, groups = (n + GN_GROUP_SIZE - 1u) / GN_GROUP_SIZE;
    gn_constants();
    for (uint g = gl_GlobalInvocationID.x; g < groups; g += gl_NumWorkGroups.x * 256u) {
        uint i = g * GN_GROUP_SIZE;
        gn_run(i, n);
        for (uint k = 0u; k < GN_N_OUT; k++)
            gn_output(k, i, n, gn_narrow(gn_r[GN_OUT_REG(k)], GN_OUT_DTYPE(k)));
    }
}

#else

#define GN_BLOCKS GN_PARAM(uint(GNI_P_MAP_BLOCKS))

#define GN_LOG_PER_LANE (GN_W5 & 3u)
#define GN_PER_LANE (1u << GN_LOG_PER_LANE)
#define GN_TILES (((GN_W5 >> 4) & 1u) != 0u)

// Results in memory's form.
#if GN_INPUTS > 3
#define GN_OUTPUTS 4
#define GN_FOR_OUTPUTS(X, U) X(0u, U) X(1u, U) X(2u, U) X(3u, U)
#else
#define GN_OUTPUTS 1
#define GN_FOR_OUTPUTS(X, U) X(0u, U)
#endif
uvec4 gn_result[4][GN_OUTPUTS];

#define GN_FOR_GROUPS(X) X(0u) if (1u < GN_PER_LANE) { X(1u) } if (2u < GN_PER_LANE) { X(2u) X(3u) }

void gn_finish_group(uint u) {
    gn_run_group(u);
#define GN_KEEP(K, U) if (K < GN_N_OUT) gn_result[U][K] = gn_narrow(gn_r[GN_OUT_REG(K)], GN_OUT_DTYPE(K));
    GN_FOR_OUTPUTS(GN_KEEP, u)
#undef GN_KEEP
}

// Vector index of group u.
uint gn_group_index(uint block, uint u) {
    uint g = (block * GN_PER_LANE + u) * 256u;
    return GN_SPREAD ? g * GN_GROUP_SIZE + gl_LocalInvocationIndex : (g + gl_LocalInvocationIndex) * GN_GROUP_SIZE;
}

void gn_load_several(uint u, uint block, uint n) {
    gn_load_group(u, min(gn_group_index(block, u), GN_SPREAD ? n - 1u : (n - 1u) / GN_GROUP_SIZE * GN_GROUP_SIZE), n);
}

void gn_store_several(uint u, uint block, uint n) {
    uint i = gn_group_index(block, u);
    if (i >= n) return;
    if (GN_NEEDS_COORDS) gn_place_vector(i, n);
#ifdef GN_PARTS
    if (GN_PARTS(GN_OUT_KIND(0u))) {
        uint count = min((n - i + GN_APART_BY - 1u) / GN_APART_BY, GN_GROUP_SIZE);
        gn_write_parts(GN_OPEN(GN_FIRST_OUT), gn_offsets(8u, GN_BASE(8u)), gn_result[u][0], gn_result[u][1], count);
        return;
    }
#endif
#define GN_STORE(K, U) if (K < GN_N_OUT) gn_output(K, i, n, gn_result[U][K]);
    GN_FOR_OUTPUTS(GN_STORE, u)
#undef GN_STORE
}

// The groups of one stretch of the vector index.
void gn_stretch(uint block, uint n) {
#define GN_LOAD(U) gn_load_several(U, block, n);
    GN_FOR_GROUPS(GN_LOAD)
#define GN_RUN(U) gn_finish_group(U);
    GN_FOR_GROUPS(GN_RUN)
#define GN_STORE(U) gn_store_several(U, block, n);
    GN_FOR_GROUPS(GN_STORE)
}

// ---- tiles

#if GN_INPUTS == 3

#define GN_ROW_DIM GN_PARAM(uint(GNI_P_MAP_ROW_DIM))
#define GN_ROWS GN_PARAM(uint(GNI_P_MAP_ROWS))
#define GN_BETWEEN GN_PARAM(uint(GNI_P_MAP_BETWEEN))
#define GN_ACROSS GN_PARAM(uint(GNI_P_MAP_ACROSS))
#define GN_DOWN GN_PARAM(uint(GNI_P_MAP_DOWN))
#define GN_COLUMNS GN_DIM(GN_V_RANK - 1u)

// Where the element at row r and column c of a tile's plane is in operand o; `at` is the plane's start.
#define GN_TILE_AT(o, at, r, c) ((at) + (r) * GN_STRIDE(o, GN_ROW_DIM) + (c) * GN_STRIDE(o, GN_V_RANK - 1u))

#ifdef GN_FOUR
#define GN_FOR_ROWS(X) X(0u) X(1u) X(2u) X(3u)
#else
#define GN_FOR_ROWS(X) X(0u) X(1u)
#endif

// Input k of rows r to r + 3, columns c to c + 3, of which at least the first ones exist; as groups from `u` on.
void gn_load_tile(uint u, uint k, uint at, uint r, uint c) {
    uint kind = GN_IN_KIND(k), t = GN_IN_DTYPE(k), row = min(r, GN_ROWS - 1u), last = GN_COLUMNS - 1u;
#ifndef GN_FOUR
    if (kind == GN_K_COLVEC) {
        uvec4 a = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, c)), t, false, true);
        uvec4 b = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, min(c + 1u, last))), t, false, true);
        gn_raw[u][k] = uvec4(a.xy, b.xy);
        gn_raw[u + 1u][k] = uvec4(a.zw, b.zw);
        return;
    }
#else
    if (kind == GN_K_COLVEC) {
        uvec4 a = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, c)), t, false, true);
        uvec4 b = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, min(c + 1u, last))), t, false, true);
        uvec4 d = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, min(c + 2u, last))), t, false, true);
        uvec4 e = gn_read_raw(GN_OPEN(k), uvec4(GN_TILE_AT(k, at, r, min(c + 3u, last))), t, false, true);
        gn_raw[0][k] = uvec4(a.x, b.x, d.x, e.x);
        gn_raw[1][k] = uvec4(a.y, b.y, d.y, e.y);
        gn_raw[2][k] = uvec4(a.z, b.z, d.z, e.z);
        gn_raw[3][k] = uvec4(a.w, b.w, d.w, e.w);
        return;
    }
#endif
    uvec4 columns = min(c + uvec4(0u, 1u, 2u, 3u), uvec4(last));
#define GN_LOAD_ROW(U)                                                                             \
    {                                                                                              \
        uvec4 j = GN_TILE_AT(k, at, min(r + U, GN_ROWS - 1u), columns);                            \
        gn_raw[u + U][k] = gn_input_raw(k, kind == GN_K_SCALAR ? uvec4(at) : j);                   \
    }
    GN_FOR_ROWS(GN_LOAD_ROW)
}

void gn_store_tile(uint u, uint at, uint r, uint c) {
    uint count = min(GN_COLUMNS - c, GN_GROUP_SIZE);
    GN_HANDLE h = GN_OPEN(GN_FIRST_OUT);
    bool group = GN_OUT_KIND(0u) == GN_K_ROWVEC && count == GN_GROUP_SIZE;
    uint t = GN_OUT_DTYPE(0u);
#define GN_STORE_ROW(U)                                                                            \
    if (r + U < GN_ROWS) {                                                                         \
        uvec4 j = GN_TILE_AT(8u, at, r + U, c + uvec4(0u, 1u, 2u, 3u));                            \
        if (group) gn_write_group(h, j.x, t, gn_result[u + U][0]);                                 \
        else gn_write_each(h, j, t, gn_result[u + U][0], count);                                   \
    }
    GN_FOR_ROWS(GN_STORE_ROW)
}

void gn_tile(uint block) {
    uint l = gl_LocalInvocationIndex, tiles = GN_ACROSS * GN_DOWN;
    uint outer = block / tiles, tile = block - outer * tiles, down = tile / GN_ACROSS;
    // 8 x 4 squares to 32 invocations: both sides of memory see stretches of 64 bytes and more.
    uint r = down * 64u + GN_GROUP_SIZE * ((l & 7u) | ((l >> 2) & 8u));
    uint c = ((tile - down * GN_ACROSS) * 16u + (((l >> 3) & 3u) | ((l >> 4) & 12u))) * GN_GROUP_SIZE;
    if (r >= GN_ROWS || c >= GN_COLUMNS) return;
    uint high = outer / GN_BETWEEN, plane = (high * GN_ROWS * GN_BETWEEN + (outer - high * GN_BETWEEN)) * GN_COLUMNS;
    gn_place_vector(plane, GN_N);
#ifdef GN_FOUR
#define GN_LOAD_SQUARE(K) if (K < GN_N_IN) gn_load_tile(0u, K, gn_offsets(K, GN_BASE(K)).x, r, c);
#else
#define GN_LOAD_SQUARE(K)                                                                          \
    if (K < GN_N_IN) {                                                                             \
        gn_load_tile(0u, K, gn_offsets(K, GN_BASE(K)).x, r, c);                                    \
        gn_load_tile(2u, K, gn_offsets(K, GN_BASE(K)).x, min(r + 32u, GN_ROWS - 1u & ~1u), c);     \
    }
#endif
    GN_FOR_INPUTS(GN_LOAD_SQUARE)
    gn_finish_group(0u);
    gn_finish_group(1u);
    gn_finish_group(2u);
    gn_finish_group(3u);
    uint at = gn_offsets(8u, GN_BASE(8u)).x;
    gn_store_tile(0u, at, r, c);
#ifndef GN_FOUR
    gn_store_tile(2u, at, r + 32u, c);
#endif
}
#else
void gn_tile(uint block) {}
#endif

void main() {
    uint n = GN_N, blocks = GN_BLOCKS;
    gn_constants();
    for (uint block = gl_WorkGroupID.x; block < blocks; block += gl_NumWorkGroups.x) {
        if (GN_TILES) gn_tile(block);
        else gn_stretch(block, n);
    }
}

#endif
