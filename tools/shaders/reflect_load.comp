#version 450
// What reflect.comp starts from: the matrix, or the symmetric one of which the lower triangle is given, times a power of
// two that makes its largest element about 1, and if asked for its transpose. Rows end in zeros.
//
// size   word 0 of the state becomes the highest bits of the largest element, NaN being the largest
// load   the matrices
//
//! variant reflect_size -DGN_SIZE
//! variant reflect_size64 -DGN_SIZE -DGN_DOUBLE
//! variant reflect_load
//! variant reflect_load64 -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#define GN_BUFFERS 3
#include "gn.glsl"

layout(local_size_x = 256) in;

// Buffers: the matrix, the state, where it goes.
#define GN_BASE GN_PARAM(GNI_P_LOAD_BASE)
#define GN_RS GN_PARAM(GNI_P_LOAD_ROW)
#define GN_CS GN_PARAM(GNI_P_LOAD_COLUMN)
#define GN_M GN_PARAM(GNI_P_LOAD_M)
#define GN_N GN_PARAM(GNI_P_LOAD_N)
#define GN_SYMMETRIC GN_PARAM(GNI_P_LOAD_SYMMETRIC)
#define GN_TO GN_PARAM(GNI_P_LOAD_TO)
#define GN_LD GN_PARAM(GNI_P_LOAD_LD)
#define GN_TURNED GN_PARAM(GNI_P_LOAD_TRANSPOSED)
#define GN_TURNED_LD GN_PARAM(GNI_P_LOAD_TRANSPOSED_LD)

#ifdef GN_DOUBLE
#define GN_R double
#define gn_get(k, i) packDouble2x32(gn_load2(k, i))
#define gn_put(k, i, x) gn_store2(k, i, unpackDouble2x32(x))
#define gn_high(x) unpackDouble2x32(x).y
double gn_scale(uint high) { return packDouble2x32(uvec2(0u, (2046u - clamp(high >> 20, 24u, 2022u)) << 20)); }
#else
#define GN_R float
#define gn_get(k, i) uintBitsToFloat(gn_load(k, i))
#define gn_put(k, i, x) gn_store(k, i, floatBitsToUint(x))
#define gn_high(x) floatBitsToUint(x)
float gn_scale(uint high) { return uintBitsToFloat((254u - clamp(high >> 23, 2u, 230u)) << 23); }
#endif

GN_R gn_from(uint i, uint j) {
    if (GN_SYMMETRIC != 0u && j > i) return gn_get(0u, GN_BASE + j * GN_RS + i * GN_CS);
    return gn_get(0u, GN_BASE + i * GN_RS + j * GN_CS);
}

#ifdef GN_SIZE
shared uint gn_most;

void main() {
    uint me = gl_LocalInvocationIndex, i = GN_GROUP, most = 0u;
    if (i >= GN_M) return;
    if (me == 0u) gn_most = 0u;
    barrier();
    for (uint j = me; j < (GN_SYMMETRIC != 0u ? i + 1u : GN_N); j += 256u)
        most = max(most, gn_high(gn_from(i, j)) & 0x7fffffffu);
    atomicMax(gn_most, most);
    barrier();
    if (me == 0u) gn_atomic_max(1u, 0u, gn_most);
}
#else
void main() {
    uint me = gl_LocalInvocationIndex, row = GN_GROUP;
    if (row >= GN_M + GN_TURNED_LD / max(GN_TURNED_LD, 1u) * GN_N) return;
    GN_R scale = gn_scale(gn_load(1u, 0u));
    bool turned = row >= GN_M;
    uint i = turned ? row - GN_M : row, ld = turned ? GN_TURNED_LD : GN_LD, count = turned ? GN_M : GN_N;
    for (uint j = me; j < ld; j += 256u) {
        GN_R x = GN_R(0);
        if (j < count) x = (turned ? gn_from(j, i) : gn_from(i, j)) * scale;
        gn_put(2u, (turned ? GN_TURNED : GN_TO) + i * ld + j, x);
    }
}
#endif
