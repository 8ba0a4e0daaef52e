// >>gpu_words
// Elementwise programs of int64 and uint64 for GPUs that do not have these: each is a low and a high word, which registers of
// 32 bits hold. From outside: gni_job_words.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/evaluate.h"
#include "../vulkan/vulkan_loader.h"
#endif

#if GNI_GPU

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

#endif // GNI_GPU
