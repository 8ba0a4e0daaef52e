// How a kernel runs a program (gni_program) over groups of neighbouring elements: the shared part of
// elementwise.comp and reduce.comp. Include gn.glsl first.
//
//   -DGN_STEPS=n -DGN_INPUTS=m    specialised: the words below are specialisation constants; at most n
//                   instructions over m inputs; 4 vector and 4 scalar dimensions, 8 and 8 if n > 8.
//                   The host cuts the cases of gn_exec that a program does not use out of its module
//   -DGN_GENERIC    the same words come from the parameters and a loop interprets them
//   -DGN_X64        wide programs: float64 and int64 registers
//   -DGN_RAW64      copies of 8-byte elements, no instructions, no 64-bit types
//
// Registers 0 to 7 are the inputs, 8 to 15 the constants, 16 + i is what instruction i writes.
//
// Index spaces: operands are addressed by a vector index (groups run along it) and a scalar index.
// Elementwise jobs have no scalar dimensions.
//
// The specialised form takes up to 4 groups at a time (gn_load_group, then gn_run_group): all of their
// loads are under way before the first one is waited for.

#define GN_K_SCALAR uint(GNI_K_SCALAR)
#define GN_K_VEC uint(GNI_K_VEC)
#define GN_K_FLAT uint(GNI_K_FLAT)
#define GN_K_DRAWN uint(GNI_K_DRAWN)
#define GN_K_ROWVEC uint(GNI_K_ROWVEC)
#define GN_K_ROWREP uint(GNI_K_ROWREP)
#define GN_K_ROWSTEP uint(GNI_K_ROWSTEP)
#define GN_K_ANY uint(GNI_K_ANY)
#define GN_K_COLVEC uint(GNI_K_COLVEC)
#define GN_K_RE uint(GNI_K_RE)
#define GN_K_IM uint(GNI_K_IM)

#define GN_P_DIM uint(GNI_P_PROGRAM_DIM)
#define GN_P_OP uint(GNI_P_PROGRAM_OP)
#define GN_P_CONST uint(GNI_P_PROGRAM_CONST)

// Words that describe the program, in both forms under the same numbers.

#ifdef GN_GENERIC
#define GN_W0 GN_PARAM(uint(GNI_P_PROGRAM_COUNTS))
#define GN_W1 GN_PARAM(uint(GNI_P_PROGRAM_IN_DTYPES))
#define GN_W2 GN_PARAM(uint(GNI_P_PROGRAM_IN_KINDS))
#define GN_W3 GN_PARAM(uint(GNI_P_PROGRAM_OUTPUTS))
#define GN_W4 GN_PARAM(uint(GNI_P_PROGRAM_OUT_REGS))
#define GN_W5 GN_PARAM(uint(GNI_P_PROGRAM_HOW))
#define GN_REGISTERS 40
#else
layout(constant_id = GNI_P_PROGRAM_COUNTS) const uint GN_W0 = 0u;
layout(constant_id = GNI_P_PROGRAM_IN_DTYPES) const uint GN_W1 = 0u;
layout(constant_id = GNI_P_PROGRAM_IN_KINDS) const uint GN_W2 = 0u;
layout(constant_id = GNI_P_PROGRAM_OUTPUTS) const uint GN_W3 = 0u;
layout(constant_id = GNI_P_PROGRAM_OUT_REGS) const uint GN_W4 = 0u;
layout(constant_id = GNI_P_PROGRAM_HOW) const uint GN_W5 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS) const uint GN_I0 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 1) const uint GN_I1 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 2) const uint GN_I2 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 3) const uint GN_I3 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 4) const uint GN_I4 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 5) const uint GN_I5 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 6) const uint GN_I6 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 7) const uint GN_I7 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 8) const uint GN_I8 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 9) const uint GN_I9 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 10) const uint GN_I10 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 11) const uint GN_I11 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 12) const uint GN_I12 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 13) const uint GN_I13 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 14) const uint GN_I14 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 15) const uint GN_I15 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 16) const uint GN_I16 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 17) const uint GN_I17 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 18) const uint GN_I18 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 19) const uint GN_I19 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 20) const uint GN_I20 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 21) const uint GN_I21 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 22) const uint GN_I22 = 0u;
layout(constant_id = GNI_P_PROGRAM_STEPS + 23) const uint GN_I23 = 0u;
#define GN_REGISTERS (16 + GN_STEPS)
#endif

