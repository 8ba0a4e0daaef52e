// Shared by reduce.comp and reduce_fast.comp (gni_reduce): a program's result, reduced over some dimensions.
//
// Rows: the vector index runs over the reduced elements, the scalar index over the kept ones; a team of
// lanes shares a row. Columns: the other way round, every lane has a group of neighbouring columns, and
// a team of lanes shares their rows. A unit is what a team makes: one row's result, or a group of them.
// Units with few teams are split over several workgroups; the last one to finish joins their partial
// results, in the order of the splits whoever is last. A lane has the loads of GN_PER_LANE steps under
// way at a time.
//
// What a lane carries along is (s, c), one for each element of a group:
//   sum of floats    the sum of what it takes at a time and what rounding cut off it (Neumaier); where a partial sum would leave the
//                    range, s times GN_FAR, and c is NaN
//   product of floats  s times c powers of GN_FAR
//   sum of integers  64-bit sums of 32-bit integers are low and high words
//   argmin, argmax   value and index; the lower index wins ties, NaN wins over all
//   others           c unused
//
// Programs of two outputs (sums only) have a second such pair, and a second result behind the first. Theirs is a lot of arithmetic:
// what a lane takes at a time is added up before it joins (s, c). Of moments both outputs are x: sums of what x is more than a
// number near its mean and of the squares of that become the variance and the mean.

#extension GL_EXT_control_flow_attributes : require
#define GN_BUFFERS 11
#define GN_READONLY 0xff
#include "gn.glsl"
#define GN_INPUTS_CONST
#define GN_REDUCES // ops.glsl numbers the reductions
#include "program.glsl"

layout(local_size_x = 256) in;

// 4 words at once, as gn_load_coherent and gn_store_coherent do with one.
#ifdef GN_BINDINGS
uvec4 gn_load4_coherent(uint k, uint i) {
    uvec4 x;
    for (uint e = 0u; e < 4u; e++) x[e] = gn_load_coherent(k, 4u * i + e);
    return x;
}
void gn_store4_coherent(uint k, uint i, uvec4 x) {
    for (uint e = 0u; e < 4u; e++) gn_store_coherent(k, 4u * i + e, x[e]);
}
#else
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer gn_shared_vectors { uvec4 v[]; };
#define gn_load4_coherent(k, i) gn_shared_vectors(gn_address(k)).v[i]
#define gn_store4_coherent(k, i, x) gn_shared_vectors(gn_address(k)).v[i] = (x)
#endif

#define GN_CODE (GN_W5 & 255u)
#define GN_COLUMNS (((GN_W5 >> 8) & 1u) != 0u)
#define GN_LOG_LANES ((GN_W5 >> 9) & 15u)
#define GN_RESULT_DTYPE ((GN_W5 >> 16) & 15u)
#define GN_LOG_PER_LANE ((GN_W5 >> 20) & 3u)
#define GN_PER_LANE (1u << GN_LOG_PER_LANE)
#define GN_LANES (1u << GN_LOG_LANES)
#define GN_TEAMS (256u >> GN_LOG_LANES)

#define GN_KEPT GN_PARAM(uint(GNI_P_REDUCE_KEPT))
#define GN_REDUCED GN_PARAM(uint(GNI_P_REDUCE_REDUCED))
#define GN_UNITS GN_PARAM(uint(GNI_P_REDUCE_UNITS))
#define GN_CHUNK GN_PARAM(uint(GNI_P_REDUCE_CHUNK))
#define GN_SPLITS GN_PARAM(uint(GNI_P_REDUCE_SPLITS))
#define GN_SPLIT0 GN_PARAM(uint(GNI_P_REDUCE_SPLIT0))
#define GN_INDEX0 GN_PARAM(uint(GNI_P_REDUCE_INDEX0))
#define GN_COUNTER0 GN_PARAM(uint(GNI_P_REDUCE_COUNTER0))
#define GN_APART GN_PARAM(uint(GNI_P_REDUCE_APART))
#define GN_PAIR (GN_N_OUT == 2u)
#define GN_MOMENTS ((GN_W5 & GNI_F_REDUCE_MOMENTS) != 0u)
#define GN_SAMPLES GN_PARAM(uint(GNI_P_REDUCE_SAMPLES))
#define GN_OUT GN_FIRST_OUT
#define GN_PARTIALS (GN_FIRST_OUT + 1u)
#define GN_COUNTERS (GN_FIRST_OUT + 2u)

shared uvec4 gn_team_s[256];
shared uvec4 gn_team_c[256];
shared uint gn_last;

#ifdef GN_X64
#define GN_PARAM_REAL(k) packDouble2x32(uvec2(GN_PARAM(uint(k)), GN_PARAM(uint(k) + 1u)))
#else
#define GN_PARAM_REAL(k) GN_PARAM_F(uint(k))
#endif

// Of the second output.
uvec4 gn_second_s, gn_second_c;

