// >>kinds
// The numbers of ops, register domains, reductions and softmax forms, which loops and kernels are indexed by.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/optable.h"
#endif

// Op names, in table order. Ops without a row of their own come last.
typedef enum gni_op {
#define GN_X(fn, NAME, F, D, gF, da) GNI_OP_##NAME,
    GNI_UNARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da) GNI_OP_##NAME,
        GNI_UNARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_OP_##NAME,
            GNI_UNARY_BOOL(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, gF, da, db) GNI_OP_##NAME,
                GNI_BINARY_FLOAT(GN_X)
#undef GN_X
#define GN_X(NAME, F, gF) GNI_OP_##NAME,
                    GNI_BINARY_PARTS(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI, da, db) GNI_OP_##NAME,
                    GNI_BINARY_ANY(GN_X)
#undef GN_X
#define GN_X(fn, NAME, F, D, I, gF, gI) GNI_OP_##NAME,
                        GNI_COMPARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, I, gI) GNI_OP_##NAME,
                            GNI_BINARY_INT(GN_X)
#undef GN_X
                                GNI_OP_WHERE, // a != 0 ? b : c
    GNI_OP_FMA,                               // a * b + c, rounded once where the hardware can
    GNI_OP_CAST,                              // becomes one of the conversions below
    GNI_OP_CONST,                             // every element is konst[0] + konst[1]
    GNI_OP_I_TO_F, // conversions between register domains; in wide programs F is double, I int64
    GNI_OP_U_TO_F,
    GNI_OP_F_TO_I, // truncates and saturates, NaN gives 0
    GNI_OP_F_TO_U,
    GNI_OP_TO_BOOL,   // x != 0
    GNI_OP_ROUND_F16, // F to F: the nearest float16 value
    GNI_OP_ROUND_BF16,
    GNI_OP_ROUND_F32, // wide programs only
    GNI_OP_WRAP_U8,   // I to I: keep the low bits
    GNI_OP_WRAP_I8,
    GNI_OP_WRAP_U32, // wide programs only
    GNI_OP_WRAP_I32, // wide programs only
    GNI_OP_TO_ODD,   // I or U to F, so that rounding it to a shorter format rounds the integer once
    GNI_OP_WRAP_U16,
    GNI_OP_WRAP_I16,
#define GN_X(fn, NAME, F, D, gF, da) GNI_OP_##NAME,
    GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da) GNI_OP_##NAME,
        GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
    GNI_OP_COUNT,
    GNI_OP_PRODUCT = GNI_OP_COUNT, // of expressions only: a matrix product that is pending
    GNI_OP_COMPLEX,                // of these parts
    GNI_OP_REAL,                   // and what is a part of a complex array
    GNI_OP_IMAG
} gni_op;

// What a register holds. Narrow programs use F, I and U (32 bits), wide ones F (double), I (int64) and U (uint64).
typedef enum gni_domain { GNI_F, GNI_I, GNI_U, GNI_DOMAINS } gni_domain;

// Ops that tell uint64 from int64. The others of wide programs are I's.
GNI_MAYBE_UNUSED static bool gni_wide_unsigned(gni_op op) {
    switch (op) {
    case GNI_OP_ABS:
    case GNI_OP_SIGN:
    case GNI_OP_RELU:
    case GNI_OP_FLOOR_DIV:
    case GNI_OP_MOD:
    case GNI_OP_POW:
    case GNI_OP_MIN:
    case GNI_OP_MAX:
    case GNI_OP_SHR:
    case GNI_OP_TO_ODD: return true;
    default: return op >= GNI_OP_LT && op <= GNI_OP_GE;
    }
}

// Functions of float64 that GPUs have in kernels of programs' own, and that the interpreter of programs leaves out.
GNI_MAYBE_UNUSED static bool gni_is_function64(gni_op op) {
    switch (op) {
    case GNI_OP_SQRT:
    case GNI_OP_RSQRT:
    case GNI_OP_RECIP: return false;
    case GNI_OP_FLOOR_DIV:
    case GNI_OP_MOD:
    case GNI_OP_POW:
    case GNI_OP_ATAN2:
    case GNI_OP_HYPOT:
    case GNI_OP_LOG_SIZE: return true;
    default: return op < GNI_OP_NEG || op >= GNI_OP_ERFC;
    }
}

// One instruction in one word: op * 3 + domain in bits 0-10, operand registers in 11-17, 18-24, 25-31.
// Instruction i writes register n_in + n_const + i.
#define GNI_INSN(op, domain, a, b, c)                                                              \
    ((uint32_t)((uint32_t)(op)*3u + (uint32_t)(domain)) | ((uint32_t)(a) << 11) |                  \
     ((uint32_t)(b) << 18) | ((uint32_t)(c) << 25))
#define GNI_INSN_CODE(insn) ((insn)&0x7ffu)
#define GNI_INSN_COARSE 1024u // in kernels' words: the form of GNI_UNARY_COARSE
#define GNI_INSN_A(insn) (((insn) >> 11) & 127u)
#define GNI_INSN_B(insn) (((insn) >> 18) & 127u)
#define GNI_INSN_C(insn) ((insn) >> 25)

typedef enum gni_reduction {
#define GN_X(fn, NAME, loop, form, back) GNI_RED_##NAME,
    GNI_REDUCE_AXES(GN_X)
#undef GN_X
#define GN_X(fn, NAME, loop, form) GNI_RED_##NAME,
    GNI_REDUCE_PLACE(GN_X)
#undef GN_X
    GNI_RED_COUNT
} gni_reduction;

typedef enum gni_softmax_kind { GNI_SOFTMAX, GNI_LOG_SOFTMAX, GNI_LOGSUMEXP } gni_softmax_kind;