#define GN_N_IN (GN_W0 & 15u)
#define GN_N_OUT ((GN_W0 >> 4) & 15u)
#define GN_N_INSN ((GN_W0 >> 8) & 255u)
#define GN_V_RANK ((GN_W0 >> 16) & 15u)
#define GN_S_RANK ((GN_W0 >> 20) & 15u)
#define GN_NEEDS_COORDS (((GN_W0 >> 24) & 1u) != 0u)
#define GN_IN_DTYPE(k) ((GN_W1 >> (4u * (k))) & 15u)
#define GN_IN_KIND(k) ((GN_W2 >> (4u * (k))) & 15u)
#define GN_OUT_DTYPE(k) ((GN_W3 >> (4u * (k))) & 15u)
#define GN_OUT_KIND(k) ((GN_W3 >> (16u + 4u * (k))) & 15u)
#define GN_OUT_REG(k) ((GN_W4 >> (8u * (k))) & 255u)

// Buffer argument of the first output. Bindings say which of them are only read, so that their places
// are the same for all programs.
#ifdef GN_BINDINGS
#define GN_FIRST_OUT 8u
#else
#define GN_FIRST_OUT GN_N_IN
#endif

#include "memory.glsl"

uvec4 gn_r[GN_REGISTERS];

#if !defined(GN_X64) && !defined(GN_RAW64)
#include "narrow.glsl"
#endif
#if defined(GN_X64) && !defined(GN_GENERIC)
#include "math64.glsl"
#elif defined(GN_X64)
#define GN_NO_MATH64
#endif
#ifndef GN_RAW64
#include "ops.glsl"
#endif

// ---- places

// From an element of a group to the next one, along the vector index.
#ifndef GN_APART_BY
#define GN_APART_BY 1u
#endif

// Coordinates of the elements of a group, and of the scalar index, in each dimension.
uvec4 gn_coord[8];
uint gn_scalar_coord[8];

#include "divide.glsl"
#define GN_DIM(d) GN_PARAM(GN_P_DIM + 3u * (d))
uvec4 gn_divide4(uvec4 i, uint d) {
    uvec4 high, low;
    umulExtended(i, uvec4(GN_PARAM(GN_P_DIM + 3u * d + 1u)), high, low);
    return (high + i) >> GN_PARAM(GN_P_DIM + 3u * d + 2u);
}
#define gn_divide(i, d) gn_over(i, GN_P_DIM + 3u * (d))

// Sets gn_coord for the group that starts at vector index i of n.
void gn_place_vector(uint i, uint n) {
    uvec4 rest = min(i + GN_APART_BY * uvec4(0u, 1u, 2u, 3u), uvec4(n - 1u));
#ifdef GN_GENERIC
    for (uint d = GN_V_RANK - 1u; d > 0u; d--) {
        uvec4 q = gn_divide4(rest, d);
        gn_coord[d] = rest - q * GN_DIM(d);
        rest = q;
    }
#else
#define GN_PLACE(D)                                                                                \
    if (D < GN_V_RANK) {                                                                           \
        uvec4 q = gn_divide4(rest, D);                                                             \
        gn_coord[D] = rest - q * GN_DIM(D);                                                        \
        rest = q;                                                                                  \
    }
#if GN_STEPS > 8
    GN_PLACE(7u) GN_PLACE(6u) GN_PLACE(5u) GN_PLACE(4u)
#endif
    GN_PLACE(3u) GN_PLACE(2u) GN_PLACE(1u)
#undef GN_PLACE
#endif
    gn_coord[0] = rest;
}

void gn_place_scalar(uint i) {
    if (GN_S_RANK == 0u) return;
#ifdef GN_GENERIC
    for (uint d = GN_S_RANK - 1u; d > 0u; d--) {
        uint q = gn_divide(i, GN_V_RANK + d);
        gn_scalar_coord[d] = i - q * GN_DIM(GN_V_RANK + d);
        i = q;
    }
#else
#define GN_PLACE(D)                                                                                \
    if (D < GN_S_RANK) {                                                                           \
        uint q = gn_divide(i, GN_V_RANK + D);                                                      \
        gn_scalar_coord[D] = i - q * GN_DIM(GN_V_RANK + D);                                        \
        i = q;                                                                                     \
    }
#if GN_STEPS > 8
    GN_PLACE(7u) GN_PLACE(6u) GN_PLACE(5u) GN_PLACE(4u)
#endif
    GN_PLACE(3u) GN_PLACE(2u) GN_PLACE(1u)
#undef GN_PLACE
#endif
    gn_scalar_coord[0] = i;
}

#define GN_BASE(o) GN_PARAM(GN_P_OP + 9u * (o))
#define GN_STRIDE(o, d) GN_PARAM(GN_P_OP + 9u * (o) + 1u + (d))