#ifdef GN_X64
#define GN_REAL dvec2
#define GN_FROM_REAL(x) gn_bits(x)
#define GN_TO_REAL(r) gn_double(r)
#define GN_INT i64vec2
#define GN_FROM_INT(x) gn_bits(x)
#define GN_TO_INT(r) gn_long(r)
#define GN_INF uvec4(0u, 0x7ff00000u, 0u, 0x7ff00000u)
#define GN_SIGN_BITS uvec4(0u, 0x80000000u, 0u, 0x80000000u)
#define GN_ONE_F gn_bits(dvec2(1.0))
#define GN_NAN uvec4(0u, 0x7ff80000u, 0u, 0x7ff80000u)
#define GN_FAR 1.340780792994259709957e154lf // 2^512
#define GN_NEAR 7.458340731200206743290e-155lf // 2^-512
#define GN_LEAST 2.2250738585072014e-308lf
#define GN_COUNTS(c) ivec2((c).xz)
#define GN_ONE_I uvec4(1u, 0u, 1u, 0u)
#define GN_LOWEST uvec4(0u, 0x80000000u, 0u, 0x80000000u)
#define GN_HIGHEST uvec4(0xffffffffu, 0x7fffffffu, 0xffffffffu, 0x7fffffffu)
// A result for each 64-bit element, spread over its two words.
#define GN_PICK(p, r, q) uvec4((p).x ? (r).xy : (q).xy, (p).y ? (r).zw : (q).zw)
#define GN_BOOLS bvec2
uvec4 gn_indices(uint i, uint step) { return uvec4(i, 0u, i + step, 0u); }
bvec2 gn_less_u(uvec4 a, uvec4 b) { return lessThan(a.xz, b.xz); } // of indices
#else
#define GN_REAL vec4
#define GN_FROM_REAL(x) floatBitsToUint(x)
#define GN_TO_REAL(r) uintBitsToFloat(r)
#define GN_INT ivec4
#define GN_FROM_INT(x) uvec4(x)
#define GN_TO_INT(r) ivec4(r)
#define GN_INF uvec4(0x7f800000u)
#define GN_SIGN_BITS uvec4(0x80000000u)
#define GN_ONE_F uvec4(0x3f800000u)
#define GN_NAN uvec4(0x7fc00000u)
#define GN_FAR 18446744073709551616.0 // 2^64
#define GN_NEAR 5.421010862427522170037e-20 // 2^-64
#define GN_LEAST 1.17549435e-38
#define GN_COUNTS(c) ivec4(c)
#define GN_ONE_I uvec4(1u)
#define GN_LOWEST uvec4(0x80000000u)
#define GN_HIGHEST uvec4(0x7fffffffu)
#define GN_PICK(p, r, q) mix(q, r, p)
#define GN_BOOLS bvec4
uvec4 gn_indices(uint i, uint step) { return i + step * uvec4(0u, 1u, 2u, 3u); }
bvec4 gn_less_u(uvec4 a, uvec4 b) { return lessThan(a, b); }
#endif
GN_REAL gn_shift; // of moments: the number near the mean
#define GN_ANY_OF(p, q) GN_OR(p, q)
#define GN_BOTH(p, q) GN_AND(p, q)

// The value that changes nothing.
uvec4 gn_neutral() {
    uint op = GN_CODE - GN_CODE % 3u, d = GN_CODE % 3u;
    if (op == GN_PROD) return d == 0u ? GN_ONE_F : GN_ONE_I;
    if (op == GN_ALL) return uvec4(1u);
    if (op == GN_MIN || op == GN_ARGMIN) return d == 0u ? GN_INF : d == 1u ? GN_HIGHEST : uvec4(0xffffffffu);
    if (op == GN_MAX || op == GN_ARGMAX) return d == 0u ? GN_INF | GN_SIGN_BITS : d == 1u ? GN_LOWEST : uvec4(0u);
    return uvec4(0u);
}
uvec4 gn_neutral_c() {
    uint op = GN_CODE - GN_CODE % 3u;
    if (op == GN_ARGMIN || op == GN_ARGMAX) return gn_indices(0xffffffffu, 0u);
    return op == GN_SUM || op == GN_PROD ? uvec4(0u) : uvec4(0u);
}

// Sums of floats (s, c) and (s2, c2) into (s, c).
void gn_join_sums(inout uvec4 s, inout uvec4 c, uvec4 s2, uvec4 c2) {
    GN_REAL a = GN_TO_REAL(s), b = GN_TO_REAL(s2);
    precise GN_REAL sum = a + b;
    precise GN_REAL t = sum - a;
    precise GN_REAL lost = (a - (sum - t)) + (b - t);
    precise GN_REAL rest = (GN_TO_REAL(c) + GN_TO_REAL(c2)) + lost;
    s = GN_FROM_REAL(sum);
    GN_BOOLS near = gn_isfinite(rest);
    if (!all(near)) {
        GN_REAL d = GN_TO_REAL(c), e = GN_TO_REAL(c2);
        precise GN_REAL x = mix(a * GN_NEAR + d * GN_NEAR, a, gn_isnan(d));
        precise GN_REAL y = mix(b * GN_NEAR + e * GN_NEAR, b, gn_isnan(e));
        precise GN_REAL z = x + y;
        s = GN_PICK(near, s, GN_FROM_REAL(z));
        c = GN_PICK(near, GN_FROM_REAL(rest), GN_NAN);
        return;
    }
    c = GN_FROM_REAL(rest);
}

