#version 450
// Reflections that make a matrix tridiagonal or bidiagonal, a column by each dispatch (gni_reflect).
//
// A dispatch brings a row of the matrix up to date, makes the reflection v that leaves of it one number from column
// GN_FIRST on, then brings all rows behind up to date and multiplies them by v: the matrix is read and written
// once for each column, and no dispatch waits for another but through the barrier between them. What every workgroup
// needs of the last column, it works out itself.
//
// Vectors have the length that makes the reflection 1 - v v^T, or are 0. Of a symmetric matrix,
// a -= v w^T + w v^T with p = a v, w = p - (p v) / 2 v (Golub and Van Loan 8.3.1). Of any other matrix, of which the
// transpose is there too, a -= x u^T + v y^T with x = a u, y = a^T v (GVL 5.4.8): a column takes two dispatches.
//
//! variant reflect
//! variant reflect64 -DGN_DOUBLE
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define GN_BUFFERS 2
#include "gn.glsl"

layout(local_size_x_id = GNI_S_REFLECT_THREADS) in;
layout(constant_id = GNI_S_REFLECT_THREADS) const uint GN_T = 64u;
layout(constant_id = GNI_S_REFLECT_SYMMETRIC) const bool GN_SYMMETRIC = true;

// Buffers: the matrix; vectors and numbers.
#define GN_BASE GN_PARAM(GNI_P_REFLECT_BASE)
#define GN_LD GN_PARAM(GNI_P_REFLECT_LD)
#define GN_ROW GN_PARAM(GNI_P_REFLECT_ROW)
#define GN_FIRST GN_PARAM(GNI_P_REFLECT_FIRST)
#define GN_BEGIN GN_PARAM(GNI_P_REFLECT_BEGIN)
#define GN_END GN_PARAM(GNI_P_REFLECT_END)
#define GN_COLUMNS GN_PARAM(GNI_P_REFLECT_COLUMNS)
#define GN_PLAIN_A GN_PARAM(GNI_P_REFLECT_PLAIN_A)
#define GN_RAW_A GN_PARAM(GNI_P_REFLECT_RAW_A)
#define GN_PLAIN_B GN_PARAM(GNI_P_REFLECT_PLAIN_B)
#define GN_RAW_B GN_PARAM(GNI_P_REFLECT_RAW_B)
#define GN_V GN_PARAM(GNI_P_REFLECT_V)
#define GN_PRODUCT GN_PARAM(GNI_P_REFLECT_PRODUCT)
#define GN_NUMBERS GN_PARAM(GNI_P_REFLECT_NUMBERS)
#define GN_SHARE GN_PARAM(GNI_P_REFLECT_SHARE)

#define GN_MOST 64u
#define GN_ROWS 8u       // at a time
#define GN_SUBGROUPS 32u // at most
#define GN_EACH(i) [[unroll]] for (uint i = 0u; i < GN_ROWS; i++)

#ifdef GN_DOUBLE
#define GN_R double
#define GN_RV dvec2
#define GN_VECTOR 2u // numbers in 16 bytes
#define GN_TINY GN_R(1e-280LF)
#define gn_get(k, i) packDouble2x32(gn_load2(k, i))
#define gn_put(k, i, x) gn_store2(k, i, unpackDouble2x32(x))
GN_RV gn_numbers(uvec4 v) { return dvec2(packDouble2x32(v.xy), packDouble2x32(v.zw)); }
uvec4 gn_bits(GN_RV v) { return uvec4(unpackDouble2x32(v.x), unpackDouble2x32(v.y)); }
#else
#define GN_R float
#define GN_RV vec4
#define GN_VECTOR 4u
#define GN_TINY 1e-30
#define gn_get(k, i) uintBitsToFloat(gn_load(k, i))
#define gn_put(k, i, x) gn_store(k, i, floatBitsToUint(x))
#define gn_numbers(v) uintBitsToFloat(v)
#define gn_bits(v) floatBitsToUint(v)
#endif
#define gn_get_vector(k, i) gn_numbers(gn_load4(k, (i) / GN_VECTOR))

shared GN_R gn_part[GN_SUBGROUPS], gn_sums[GN_MOST * GN_SUBGROUPS];
shared GN_R gn_left_a[GN_MOST], gn_left_b[GN_MOST]; // of the workgroup's rows

// The sum of x over the workgroup.
GN_R gn_sum(GN_R x) {
    x = subgroupAdd(x);
    if (subgroupElect()) gn_part[gl_SubgroupID] = x;
    barrier();
    GN_R sum = GN_R(0);
    for (uint i = 0u; i < gl_NumSubgroups; i++) sum += gn_part[i];
    barrier();
    return sum;
}

GN_R gn_alpha;

// Factors of what is subtracted, by row and by column.
GN_R gn_row_a(uint i) {
    GN_R x = gn_get(1u, GN_RAW_A + i);
    return GN_SYMMETRIC ? x + gn_alpha * gn_get(1u, GN_PLAIN_A + i) : x;
}

GN_R gn_row_b(uint i) { return gn_get(1u, GN_PLAIN_B + i); }

void gn_columns(uint c, out GN_RV a, out GN_RV b) {
    a = gn_get_vector(1u, GN_PLAIN_A + c);
    b = gn_get_vector(1u, GN_RAW_B + c);
    if (GN_SYMMETRIC) b += gn_alpha * a;
}