// Where operand o is for the scalar index.
uint gn_scalar_base(uint o) {
    uint at = GN_BASE(o);
#ifdef GN_NO_SCALAR
#elif defined(GN_GENERIC)
    for (uint d = 0u; d < GN_S_RANK; d++) at += gn_scalar_coord[d] * GN_STRIDE(o, GN_V_RANK + d);
#else
#define GN_PLACE(D) if (D < GN_S_RANK) at += gn_scalar_coord[D] * GN_STRIDE(o, GN_V_RANK + D);
    GN_PLACE(0u) GN_PLACE(1u) GN_PLACE(2u) GN_PLACE(3u)
#if GN_STEPS > 8
    GN_PLACE(4u) GN_PLACE(5u) GN_PLACE(6u) GN_PLACE(7u)
#endif
#undef GN_PLACE
#endif
    return at;
}

// Where the elements of the group are in operand o, for the kinds that use coordinates.
uvec4 gn_offsets(uint o, uint at) {
    uvec4 j = uvec4(at);
#ifdef GN_GENERIC
    for (uint d = 0u; d < GN_V_RANK; d++) j += gn_coord[d] * GN_STRIDE(o, d);
#else
#define GN_PLACE(D) if (D < GN_V_RANK) j += gn_coord[D] * GN_STRIDE(o, D);
    GN_PLACE(0u) GN_PLACE(1u) GN_PLACE(2u) GN_PLACE(3u)
#if GN_STEPS > 8
    GN_PLACE(4u) GN_PLACE(5u) GN_PLACE(6u) GN_PLACE(7u)
#endif
#undef GN_PLACE
#endif
    return j;
}

// Parts of complex numbers are read with the same input, so that a driver sees one load of both.
#if defined(GN_SPREAD) && GN_INPUTS > 3 && !defined(GN_BINDINGS)
#define GN_PARTS(kind) ((kind) >= GN_K_RE)
uint gn_home(uint k) { return GN_PARTS(GN_IN_KIND(k)) ? (GN_W5 >> (8u + 3u * k)) & 7u : k; }
#else
#define gn_home(k) (k)
#endif

// Where input k of the group that starts at vector index i of n is.
uvec4 gn_input_place(uint k, uint i, uint n) {
    k = gn_home(k);
    uint kind = GN_IN_KIND(k), at = gn_scalar_base(k);
    uvec4 j = uvec4(at);
    if (kind == GN_K_VEC || kind == GN_K_DRAWN) j = uvec4(at + i);
    else if (kind == GN_K_FLAT) j = at + min(i + GN_APART_BY * uvec4(0u, 1u, 2u, 3u), uvec4(n - 1u));
    else if (kind != GN_K_SCALAR) j = gn_offsets(k, at);
    if (kind == GN_K_ROWSTEP) j = j.x + uvec4(0u, 1u, 2u, 3u) * GN_STRIDE(k, GN_V_RANK - 1u);
    return j;
}
uvec4 gn_input_raw(uint k, uvec4 j) {
    uint kind = GN_IN_KIND(k);
#ifdef GN_DRAWS
    if (kind == GN_K_DRAWN) {
        uint p = GN_P_OP + 9u * k, carry, low = uaddCarry(GN_PARAM(p + 1u), j.x / 4u, carry);
        uvec4 v = gn_philox(uvec4(low, GN_PARAM(p + 2u) + carry, 0u, 0u), uvec2(GN_PARAM(p + 3u), GN_PARAM(p + 4u)));
        return uvec4(lessThan(v >> 8u, uvec4(GN_PARAM(p + 5u))));
    }
#endif
    bool one = kind == GN_K_SCALAR || kind == GN_K_ROWREP, group = kind == GN_K_VEC || kind == GN_K_ROWVEC;
#ifdef GN_PARTS
    if (GN_PARTS(kind)) return gn_read_parts(GN_OPEN(gn_home(k)), j, kind == GN_K_IM);
#endif
    return gn_read_raw(GN_OPEN(k), j, GN_IN_DTYPE(k), one, group);
}