// (s, c) and (s2, c2) into (s, c).
void gn_join(inout uvec4 s, inout uvec4 c, uvec4 s2, uvec4 c2) {
    switch (GN_CODE) {
    case GN_SUM: gn_join_sums(s, c, s2, c2); break;
    case GN_PROD: {
        GN_REAL a = GN_TO_REAL(s), b = GN_TO_REAL(s2);
        precise GN_REAL y = a * b;
        s = GN_FROM_REAL(y);
        c += c2;
        GN_BOOLS near = GN_BOTH(gn_isfinite(y), greaterThanEqual(abs(y), GN_REAL(GN_LEAST)));
        if (!all(near)) { // towards 1, so that their product is in the range
            GN_BOOLS p = greaterThan(abs(a), GN_REAL(1.0)), q = greaterThan(abs(b), GN_REAL(1.0));
            precise GN_REAL z = mix(a * GN_FAR, a * GN_NEAR, p) * mix(b * GN_FAR, b * GN_NEAR, q);
            const uvec4 up = uvec4(1u), down = uvec4(0xffffffffu);
            s = GN_PICK(near, s, GN_FROM_REAL(z));
            c += GN_PICK(near, uvec4(0u), GN_PICK(p, up, down) + GN_PICK(q, up, down));
        }
        break;
    }
    case GN_MIN: s = GN_FROM_REAL(gn_min(GN_TO_REAL(s), GN_TO_REAL(s2))); break;
    case GN_MAX: s = GN_FROM_REAL(gn_max(GN_TO_REAL(s), GN_TO_REAL(s2))); break;
    case GN_ARGMIN:
    case GN_ARGMAX: {
        GN_REAL a = GN_TO_REAL(s), b = GN_TO_REAL(s2);
        GN_BOOLS na = gn_isnan(a), nb = gn_isnan(b), lower = gn_less_u(c2, c);
        GN_BOOLS wins = GN_CODE == GN_ARGMIN ? lessThan(b, a) : greaterThan(b, a);
        GN_BOOLS same = GN_ANY_OF(equal(a, b), GN_BOTH(na, nb));
        wins = GN_ANY_OF(GN_ANY_OF(wins, GN_BOTH(nb, not(na))), GN_BOTH(same, lower));
        s = GN_PICK(wins, s2, s);
        c = GN_PICK(wins, c2, c);
        break;
    }
    case GN_ANY: case GN_ANY + 1u: case GN_ANY + 2u: s |= s2; break;
    case GN_ALL: case GN_ALL + 1u: case GN_ALL + 2u: s &= s2; break;
#ifdef GN_X64
    case GN_SUM + 1u: s = gn_bits(gn_long(s) + gn_long(s2)); break;
    case GN_PROD + 1u: s = gn_bits(gn_long(s) * gn_long(s2)); break;
#else
    case GN_SUM + 1u: case GN_SUM + 2u: {
        uvec4 carry;
        s = uaddCarry(s, s2, carry);
        c = c + c2 + carry;
        break;
    }
    case GN_PROD + 1u: case GN_PROD + 2u: { // modulo 2^64
        uvec4 high, low;
        umulExtended(s, s2, high, low);
        c = high + s * c2 + c * s2;
        s = low;
        break;
    }
    case GN_MIN + 2u: s = min(s, s2); break;
    case GN_MAX + 2u: s = max(s, s2); break;
    case GN_ARGMIN + 2u: case GN_ARGMAX + 2u: {
        bvec4 wins = GN_CODE == GN_ARGMIN + 2u ? lessThan(s2, s) : greaterThan(s2, s);
        wins = GN_ANY_OF(wins, GN_BOTH(equal(s, s2), lessThan(c2, c)));
        s = GN_PICK(wins, s2, s);
        c = GN_PICK(wins, c2, c);
        break;
    }
#endif
    case GN_MIN + 1u: s = GN_FROM_INT(min(GN_TO_INT(s), GN_TO_INT(s2))); break;
    case GN_MAX + 1u: s = GN_FROM_INT(max(GN_TO_INT(s), GN_TO_INT(s2))); break;
    case GN_ARGMIN + 1u: case GN_ARGMAX + 1u: {
        GN_BOOLS wins = GN_CODE == GN_ARGMIN + 1u ? lessThan(GN_TO_INT(s2), GN_TO_INT(s))
                                                  : greaterThan(GN_TO_INT(s2), GN_TO_INT(s));
        wins = GN_ANY_OF(wins, GN_BOTH(equal(GN_TO_INT(s), GN_TO_INT(s2)), gn_less_u(c2, c)));
        s = GN_PICK(wins, s2, s);
        c = GN_PICK(wins, c2, c);
        break;
    }
    default: break;
    }
}

// gn_join for a lane's next elements: their indices are above those before.
void gn_join_next(inout uvec4 s, inout uvec4 c, uvec4 s2, uvec4 c2) {
#ifndef GN_X64
    if (GN_CODE == GN_ARGMIN || GN_CODE == GN_ARGMAX) {
        vec4 a = uintBitsToFloat(s), b = uintBitsToFloat(s2);
        bvec4 wins = GN_CODE == GN_ARGMIN ? lessThan(b, a) : greaterThan(b, a);
        wins = GN_BOTH(GN_ANY_OF(wins, gn_isnan(b)), not(gn_isnan(a)));
        s = GN_PICK(wins, s2, s);
        c = GN_PICK(wins, c2, c);
        return;
    }
#endif
    gn_join(s, c, s2, c2);
}

// A program's result as something to join; `index` is that of its reduced element.
void gn_enter(uvec4 v, uvec4 index, out uvec4 s, out uvec4 c) {
    uint op = GN_CODE - GN_CODE % 3u, d = GN_CODE % 3u;
    s = v;
    c = uvec4(0u);
    if (op == GN_ANY || op == GN_ALL) {
#ifdef GN_X64
        bvec2 p = d == 0u ? gn_truth(gn_double(v)) : notEqual(gn_long(v), i64vec2(0));
        s = uvec4(p.x, p.x, p.y, p.y);
#else
        s = d == 0u ? uvec4(gn_truth(uintBitsToFloat(v))) : min(v, uvec4(1u));
#endif
    }
    if (op == GN_ARGMIN || op == GN_ARGMAX) c = index;
#ifndef GN_X64
    // The high words of 64-bit integers.
    if ((op == GN_SUM || op == GN_PROD) && d == 1u) c = uvec4(ivec4(v) >> 31);
#endif
}

// A product of floats out of its parts: five powers are beyond any range.
uvec4 gn_product(uvec4 s, uvec4 c) {
    GN_REAL a = GN_TO_REAL(s);
    for (int i = 0; i < 5; i++) {
        precise GN_REAL up = a * GN_FAR, down = a * GN_NEAR;
        a = mix(a, up, greaterThan(GN_COUNTS(c), GN_COUNTS(uvec4(i))));
        a = mix(a, down, lessThan(GN_COUNTS(c), GN_COUNTS(uvec4(-i))));
    }
    return GN_FROM_REAL(a);
}