// The row that is reflected, at one column.
GN_R gn_element(uint c, GN_R row_a, GN_R row_b) {
    GN_R a = gn_get(1u, GN_PLAIN_A + c), b = gn_get(1u, GN_RAW_B + c);
    if (GN_SYMMETRIC) b += gn_alpha * a;
    return gn_get(0u, GN_BASE + GN_ROW * GN_LD + c) - row_a * a - row_b * b;
}

// Of 4 or 2 columns from c on those of the reflection.
GN_RV gn_inside(GN_RV x, uint c, uint first) {
    [[unroll]] for (uint e = 0u; e < GN_VECTOR; e++)
        if (c + e < first || c + e >= GN_COLUMNS) x[e] = GN_R(0);
    return x;
}

void main() {
    uint me = gl_LocalInvocationIndex, group = GN_GROUP, from = GN_ROW / GN_VECTOR * GN_VECTOR, step = GN_T * GN_VECTOR;
    uint begin = GN_BEGIN + group * GN_SHARE, end = min(begin + GN_SHARE, GN_END);
    if (group > 0u && begin >= GN_END) return;
    gn_alpha = GN_R(0);
    if (GN_SYMMETRIC) {
        GN_R sum = GN_R(0);
        for (uint c = from + me * GN_VECTOR; c < GN_COLUMNS; c += step)
            sum += dot(gn_get_vector(1u, GN_RAW_A + c), gn_get_vector(1u, GN_PLAIN_A + c));
        gn_alpha = GN_R(-0.5) * gn_sum(sum);
    }
    GN_R row_a = gn_row_a(GN_ROW), row_b = gn_row_b(GN_ROW);
    if (me < GN_MOST) {
        bool mine = begin + me < end;
        gn_left_a[me] = mine ? gn_row_a(begin + me) : GN_R(0);
        gn_left_b[me] = mine ? gn_row_b(begin + me) : GN_R(0);
    }
    GN_R sum = GN_R(0);
    for (uint c = from + me * GN_VECTOR; c < GN_COLUMNS; c += step) {
        GN_RV a, b;
        gn_columns(c, a, b);
        GN_RV x = gn_inside(gn_get_vector(0u, GN_BASE + GN_ROW * GN_LD + c) - row_a * a - row_b * b, c, GN_FIRST + 1u);
        sum += dot(x, x);
    }
    sum = gn_sum(sum);
    // The vector is `root` at GN_FIRST and `over` times the row behind it.
    GN_R first = GN_FIRST < GN_COLUMNS ? gn_element(GN_FIRST, row_a, row_b) : GN_R(0), left = first, over = GN_R(0), root = GN_R(0);
    if (sum > GN_TINY) {
        GN_R norm = sqrt(first * first + sum);
        left = first > GN_R(0) ? -norm : norm;
        over = GN_R(1) / (first - left);
        root = sqrt(GN_R(2) / (GN_R(1) + sum * over * over));
        over *= root;
    }
    if (group == 0u && me == 0u) {
        gn_put(1u, GN_NUMBERS, gn_element(GN_ROW, row_a, row_b));
        gn_put(1u, GN_NUMBERS + 1u, left);
    }
    for (uint i = me; i < GN_MOST * gl_NumSubgroups; i += GN_T) gn_sums[i] = GN_R(0);
    barrier();
    for (uint span = from; span < GN_COLUMNS; span += step) {
        uint c = span + me * GN_VECTOR;
        bool there = c < GN_COLUMNS;
        GN_RV a = GN_RV(0), b = GN_RV(0), v = GN_RV(0);
        if (there) {
            gn_columns(c, a, b);
            if (root != GN_R(0)) {
                v = over * (gn_get_vector(0u, GN_BASE + GN_ROW * GN_LD + c) - row_a * a - row_b * b);
                v = gn_inside(v, c, GN_FIRST);
                [[unroll]] for (uint e = 0u; e < GN_VECTOR; e++)
                    if (c + e == GN_FIRST) v[e] = root;
            }
            if (group == 0u) gn_store4(1u, (GN_V + c) / GN_VECTOR, gn_bits(v));
        }
        for (uint r = begin; r < end; r += GN_ROWS) {
            GN_RV x[GN_ROWS];
            GN_EACH(i) {
                x[i] = GN_RV(0);
                if (there) x[i] = gn_get_vector(0u, GN_BASE + min(r + i, end - 1u) * GN_LD + c);
            }
            GN_EACH(i) {
                uint at = r + i - begin;
                x[i] -= gn_left_a[at] * a + gn_left_b[at] * b;
                if (there && r + i < end) gn_store4(0u, (GN_BASE + (r + i) * GN_LD + c) / GN_VECTOR, gn_bits(x[i]));
            }
            GN_EACH(i) {
                GN_R y = subgroupAdd(dot(x[i], v));
                if (subgroupElect()) gn_sums[(r + i - begin) * gl_NumSubgroups + gl_SubgroupID] += y;
            }
        }
    }
    barrier();
    if (begin + me < end) {
        GN_R y = GN_R(0);
        for (uint i = 0u; i < gl_NumSubgroups; i++) y += gn_sums[me * gl_NumSubgroups + i];
        gn_put(1u, GN_PRODUCT + begin + me, y);
    }
}