// Writes a group of output k, already in memory's form.
void gn_output(uint k, uint i, uint n, uvec4 v) {
    uint kind = GN_OUT_KIND(k), t = GN_OUT_DTYPE(k), at = gn_scalar_base(8u + k);
    uint count = min((n - i + GN_APART_BY - 1u) / GN_APART_BY, GN_GROUP_SIZE);
    uvec4 j = at + i + GN_APART_BY * uvec4(0u, 1u, 2u, 3u);
    if (kind != GN_K_VEC && kind != GN_K_FLAT) j = gn_offsets(8u + k, at);
    if (kind == GN_K_ROWSTEP) j = j.x + uvec4(0u, 1u, 2u, 3u) * GN_STRIDE(8u + k, GN_V_RANK - 1u);
    GN_HANDLE h = GN_OPEN(GN_FIRST_OUT + k);
    if ((kind == GN_K_VEC && count == GN_GROUP_SIZE) || kind == GN_K_ROWVEC) gn_write_group(h, j.x, t, v);
    else gn_write_each(h, j, t, v, count);
}

// ---- running

// Constants into their registers: once, before any group.
void gn_constants() {
    for (uint k = 0u; k < 8u; k++) {
        uint lo = GN_PARAM(GN_P_CONST + 2u * k), hi = GN_PARAM(GN_P_CONST + 2u * k + 1u);
        gn_r[8u + k] = GN_GROUP_SIZE == 4u ? uvec4(lo) : uvec4(lo, hi, lo, hi);
    }
}

#ifdef GN_GENERIC

// Loads the inputs of the group at vector index i and runs the program on them.
void gn_run(uint i, uint n) {
    if (GN_NEEDS_COORDS) gn_place_vector(i, n);
    for (uint k = 0u; k < GN_N_IN; k++)
        gn_r[k] = gn_widen(gn_input_raw(k, gn_input_place(k, i, n)), GN_IN_DTYPE(k));
    for (uint k = 0u; k < GN_N_INSN; k++) {
#ifndef GN_RAW64
        uint w = GN_PARAM(uint(GNI_P_PROGRAM_STEPS) + k);
        gn_r[16u + k] = gn_exec(w & 2047u, gn_r[(w >> 11) & 127u], gn_r[(w >> 18) & 127u], gn_r[w >> 25]);
#endif
    }
}

#else

// Inputs in memory's form, for each of the groups under way.
#ifndef GN_AT_ONCE
#define GN_AT_ONCE 4
#endif
uvec4 gn_raw[GN_AT_ONCE][GN_INPUTS];

// X(0) to X(GN_INPUTS - 1)
#if GN_INPUTS > 3
#define GN_FOR_INPUTS(X) X(0u) X(1u) X(2u) X(3u) X(4u) X(5u) X(6u) X(7u)
#else
#define GN_FOR_INPUTS(X) X(0u) X(1u) X(2u)
#endif

// Loads the inputs of group u, which starts at vector index i of n.
void gn_load_group(uint u, uint i, uint n) {
    if (GN_NEEDS_COORDS) gn_place_vector(i, n);
#define GN_LOAD(K) if (K < GN_N_IN) gn_raw[u][K] = gn_input_raw(K, gn_input_place(K, i, n));
    GN_FOR_INPUTS(GN_LOAD)
#undef GN_LOAD
}

// Runs the program on group u.
void gn_run_group(uint u) {
#define GN_INPUT(K) if (K < GN_N_IN) gn_r[K] = gn_widen(gn_raw[u][K], GN_IN_DTYPE(K));
    GN_FOR_INPUTS(GN_INPUT)
#undef GN_INPUT
#ifndef GN_RAW64
#define GN_STEP(K, W)                                                                              \
    if (K < GN_N_INSN)                                                                             \
        gn_r[16u + K] = gn_exec(W & 2047u, gn_r[(W >> 11) & 127u], gn_r[(W >> 18) & 127u], gn_r[W >> 25]);
    GN_STEP(0u, GN_I0) GN_STEP(1u, GN_I1) GN_STEP(2u, GN_I2) GN_STEP(3u, GN_I3)
    GN_STEP(4u, GN_I4) GN_STEP(5u, GN_I5) GN_STEP(6u, GN_I6) GN_STEP(7u, GN_I7)
#if GN_STEPS > 8
    GN_STEP(8u, GN_I8) GN_STEP(9u, GN_I9) GN_STEP(10u, GN_I10) GN_STEP(11u, GN_I11)
    GN_STEP(12u, GN_I12) GN_STEP(13u, GN_I13) GN_STEP(14u, GN_I14) GN_STEP(15u, GN_I15)
    GN_STEP(16u, GN_I16) GN_STEP(17u, GN_I17) GN_STEP(18u, GN_I18) GN_STEP(19u, GN_I19)
    GN_STEP(20u, GN_I20) GN_STEP(21u, GN_I21) GN_STEP(22u, GN_I22) GN_STEP(23u, GN_I23)
#endif
#endif
}

#endif