// A sum of floats out of its parts.
GN_REAL gn_sum_of(uvec4 s, uvec4 c) {
    GN_REAL a = GN_TO_REAL(s), b = GN_TO_REAL(c);
    precise GN_REAL y = mix(a + b, a * GN_FAR, gn_isnan(b));
    return y;
}

// Element e of the result in memory's form: low and high word.
uvec2 gn_leave(uvec4 s, uvec4 c, uint e) {
    uint op = GN_CODE - GN_CODE % 3u, d = GN_CODE % 3u;
#ifdef GN_X64
    uvec4 v = s;
    if (op == GN_SUM && d == 0u) v = gn_bits(gn_sum_of(s, c));
    if (op == GN_PROD && d == 0u) v = gn_product(s, c);
    if (op == GN_ARGMIN || op == GN_ARGMAX) v = c;
    else if (op == GN_ANY || op == GN_ALL) v &= uvec4(1u, 0u, 1u, 0u);
    if (op != GN_ARGMIN && op != GN_ARGMAX) v = gn_narrow(v, GN_RESULT_DTYPE);
    return e == 0u ? v.xy : v.zw;
#else
    uvec4 v = s;
    if (op == GN_SUM && d == 0u) v = floatBitsToUint(gn_sum_of(s, c));
    if (op == GN_PROD && d == 0u) v = gn_product(s, c);
    if (op == GN_ARGMIN || op == GN_ARGMAX) return uvec2(c[e], 0u);
    v = gn_narrow(v, GN_RESULT_DTYPE);
    bool wide_int = (op == GN_SUM || op == GN_PROD) && d != 0u;
    return uvec2(v[e], wide_int ? c[e] : d == 1u ? uint(int(v[e]) >> 31) : 0u);
#endif
}

void gn_write_result(uint j, uvec4 s, uvec4 c, uint e) {
    uvec2 v = gn_leave(s, c, e);
    GN_HANDLE h = GN_OPEN(GN_OUT);
    j += GN_BASE(8u);
    if (gn_is_long(GN_RESULT_DTYPE)) GN_PUT2(h, j, v);
    else gn_write_one(h, j, gn_packing(GN_RESULT_DTYPE), v.x);
}

// Joins what the lanes of each team hold; lane 0 has it afterwards.
#define GN_JOIN_LANES(join)                                                                        \
    uint me = gl_LocalInvocationIndex;                                                             \
    barrier();                                                                                     \
    for (uint half_team = GN_LANES >> 1; half_team > 0u; half_team >>= 1) {                        \
        /* Written by those whose values the lower half takes: it is not written again before it is read. */ \
        if (lane >= half_team && lane < 2u * half_team) {                                          \
            gn_team_s[me] = s;                                                                     \
            gn_team_c[me] = c;                                                                     \
        }                                                                                          \
        barrier();                                                                                 \
        if (lane < half_team) join(s, c, gn_team_s[me + half_team * lane_step], gn_team_c[me + half_team * lane_step]); \
    }
void gn_join_lanes(uint lane, uint lane_step, inout uvec4 s, inout uvec4 c) { GN_JOIN_LANES(gn_join) }
// Second outputs and samples are sums of floats always, and whoever compiles that need not look at the rest.
void gn_sum_lanes(uint lane, uint lane_step, inout uvec4 s, inout uvec4 c) { GN_JOIN_LANES(gn_join_sums) }

// Elements of a group into its first one.
#ifdef GN_X64
#define GN_JOIN_GROUP(join) join(s, c, s.zwxy, c.zwxy);
#else
#define GN_JOIN_GROUP(join)                                                                        \
    for (uint e = 0u; e < 2u; e++) join(s, c, e == 0u ? s.yxwz : s.zwxy, e == 0u ? c.yxwz : c.zwxy);
#endif
void gn_join_group(inout uvec4 s, inout uvec4 c) { GN_JOIN_GROUP(gn_join) }
void gn_sum_group(inout uvec4 s, inout uvec4 c) { GN_JOIN_GROUP(gn_join_sums) }

// Joins the first elements of what the lanes of each team hold, into lane 0's. In a round a lane takes those of four.
#ifdef GN_FOUR
#define GN_EACH_ROUND(BODY)                                                                        \
    uint me = gl_LocalInvocationIndex, team = me >> GN_LOG_LANES, at = 0u;                         \
    barrier();                                                                                     \
    for (uint n = GN_LANES; n > 1u; n = (n + 3u) >> 2) {                                           \
        uint each = max(n, 4u), from = at + team * (each >> 2);                                    \
        BODY                                                                                       \
        at += GN_TEAMS * (each >> 2); /* at most 128 in all */                                     \
    }
#define GN_GIVE_FIRST(s, c, from) gn_team_s[(from) + (lane >> 2)][lane & 3u] = s.x, gn_team_c[(from) + (lane >> 2)][lane & 3u] = c.x;
#define GN_TAKE_FOUR(s, c, from, empty_s, empty_c)                                                 \
    s = gn_team_s[(from) + lane];                                                                  \
    c = gn_team_c[(from) + lane];                                                                  \
    if (n == 2u) {                                                                                 \
        s.zw = empty_s.zw;                                                                         \
        c.zw = empty_c.zw;                                                                         \
    }
