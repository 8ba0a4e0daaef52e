// >>gpu_words
// Programs of int64 and uint64 on GPUs that do not have these. Where kernels are texts, registers have two words and float32
// is in float64's place: for which programs that is enough. Else, of a few ops: each number is a low and a high word, which
// two registers hold. From outside: gni_job_words, gni_job_short, gni_job_const.

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

#ifdef GPUNUM_NO_VULKAN
static bool gni_job_words(const gni_map *m, gni_builder *b) {
    GNI_UNUSED(m);
    GNI_UNUSED(b);
    return false;
}
#else

static int gni_word_op(gni_builder *b, gni_op op, gni_domain d, int x, int y, int z) {
    int r[3];
    r[0] = x, r[1] = y, r[2] = z;
    return gni_build_insn(b, op, d, r);
}

// The word that goes on with the sign of x.
static int gni_word_sign(gni_builder *b, int x) {
    return gni_word_op(b, GNI_OP_SHR, GNI_I, x, gni_build_const(b, 31.0, 0.0, GN_I32), 0);
}

// The high word of what an instruction makes of operands x, whose high words are in h, and in *low the low one. -1: there is
// no such form.
static int gni_word_insn(gni_builder *b, gni_op op, gni_domain d, const int *x, int *h, int zero, int *low) {
    int high = zero;
    switch (op) {
    case GNI_OP_WHERE: h[0] = x[0]; // fall through
    case GNI_OP_ADD:
    case GNI_OP_SUB:
    case GNI_OP_AND:
    case GNI_OP_OR:
    case GNI_OP_XOR:
        *low = gni_word_op(b, op, GNI_I, x[0], x[1], x[2]);
        high = gni_word_op(b, op, GNI_I, h[0], h[1], h[2]);
        if (op > GNI_OP_SUB) return high;
        return gni_word_op(b, op, GNI_I, high, // the carry or what is borrowed
                           op == GNI_OP_ADD ? gni_word_op(b, GNI_OP_LT, GNI_U, *low, x[0], 0)
                                            : gni_word_op(b, GNI_OP_LT, GNI_U, x[0], x[1], 0),
                           0);
    case GNI_OP_TO_BOOL:
    case GNI_OP_LOGICAL_NOT:
    case GNI_OP_LOGICAL_AND:
    case GNI_OP_LOGICAL_OR:
    case GNI_OP_LOGICAL_XOR:
        *low = gni_word_op(b, op, GNI_I, gni_word_op(b, GNI_OP_OR, GNI_I, x[0], h[0], 0),
                           gni_word_op(b, GNI_OP_OR, GNI_I, x[1], h[1], 0), 0);
        break;
    case GNI_OP_EQ:
    case GNI_OP_NE:
    case GNI_OP_LT:
    case GNI_OP_LE:
    case GNI_OP_GT:
    case GNI_OP_GE:
        *low = gni_word_op(b, GNI_OP_WHERE, GNI_I, gni_word_op(b, GNI_OP_EQ, GNI_I, h[0], h[1], 0),
                           gni_word_op(b, op, GNI_U, x[0], x[1], 0), gni_word_op(b, op, d, h[0], h[1], 0));
        break;
    case GNI_OP_WRAP_U8:
    case GNI_OP_WRAP_I8:
    case GNI_OP_WRAP_U16:
    case GNI_OP_WRAP_I16: *low = gni_word_op(b, op, GNI_I, x[0], 0, 0); return gni_word_sign(b, *low);
    case GNI_OP_WRAP_I32: high = gni_word_sign(b, x[0]); // fall through
    case GNI_OP_WRAP_U32: *low = x[0]; break;
    default: return -1;
    }
    return high;
}

// Operand o, of int64 both its words, as a program's operands and their dtypes from `*n` on.
static void gni_word_operands(const gni_operand *o, gni_operand *to, gn_dtype *dtype, int *n) {
    for (int k = 0; k < (gni_is_wide(o->dtype) ? 2 : 1); k++, ++*n) {
        gni_operand *w = &to[*n];
        *w = *o;
        if (gni_is_wide(o->dtype)) {
            gni_operand_part(w, k);
            w->dtype = GN_I32;
        }
        dtype[*n] = w->dtype;
    }
}

// The wide program of m as b's narrow one. False: it does what words have no form for.
static bool gni_job_words(const gni_map *m, gni_builder *b) {
    const gni_program *p = &m->program;
    gni_program *q = &b->map.program;
    int low[GNI_MAX_INPUTS + GNI_MAX_CONSTS + GNI_MAX_INSNS], high[GNI_MAX_INPUTS + GNI_MAX_CONSTS + GNI_MAX_INSNS], n = 0;
    memset(b, 0, sizeof *b);
    b->map = *m;
    memset(q, 0, sizeof *q);
    if (p->n_in > GNI_MAX_INPUTS / 2 || p->n_out > GNI_MAX_OUTPUTS / 2) return false;
    const int zero = gni_build_const(b, 0.0, 0.0, GN_I32);
    for (int i = 0; i < p->n_in; i++, n++) {
        const gn_dtype t = p->in_dtype[i];
        if (gni_is_float(t)) return false;
        low[n] = high[n] = q->n_in;
        gni_word_operands(&m->in[i], b->map.in, q->in_dtype, &q->n_in);
        if (gni_is_wide(t)) high[n]++;
        else high[n] = t == GN_U32 ? zero : gni_word_sign(b, low[n]);
    }
    for (int i = 0; i < p->n_const; i++, n++) {
        low[n] = gni_build_const(b, (double)(uint32_t)p->konst[i], 0.0, GN_I32);
        high[n] = gni_build_const(b, (double)(p->konst[i] >> 32), 0.0, GN_I32);
    }
    for (int i = 0; i < p->n_insn; i++, n++) {
        const uint32_t w = p->insn[i], from[3] = {GNI_INSN_A(w), GNI_INSN_B(w), GNI_INSN_C(w)}, code = GNI_INSN_CODE(w);
        int x[3], h[3];
        for (int k = 0; k < 3; k++) x[k] = low[from[k]], h[k] = high[from[k]];
        high[n] = gni_word_insn(b, (gni_op)(code / 3u), (gni_domain)(code % 3u), x, h, zero, &low[n]);
        if (code % 3u == GNI_F || high[n] < 0) return false;
    }
    for (int i = 0; i < p->n_out; i++) {
        const int at = q->n_out;
        if (gni_is_float(p->out_dtype[i])) return false;
        gni_word_operands(&m->out[i], b->map.out, q->out_dtype, &q->n_out);
        q->out_reg[at] = low[p->out_reg[i]];
        if (at + 1 < q->n_out) q->out_reg[at + 1] = high[p->out_reg[i]];
    }
    gni_build_finish(q);
    return !b->full;
}

#endif // GPUNUM_NO_VULKAN
#endif // GNI_GPU
