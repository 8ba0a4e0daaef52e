// >>gpu_words
// Programs of int64 and uint64 where kernels are texts: registers have two words there and float32 is in float64's place. For
// which programs that is enough. From outside: gni_job_short, gni_job_const.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_GPU

// Whether a result is a float that float32 may not hold.
static bool gni_word_rounds(uint32_t code) {
    const uint32_t op = code / 3u;
    if (op == GNI_OP_I_TO_F || op == GNI_OP_U_TO_F || op == GNI_OP_TO_ODD) return true;
    return code % 3u == GNI_F && op != GNI_OP_MIN && op != GNI_OP_MAX && op != GNI_OP_WHERE && op < GNI_OP_I_TO_F &&
           (op < GNI_OP_NEG || op > GNI_OP_LOGICAL_NOT || op == GNI_OP_SQUARE) && (op < GNI_OP_EQ || op > GNI_OP_LOGICAL_XOR);
}

static bool gni_word_dtype(gn_dtype t) { return t != GN_F64 && !gni_is_complex(t); }
static bool gni_word_short(gn_dtype t) { return t == GN_F32 || t == GN_F16 || t == GN_BF16; }

// Whether a wide program is such a one: what is of float64 in it is rounded to a shorter float at once.
static bool gni_job_short(const gni_program *p) {
    const int first = p->n_in + p->n_const;
    uint64_t more = 0; // bit i: of instruction i float64 has more digits than float32
    for (int i = 0; i < p->n_in; i++)
        if (!gni_word_dtype(p->in_dtype[i])) return false;
    for (int i = 0; i < p->n_insn; i++) {
        const uint32_t w = p->insn[i], code = GNI_INSN_CODE(w), op = code / 3u;
        const uint32_t from[3] = {GNI_INSN_A(w), GNI_INSN_B(w), GNI_INSN_C(w)};
        bool has = false;
        for (int k = 0; k < 3; k++) has = has || ((int)from[k] >= first && (more >> ((int)from[k] - first) & 1u));
        if (has && op == GNI_OP_RELU) more |= (uint64_t)1 << i; // where rounding comes last
        else if (has && op != GNI_OP_ROUND_F16 && op != GNI_OP_ROUND_BF16 && op != GNI_OP_ROUND_F32) return false;
        if (gni_word_rounds(code)) more |= (uint64_t)1 << i;
    }
    for (int i = 0; i < p->n_out; i++) {
        const int at = p->out_reg[i] - first;
        const bool rounds = at >= 0 && (more >> at & 1u);
        if (!gni_word_dtype(p->out_dtype[i]) || (rounds && !gni_word_short(p->out_dtype[i]))) return false;
    }
    return true;
}

// The bits of constant i as such a kernel has them: float32 where float64 is.
static uint64_t gni_job_const(const gni_program *p, int i) {
    const uint32_t reg = (uint32_t)(p->n_in + i);
    bool is_float = false;
    for (int k = 0; k < p->n_insn; k++) {
        const uint32_t w = p->insn[k], op = GNI_INSN_CODE(w) / 3u;
        if (GNI_INSN_CODE(w) % 3u != GNI_F) continue;
        is_float = is_float || (GNI_INSN_A(w) == reg && op != GNI_OP_WHERE);
        is_float = is_float || (reg > 0 && (GNI_INSN_B(w) == reg || GNI_INSN_C(w) == reg)); // of fewer operands these are 0
    }
    for (int k = 0; k < p->n_out; k++)
        is_float = is_float || (p->out_reg[k] == (int)reg && gni_word_short(p->out_dtype[k]));
    if (!p->wide || !is_float) return p->konst[i];
    double v;
    memcpy(&v, &p->konst[i], sizeof v);
    return gni_const_bits(v, GNI_F, false);
}

#endif // GNI_GPU