void gn_join_rows(uint lane, inout uvec4 s, inout uvec4 c) {
    GN_EACH_ROUND(
        if (lane < n) { GN_GIVE_FIRST(s, c, from) }
        if (lane < n && GN_PAIR) { GN_GIVE_FIRST(gn_second_s, gn_second_c, 128u + from) }
        barrier();
        if (lane * 4u < n) {
            GN_TAKE_FOUR(s, c, from, gn_neutral(), gn_neutral_c())
            gn_join_group(s, c);
        }
        if (lane * 4u < n && GN_PAIR) {
            GN_TAKE_FOUR(gn_second_s, gn_second_c, 128u + from, uvec4(0u), uvec4(0u))
            gn_sum_group(gn_second_s, gn_second_c);
        })
}
void gn_sum_rows(uint lane, inout uvec4 s, inout uvec4 c) {
    GN_EACH_ROUND(
        if (lane < n) { GN_GIVE_FIRST(s, c, from) }
        barrier();
        if (lane * 4u < n) {
            GN_TAKE_FOUR(s, c, from, uvec4(0u), uvec4(0u))
            gn_sum_group(s, c);
        })
}
#else
void gn_join_rows(uint lane, inout uvec4 s, inout uvec4 c) {
    gn_join_lanes(lane, 1u, s, c);
    if (GN_PAIR) gn_sum_lanes(lane, 1u, gn_second_s, gn_second_c);
}
void gn_sum_rows(uint lane, inout uvec4 s, inout uvec4 c) { gn_sum_lanes(lane, 1u, s, c); }
#endif

void gn_join_team(uint lane, uint lane_step, inout uvec4 s, inout uvec4 c) {
    if (!GN_COLUMNS) {
        gn_join_rows(lane, s, c);
        return;
    }
    gn_join_lanes(lane, lane_step, s, c);
    if (GN_PAIR) gn_sum_lanes(lane, lane_step, gn_second_s, gn_second_c);
}

// The sums of moments as the variance and the mean.
void gn_finish_moments(inout uvec4 s, inout uvec4 c) {
    GN_REAL sum = gn_sum_of(s, c), squares = gn_sum_of(gn_second_s, gn_second_c);
    precise GN_REAL off = sum / GN_PARAM_REAL(GNI_P_REDUCE_COUNT), mean = gn_shift + off, var = squares - sum * off;
    GN_BOOLS beyond = GN_BOTH(gn_isinf(squares), gn_isfinite(sum)); // squares beyond the range
    var = mix(mix(var, GN_REAL(0.0), lessThan(var, GN_REAL(0.0))), squares, beyond);
    var = var / GN_PARAM_REAL(GNI_P_REDUCE_REST);
    s = GN_FROM_REAL(var);
    gn_second_s = GN_FROM_REAL(mean);
    c = gn_second_c = uvec4(0u);
}

// What is to be done to a sum of floats.
void gn_finish_sum(inout uvec4 s, inout uvec4 c) {
    GN_REAL y = gn_sum_of(s, c);
    if ((GN_W5 & GNI_F_REDUCE_DIVIDE) != 0u) y = gn_div(y, GN_REAL(GN_PARAM_REAL(GNI_P_REDUCE_COUNT)));
    else y = gn_sqrt(y);
    s = GN_FROM_REAL(y);
    c = uvec4(0u);
}

void gn_write_unit(uint unit, uvec4 s, uvec4 c) {
    if (GN_MOMENTS) gn_finish_moments(s, c);
    if ((GN_W5 & (GNI_F_REDUCE_DIVIDE | GNI_F_REDUCE_ROOT)) != 0u) gn_finish_sum(s, c);
    uint count = GN_COLUMNS ? GN_GROUP_SIZE : 1u;
    for (uint e = 0u; e < count; e++) {
        uint j = unit * count + e;
        if (GN_COLUMNS && j >= GN_KEPT) break;
        gn_write_result(j, s, c, e);
        if (GN_PAIR) gn_write_result(GN_APART + j, gn_second_s, gn_second_c, e);
    }
}

// Where step t of a unit starts along the vector index.
uint gn_step_index(uint unit, uint t) { return (GN_COLUMNS ? unit : t) * GN_GROUP_SIZE; }

// What the program made of step t, joined to (s, c).
void gn_take_step(uvec4 v, uint unit, uint t, bool first, inout uvec4 s, inout uvec4 c) {
    uvec4 s2, c2;
    uint i = gn_step_index(unit, t);
    gn_enter(v, GN_COLUMNS ? gn_indices(GN_INDEX0 + t, 0u) : gn_indices(GN_INDEX0 + i, 1u), s2, c2);
    if (!GN_COLUMNS && i + GN_GROUP_SIZE > GN_REDUCED) {
        uvec4 p = gn_neutral(), q = gn_neutral_c();
#ifdef GN_X64
        s2.zw = p.zw;
        c2.zw = q.zw;
#else
        bvec4 outside = greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_REDUCED));
        s2 = mix(s2, p, outside);
        c2 = mix(c2, q, outside);
#endif
    }
    if (first) {
        s = s2;
        c = c2;
    } else {
        gn_join_next(s, c, s2, c2);
    }
}

// Of a sum of floats what a lane takes at a time is added up before it joins (s, c).
#define GN_FOURS (GN_CODE == GN_SUM && GN_N_OUT != 2u)

// Sums whose loop does not look at the range: of what is not finite afterwards it is gone through again, for scaled numbers. Pairs
// of rows are faster the other way.
#define GN_REDOES (GN_CODE == GN_SUM && (GN_COLUMNS || GN_N_OUT != 2u))
// Of both outputs: 1, or GN_NEAR for elements whose sums have left the range.
GN_REAL gn_sum_scale, gn_second_scale;

// As gn_join_sums with one number, but it does not look at the range.
void gn_add_number(inout uvec4 s, inout uvec4 c, uvec4 p) {
    GN_REAL a = GN_TO_REAL(s), b = GN_TO_REAL(p);
    precise GN_REAL sum = a + b;
    precise GN_REAL t = sum - a;
    precise GN_REAL lost = (a - (sum - t)) + (b - t);
    precise GN_REAL rest = GN_TO_REAL(c) + lost;
    s = GN_FROM_REAL(sum);
    c = GN_FROM_REAL(rest);
}
// Whether elements of a sum are to be made again, for which `scale` is changed.
bool gn_is_beyond(uvec4 s, uvec4 c, inout GN_REAL scale) {
    GN_BOOLS near = GN_BOTH(gn_isfinite(GN_TO_REAL(s)), gn_isfinite(GN_TO_REAL(c)));
    scale = mix(GN_REAL(GN_NEAR), GN_REAL(1.0), near);
    return !all(near);
}
// A sum of scaled numbers as what gn_join_sums takes. Where it is infinite c is NaN.
void gn_mark_scaled(inout uvec4 s, inout uvec4 c, GN_REAL scale) {
    precise GN_REAL both = GN_TO_REAL(s) + GN_TO_REAL(c), sum = mix(both, GN_TO_REAL(s), gn_isnan(GN_TO_REAL(c)));
    GN_BOOLS near = equal(scale, GN_REAL(1.0));
    s = GN_PICK(near, s, GN_FROM_REAL(sum));
    c = GN_PICK(near, c, GN_NAN);
}
// Whether a lane has its sums, `again`: which it made for the second time.
bool gn_is_made(bool again, inout uvec4 s, inout uvec4 c) {
    bool beyond = false;
    if (GN_REDOES) {
        if (again) {
            gn_mark_scaled(s, c, gn_sum_scale);
            if (GN_PAIR) gn_mark_scaled(gn_second_s, gn_second_c, gn_second_scale);
        } else {
            beyond = gn_is_beyond(s, c, gn_sum_scale);
            if (GN_PAIR && gn_is_beyond(gn_second_s, gn_second_c, gn_second_scale)) beyond = true;
            if (beyond) s = c = gn_second_s = gn_second_c = uvec4(0u);
        }
    }
    return !beyond;
}

// What the program made of step t, added to what `u` steps before it gave.
void gn_add_step(uint unit, uint t, uint u, inout uvec4 p, inout uvec4 q) {
    uvec4 v = gn_r[GN_OUT_REG(0)], w = gn_r[GN_OUT_REG(1)];
    if (GN_MOMENTS) {
        precise GN_REAL more = GN_TO_REAL(v) - gn_shift, square = more * more;
        v = GN_FROM_REAL(more);
        w = GN_FROM_REAL(square);
    }
    uint i = gn_step_index(unit, t);
    if (!GN_COLUMNS && i + GN_GROUP_SIZE > GN_REDUCED) {
#ifdef GN_X64
        v.zw = w.zw = uvec2(0u);
#else
        bvec4 outside = greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_REDUCED));
        v = mix(v, uvec4(0u), outside);
        w = mix(w, uvec4(0u), outside);
#endif
    }
    precise GN_REAL scaled = GN_TO_REAL(v) * gn_sum_scale, second = GN_TO_REAL(w) * gn_second_scale;
    v = GN_FROM_REAL(scaled);
    w = GN_FROM_REAL(second);
    precise GN_REAL x = GN_TO_REAL(p) + GN_TO_REAL(v);
    precise GN_REAL y = GN_TO_REAL(q) + GN_TO_REAL(w);
    p = u == 0u ? v : GN_FROM_REAL(x);
    q = u == 0u ? w : GN_FROM_REAL(y);
}
void gn_add_sum(uvec4 v, uint unit, uint t, uint u, inout uvec4 p) {
    uint i = gn_step_index(unit, t);
    if (!GN_COLUMNS && i + GN_GROUP_SIZE > GN_REDUCED) {
#ifdef GN_X64
        v.zw = uvec2(0u);
#else
        v = mix(v, uvec4(0u), greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_REDUCED)));
#endif
    }
    precise GN_REAL scaled = GN_TO_REAL(v) * gn_sum_scale, x = GN_TO_REAL(p) + scaled;
    p = GN_FROM_REAL(u == 0u ? scaled : x);
}
// What was added up joins (s, c) and, of pairs, the second.
void gn_join_steps(uvec4 p, uvec4 q, inout uvec4 s, inout uvec4 c) {
    if (GN_REDOES) {
        gn_add_number(s, c, p);
        if (GN_PAIR) gn_add_number(gn_second_s, gn_second_c, q);
    } else if (GN_PAIR) {
        gn_join_sums(s, c, p, uvec4(0u));
        gn_join_sums(gn_second_s, gn_second_c, q, uvec4(0u));
    }
}

// Adds what the program made of a step to a mean, each element with this weight.
void gn_add_sample(uint unit, uint t, float weight, inout GN_REAL mean) {
    GN_REAL v = GN_TO_REAL(gn_r[GN_OUT_REG(0)]);
    uint i = gn_step_index(unit, t);
    if (!GN_COLUMNS && i + GN_GROUP_SIZE > GN_REDUCED) { // behind the end is any number
#ifdef GN_X64
        v.y = v.x;
#else
        v = mix(v, v.xxxx, greaterThanEqual(i + uvec4(0u, 1u, 2u, 3u), uvec4(GN_REDUCED)));
#endif
    }
    precise GN_REAL sum = mean + v * weight;
    mean = sum;
}

// Sample t of those that gn_find_shift looks at, somewhere in its share of the steps, so that nothing periodic meets all of them.
uint gn_sample(uint t, uint steps) {
    uint share = steps / GN_SAMPLES;
    return t * share + (t * 2654435769u >> 4) % share;
}

// gn_shift: the mean of some steps of a unit. One element that is far from all others and among these m moves it by an m-th of
// that: the squares about it are then 1 + n / m^2 times those about the mean.
void gn_join_shift(GN_REAL mean, uint lane, uint lane_step) {
    uvec4 s = GN_FROM_REAL(mean), c = uvec4(0u);
    if (GN_COLUMNS) {
        gn_sum_lanes(lane, lane_step, s, c);
    } else {
        gn_sum_group(s, c);
        gn_sum_rows(lane, s, c);
    }
    s = GN_FROM_REAL(gn_sum_of(s, c));
    barrier();
    if (lane == 0u) gn_team_s[gl_LocalInvocationIndex] = s;
    barrier();
    s = gn_team_s[gl_LocalInvocationIndex - lane * lane_step];
#ifdef GN_X64
    gn_shift = GN_TO_REAL(GN_COLUMNS ? s : s.xyxy);
#else
    gn_shift = GN_TO_REAL(GN_COLUMNS ? s : s.xxxx);
#endif
}
float gn_weight() { return 1.0 / float(GN_SAMPLES * (GN_COLUMNS ? 1u : GN_GROUP_SIZE)); }

#ifdef GN_GENERIC

// Steps first + lane, first + lane + GN_LANES, ... below end, or the samples: drivers put the interpreter in where it is called,
// so it is called in one place.
void gn_interpret_steps(uint unit, bool samples, uint steps, uint first, uint end, uint lane, inout uvec4 s, inout uvec4 c,
                        inout GN_REAL mean) {
    uint n = GN_COLUMNS ? GN_KEPT : GN_REDUCED, u = 0u;
    uvec4 p = uvec4(0u), q = uvec4(0u);
    if (samples) {
        first = 0u;
        end = GN_SAMPLES;
        unit = min(unit, GN_UNITS - 1u);
    }
    if (!GN_COLUMNS) gn_place_scalar(unit);
    for (uint i = first + lane; i < end; i += GN_LANES) {
        uint t = samples ? gn_sample(i, steps) : i;
        if (GN_COLUMNS) gn_place_scalar(t);
        gn_run(gn_step_index(unit, t), n);
        if (samples) {
            gn_add_sample(unit, t, gn_weight(), mean);
            continue;
        }
        if (!GN_PAIR && !GN_FOURS) {
            gn_take_step(gn_r[GN_OUT_REG(0)], unit, t, t == first + lane, s, c);
            continue;
        }
        if (GN_FOURS) gn_add_sum(gn_r[GN_OUT_REG(0)], unit, t, u++, p);
        else gn_add_step(unit, t, u++, p, q);
        if (u < GN_PER_LANE && t + GN_LANES < end) continue;
        gn_join_steps(p, q, s, c);
        u = 0u;
    }
}

void gn_reduce_steps(uint unit, uint steps, uint first, uint end, uint lane, uint lane_step, inout uvec4 s, inout uvec4 c) {
    GN_REAL mean = GN_REAL(0.0);
    gn_sum_scale = gn_second_scale = GN_REAL(1.0);
    bool made = false; // lanes that are done stay: lavapipe of Mesa 22 mixes up their sums with the others' where they leave the loop
    for (uint turn = GN_MOMENTS ? 0u : 1u; turn < 3u; turn++) {
        gn_interpret_steps(unit, turn == 0u, steps, first, made ? 0u : end, lane, s, c, mean);
        if (turn == 0u) gn_join_shift(mean, lane, lane_step);
        else if (!made) made = gn_is_made(turn == 2u, s, c);
    }
}

#else

#if GN_AT_ONCE > 4
#define GN_FOR_MORE(X) if (4u < GN_PER_LANE) { X(4u) X(5u) X(6u) X(7u) }
#else
#define GN_FOR_MORE(X)
#endif
#define GN_FOR_GROUPS(X) X(0u) if (1u < GN_PER_LANE) { X(1u) } if (2u < GN_PER_LANE) { X(2u) X(3u) } GN_FOR_MORE(X)

void gn_find_shift(uint unit, uint steps, uint lane, uint lane_step) {
    uint n = GN_COLUMNS ? GN_KEPT : GN_REDUCED;
    GN_REAL mean = GN_REAL(0.0);
    unit = min(unit, GN_UNITS - 1u);
    if (!GN_COLUMNS) gn_place_scalar(unit);
    for (uint t = lane; t < GN_SAMPLES; t += GN_LANES * GN_PER_LANE) {
#define GN_LOAD_SAMPLE(U)                                                                          \
    {                                                                                              \
        uint u = gn_sample(min(t + U * GN_LANES, GN_SAMPLES - 1u), steps);                         \
        if (GN_COLUMNS) gn_place_scalar(u);                                                        \
        gn_load_group(U, gn_step_index(unit, u), n);                                               \
    }
#define GN_JOIN_SAMPLE(U)                                                                          \
    if (t + U * GN_LANES < GN_SAMPLES) {                                                           \
        gn_run_group(U);                                                                           \
        gn_add_sample(unit, gn_sample(t + U * GN_LANES, steps), gn_weight(), mean);                \
    }
        GN_FOR_GROUPS(GN_LOAD_SAMPLE)
        GN_FOR_GROUPS(GN_JOIN_SAMPLE)
    }
    gn_join_shift(mean, lane, lane_step);
}

// Steps first + lane, first + lane + GN_LANES, ... below end.
void gn_reduce_steps(uint unit, uint steps, uint first, uint end, uint lane, uint lane_step, inout uvec4 s, inout uvec4 c) {
    uint n = GN_COLUMNS ? GN_KEPT : GN_REDUCED;
    if (GN_MOMENTS) gn_find_shift(unit, steps, lane, lane_step);
    if (!GN_COLUMNS) gn_place_scalar(unit);
    gn_sum_scale = gn_second_scale = GN_REAL(1.0);
    [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) {
        for (uint t = first + lane; t < end; t += GN_LANES * GN_PER_LANE) {
#define GN_LOAD_STEP(U)                                                                            \
    {                                                                                              \
        uint u = min(t + U * GN_LANES, end - 1u);                                                  \
        if (GN_COLUMNS) gn_place_scalar(u);                                                        \
        gn_load_group(U, gn_step_index(unit, u), n);                                               \
    }
#define GN_JOIN_STEP(U)                                                                            \
    if (t + U * GN_LANES < end) {                                                                  \
        gn_run_group(U);                                                                           \
        if (GN_PAIR) gn_add_step(unit, t + U * GN_LANES, U, p, q);                                 \
        else if (GN_FOURS) gn_add_sum(gn_r[GN_OUT_REG(0)], unit, t + U * GN_LANES, U, p);          \
        else gn_take_step(gn_r[GN_OUT_REG(0)], unit, t + U * GN_LANES, U == 0u && t == first + lane, s, c); \
    }
            uvec4 p = uvec4(0u), q = uvec4(0u);
            GN_FOR_GROUPS(GN_LOAD_STEP)
            GN_FOR_GROUPS(GN_JOIN_STEP)
            gn_join_steps(p, q, s, c);
        }
        if (gn_is_made(turn == 1u, s, c)) break;
    }
}

#endif

// Where the partial results of a unit and split are, 8 words for each output.
uint gn_partial(uint unit, uint split) { return (GN_PAIR ? 4u : 2u) * (unit * GN_SPLITS + split); }

// Joins the splits of a unit, of which lane, lane + GN_LANES, ... are this lane's.
#ifdef GN_GENERIC
#define GN_AHEAD 1u
#else
#define GN_AHEAD 4u
#endif
#define GN_JOIN_SPLITS(second, join)                                                               \
    for (uint p = lane; p < GN_SPLITS; p += GN_AHEAD * GN_LANES) {                                 \
        uvec4 s2[GN_AHEAD], c2[GN_AHEAD];                                                          \
        for (uint k = 0u; k < GN_AHEAD; k++) {                                                     \
            uint at = gn_partial(unit, min(p + k * GN_LANES, GN_SPLITS - 1u)) + second;            \
            s2[k] = gn_load4_coherent(GN_PARTIALS, at);                                            \
            c2[k] = gn_load4_coherent(GN_PARTIALS, at + 1u);                                       \
        }                                                                                          \
        for (uint k = 0u; k < GN_AHEAD; k++)                                                       \
            if (p + k * GN_LANES < GN_SPLITS) join(s, c, s2[k], c2[k]);                            \
    }
void gn_join_splits(uint unit, uint lane, inout uvec4 s, inout uvec4 c) { GN_JOIN_SPLITS(0u, gn_join) }
void gn_sum_splits(uint unit, uint lane, inout uvec4 s, inout uvec4 c) { GN_JOIN_SPLITS(2u, gn_join_sums) }

void main() {
    uint me = gl_LocalInvocationIndex, lane_step = GN_COLUMNS ? GN_TEAMS : 1u;
    uint lane = GN_COLUMNS ? me >> (8u - GN_LOG_LANES) : me & (GN_LANES - 1u);
    uint team = GN_COLUMNS ? me & (GN_TEAMS - 1u) : me >> GN_LOG_LANES;
    uint blocks = (GN_UNITS + GN_TEAMS - 1u) >> (8u - GN_LOG_LANES);
    uint split = gl_WorkGroupID.y;
    gn_constants();
    // Every lane goes through the same barriers: teams without a unit work on nothing.
    for (uint block = gl_WorkGroupID.x; block < blocks; block += gl_NumWorkGroups.x) {
        uint unit = block * GN_TEAMS + team;
        uint steps = GN_COLUMNS ? GN_REDUCED : (GN_REDUCED + GN_GROUP_SIZE - 1u) / GN_GROUP_SIZE;
        uint first = split * GN_CHUNK, end = min(first + GN_CHUNK, steps);
        uvec4 s = gn_neutral(), c = gn_neutral_c();
        gn_second_s = s;
        gn_second_c = c;
        if (unit >= GN_UNITS) end = 0u;
        gn_reduce_steps(unit, steps, first, end, lane, lane_step, s, c);
        if (!GN_COLUMNS) gn_join_group(s, c);
        if (!GN_COLUMNS && GN_PAIR) gn_sum_group(gn_second_s, gn_second_c);
        gn_join_team(lane, lane_step, s, c);
        if (GN_SPLITS > 1u) {
            if (lane == 0u && unit < GN_UNITS) {
                uint at = gn_partial(unit, GN_SPLIT0 + split);
                gn_store4_coherent(GN_PARTIALS, at, s);
                gn_store4_coherent(GN_PARTIALS, at + 1u, c);
                if (GN_PAIR) gn_store4_coherent(GN_PARTIALS, at + 2u, gn_second_s);
                if (GN_PAIR) gn_store4_coherent(GN_PARTIALS, at + 3u, gn_second_c);
            }
            memoryBarrierBuffer();
            barrier();
            if (me == 0u) gn_last = gn_atomic_add(GN_COUNTERS, GN_COUNTER0 + block, 1u);
            barrier();
            if (gn_last != GN_SPLITS - 1u) continue;
            memoryBarrierBuffer();
            // Ready for the next job.
            if (me == 0u) gn_store_coherent(GN_COUNTERS, GN_COUNTER0 + block, 0u);
            s = gn_neutral();
            c = gn_neutral_c();
            gn_second_s = s;
            gn_second_c = c;
            if (unit < GN_UNITS) gn_join_splits(unit, lane, s, c);
            if (GN_PAIR && unit < GN_UNITS) gn_sum_splits(unit, lane, gn_second_s, gn_second_c);
            gn_join_team(lane, lane_step, s, c);
        }
        if (lane == 0u && unit < GN_UNITS) gn_write_unit(unit, s, c);
    }
}
