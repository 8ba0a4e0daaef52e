// >>cpu_pairs
// Elementwise programs over the parts of complex numbers as programs over the numbers as they lie in memory, so that nothing
// is taken apart: sums, differences, products, conjugates and what is the same for both parts. From outside: gni_pair_map.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

// A program over pairs, and its instructions that are products, conjugates or quotients: bits by their number.
typedef struct gni_pairs {
    gni_map map;
    uint32_t products, conjugates, quotients;
} gni_pairs;

#if defined(GNI_WASM) // whose passes have no loops for it

static bool gni_pair_map(gni_pairs *q, const gni_map *m, const gni_cpu_isa *isa) {
    GNI_UNUSED(q);
    GNI_UNUSED(m);
    GNI_UNUSED(isa);
    return false;
}

#else

typedef struct gni_pair_search {
    const gni_program *p;
    gni_pairs *q;
    int input[GNI_MAX_INPUTS];                     // register of the pair whose real part this input is, or -1
    int other[GNI_MAX_INPUTS];                     // that input's imaginary part
    uint32_t re[GNI_MAX_INSNS], im[GNI_MAX_INSNS]; // what an instruction of the new program stands for
    int steps;
    bool divides; // there is a loop for quotients
} gni_pair_search;

static uint32_t gni_pair_first(const gni_program *p) { return (uint32_t)(p->n_in + p->n_const); }

// The instruction that makes register r, or 0.
static uint32_t gni_pair_insn(const gni_program *p, uint32_t r) {
    const uint32_t first = gni_pair_first(p);
    return r < first ? 0u : p->insn[r - first];
}

static bool gni_pair_is(uint32_t insn, gni_op op) { return insn != 0 && GNI_INSN_CODE(insn) == (uint32_t)op * 3u + GNI_F; }

static int gni_pair_find(gni_pair_search *s, uint32_t re, uint32_t im);

// One more instruction, for the pair of registers re and im. a: -1 where an operand is no pair.
static int gni_pair_emit(gni_pair_search *s, uint32_t re, uint32_t im, gni_op op, int a, int b, uint32_t *kind) {
    gni_program *p = &s->q->map.program;
    if (a < 0 || b < 0 || p->n_insn == GNI_MAX_INSNS) return -1;
    s->re[p->n_insn] = re;
    s->im[p->n_insn] = im;
    if (kind != NULL) *kind |= 1u << p->n_insn;
    p->insn[p->n_insn] = GNI_INSN(op, GNI_F, a, b, 0);
    return (int)gni_pair_first(p) + p->n_insn++;
}

// An operand that both parts have alike: a constant, or the operand of each part as a pair.
static int gni_pair_same(gni_pair_search *s, uint32_t x, uint32_t y) {
    const uint32_t n = (uint32_t)s->p->n_in;
    if (x == y && x >= n && x < gni_pair_first(s->p)) return (int)x - s->p->n_in + s->q->map.program.n_in;
    return gni_pair_find(s, x, y);
}

// (ar br - ai bi, ar bi + ai br).
static int gni_pair_product(gni_pair_search *s, uint32_t re, uint32_t im, uint32_t x, uint32_t y) {
    const uint32_t rr = gni_pair_insn(s->p, GNI_INSN_A(x)), ii = gni_pair_insn(s->p, GNI_INSN_B(x));
    const uint32_t ri = gni_pair_insn(s->p, GNI_INSN_A(y)), ir = gni_pair_insn(s->p, GNI_INSN_B(y));
    if (!gni_pair_is(rr, GNI_OP_MUL) || !gni_pair_is(ii, GNI_OP_MUL) || !gni_pair_is(ri, GNI_OP_MUL) ||
        !gni_pair_is(ir, GNI_OP_MUL))
        return -1;
    const uint32_t ar = GNI_INSN_A(rr), br = GNI_INSN_B(rr), ai = GNI_INSN_A(ii), bi = GNI_INSN_B(ii);
    if (GNI_INSN_A(ri) != ar || GNI_INSN_B(ri) != bi || GNI_INSN_A(ir) != ai || GNI_INSN_B(ir) != br) return -1;
    const int a = gni_pair_find(s, ar, ai), b = gni_pair_find(s, br, bi);
    return gni_pair_emit(s, re, im, GNI_OP_MUL, a, b, &s->q->products);
}

// What gni_complex_div makes, as rows of a value, the op that it is of and its operands.
enum {
    GNI_PQ_RE, GNI_PQ_IM, GNI_PQ_NONE, GNI_PQ_Z, GNI_PQ_W, GNI_PQ_SCALE, GNI_PQ_P, GNI_PQ_Q, GNI_PQ_RATIO, GNI_PQ_MOST,
    GNI_PQ_LEAST, GNI_PQ_REAL, GNI_PQ_V, GNI_PQ_MINUS_V, GNI_PQ_MINUS_RATIO, GNI_PQ_FLAT, GNI_PQ_ZERO, GNI_PQ_SAFE,
    GNI_PQ_AR, GNI_PQ_AI, GNI_PQ_BR, GNI_PQ_BI, GNI_PQ_SIZE_R, GNI_PQ_SIZE_I, GNI_PQ_COUNT
};
static const uint8_t gni_pair_quotients[][5] = {
    {GNI_PQ_RE, GNI_OP_DIV, GNI_PQ_Z, GNI_PQ_SCALE, GNI_PQ_NONE},
    {GNI_PQ_IM, GNI_OP_DIV, GNI_PQ_W, GNI_PQ_SCALE, GNI_PQ_NONE},
    {GNI_PQ_Z, GNI_OP_FMA, GNI_PQ_Q, GNI_PQ_RATIO, GNI_PQ_P},
    {GNI_PQ_SCALE, GNI_OP_FMA, GNI_PQ_LEAST, GNI_PQ_RATIO, GNI_PQ_MOST},
    {GNI_PQ_W, GNI_OP_WHERE, GNI_PQ_REAL, GNI_PQ_V, GNI_PQ_MINUS_V},
    {GNI_PQ_V, GNI_OP_FMA, GNI_PQ_P, GNI_PQ_MINUS_RATIO, GNI_PQ_Q},
    {GNI_PQ_MINUS_V, GNI_OP_NEG, GNI_PQ_V, GNI_PQ_NONE, GNI_PQ_NONE},
    {GNI_PQ_MINUS_RATIO, GNI_OP_NEG, GNI_PQ_RATIO, GNI_PQ_NONE, GNI_PQ_NONE},
    {GNI_PQ_RATIO, GNI_OP_WHERE, GNI_PQ_FLAT, GNI_PQ_ZERO, GNI_PQ_SAFE},
    {GNI_PQ_FLAT, GNI_OP_EQ, GNI_PQ_MOST, GNI_PQ_ZERO, GNI_PQ_NONE},
    {GNI_PQ_SAFE, GNI_OP_DIV, GNI_PQ_LEAST, GNI_PQ_MOST, GNI_PQ_NONE},
    {GNI_PQ_P, GNI_OP_WHERE, GNI_PQ_REAL, GNI_PQ_AR, GNI_PQ_AI},
    {GNI_PQ_Q, GNI_OP_WHERE, GNI_PQ_REAL, GNI_PQ_AI, GNI_PQ_AR},
    {GNI_PQ_MOST, GNI_OP_WHERE, GNI_PQ_REAL, GNI_PQ_BR, GNI_PQ_BI},
    {GNI_PQ_LEAST, GNI_OP_WHERE, GNI_PQ_REAL, GNI_PQ_BI, GNI_PQ_BR},
    {GNI_PQ_REAL, GNI_OP_GE, GNI_PQ_SIZE_R, GNI_PQ_SIZE_I, GNI_PQ_NONE},
    {GNI_PQ_SIZE_R, GNI_OP_ABS, GNI_PQ_BR, GNI_PQ_NONE, GNI_PQ_NONE},
    {GNI_PQ_SIZE_I, GNI_OP_ABS, GNI_PQ_BI, GNI_PQ_NONE, GNI_PQ_NONE}};

// The quotient with these parts, where that is what they are.
static int gni_pair_quotient(gni_pair_search *s, uint32_t re, uint32_t im) {
    const gni_program *p = s->p;
    uint32_t reg[GNI_PQ_COUNT];
    if (!s->divides) return -1;
    for (int i = 0; i < GNI_PQ_COUNT; i++) reg[i] = UINT32_MAX; // not met yet
    reg[GNI_PQ_RE] = re;
    reg[GNI_PQ_IM] = im;
    reg[GNI_PQ_NONE] = 0;
    for (size_t i = 0; i < sizeof gni_pair_quotients / sizeof *gni_pair_quotients; i++) {
        const uint8_t *row = gni_pair_quotients[i];
        const uint32_t insn = gni_pair_insn(p, reg[row[0]]);
        if (!gni_pair_is(insn, (gni_op)row[1])) return -1;
        for (int k = 0; k < 3; k++) {
            uint32_t *r = &reg[row[2 + k]], have = insn >> (11 + 7 * k) & 127u;
            if (*r == UINT32_MAX) *r = have;
            if (*r != have) return -1;
        }
    }
    const uint32_t zero = reg[GNI_PQ_ZERO] - (uint32_t)p->n_in;
    if (zero >= (uint32_t)p->n_const || p->konst[zero] != 0) return -1;
    const int a = gni_pair_find(s, reg[GNI_PQ_AR], reg[GNI_PQ_AI]), b = gni_pair_find(s, reg[GNI_PQ_BR], reg[GNI_PQ_BI]);
    return gni_pair_emit(s, re, im, GNI_OP_DIV, a, b, &s->q->quotients);
}

// The new program's register for the complex number with these parts, or -1 where it is none of these.
static int gni_pair_find(gni_pair_search *s, uint32_t re, uint32_t im) {
    const gni_program *p = s->p;
    const int first = (int)gni_pair_first(&s->q->map.program);
    if (re < (uint32_t)p->n_in && s->input[re] >= 0 && s->other[re] == (int)im) return s->input[re];
    for (int i = 0; i < s->q->map.program.n_insn; i++)
        if (s->re[i] == re && s->im[i] == im) return first + i;
    const uint32_t x = gni_pair_insn(p, re), y = gni_pair_insn(p, im), op = GNI_INSN_CODE(y) / 3u;
    if (y == 0 || s->steps++ > 4 * GNI_MAX_INSNS) return -1;
    if (gni_pair_is(x, GNI_OP_SUB) && gni_pair_is(y, GNI_OP_ADD)) return gni_pair_product(s, re, im, x, y);
    if (x != 0 && GNI_INSN_CODE(x) == GNI_INSN_CODE(y) && GNI_INSN_CODE(y) % 3u == GNI_F) {
        const bool two = op == GNI_OP_ADD || op == GNI_OP_SUB || op == GNI_OP_MUL || op == GNI_OP_DIV;
        if (op == GNI_OP_DIV) {
            const int ratio = gni_pair_quotient(s, re, im);
            if (ratio >= 0) return ratio;
        }
        if (two || op == GNI_OP_NEG) {
            const int a = gni_pair_same(s, GNI_INSN_A(x), GNI_INSN_A(y));
            const int b = two ? gni_pair_same(s, GNI_INSN_B(x), GNI_INSN_B(y)) : 0;
            return gni_pair_emit(s, re, im, (gni_op)op, a, b, NULL);
        }
    }
    if (!gni_pair_is(y, GNI_OP_NEG)) return -1;
    return gni_pair_emit(s, re, im, GNI_OP_NEG, gni_pair_find(s, re, GNI_INSN_A(y)), 0, &s->q->conjugates);
}

static bool gni_pair_parts(const gni_operand *re, const gni_operand *im) {
    return re->buf == im->buf && re->dtype == im->dtype && re->offset + 1 == im->offset &&
           memcmp(re->stride, im->stride, sizeof re->stride) == 0;
}

// The parts of n numbers along the last dimension become neighbours: 2 n along it where those follow each other in every
// operand, else 2 along one more.
static bool gni_pair_dims(gni_pairs *q, const gni_map *m) {
    const int last = m->rank - 1;
    bool dense = true;
    for (int k = 0; k < m->program.n_in + 2; k++) {
        const gni_operand *o = k < m->program.n_in ? &m->in[k] : &m->out[k - m->program.n_in];
        dense = dense && o->stride[last] == 2;
    }
    if (!dense && m->rank == GN_MAX_RANK) return false;
    q->map.rank = dense ? m->rank : m->rank + 1;
    memcpy(q->map.dim, m->dim, sizeof m->dim);
    q->map.dim[q->map.rank - 1] = dense ? 2 * m->dim[last] : 2;
    return true;
}

// The program of m over pairs, where all of its operands are pairs of parts. False: it stays as it is.
static bool gni_pair_map(gni_pairs *q, const gni_map *m, const gni_cpu_isa *isa) {
    const gni_program *p = &m->program;
    gni_pair_search s;
    gni_program *to = &q->map.program;
    const int last = m->rank - 1;
    if (m->rank < 1 || isa->pair_product == NULL || p->n_out != 2 || p->n_in < 2 || p->n_in % 2 != 0 || p->n_insn < 1 ||
        m->dim[last] > INT64_MAX / 2 || p->out_dtype[0] != p->out_dtype[1] || !gni_pair_parts(&m->out[0], &m->out[1]) ||
        !gni_pair_dims(q, m))
        return false;
    const int inner = q->map.rank - 1;
    s.p = p;
    s.q = q;
    s.steps = 0;
    memset(to, 0, sizeof *to);
    uint32_t taken = 0; // imaginary parts: one may lie just before the real part of a number of the same buffer
    for (int k = 0; k < p->n_in; k++) s.input[k] = -1;
    for (int k = 0; k < p->n_in; k++)
        for (int i = 0; i < p->n_in && (taken >> k & 1u) == 0; i++)
            if (gni_pair_parts(&m->in[k], &m->in[i])) {
                q->map.in[to->n_in] = m->in[k];
                q->map.in[to->n_in].stride[inner] = 1;
                to->in_dtype[to->n_in] = p->in_dtype[k];
                s.input[k] = to->n_in++;
                s.other[k] = i;
                taken |= 1u << i;
                break;
            }
    if (2 * to->n_in != p->n_in) return false;
    to->wide = p->wide;
    to->n_const = p->n_const;
    memcpy(to->konst, p->konst, sizeof p->konst);
    to->n_out = 1;
    to->out_dtype[0] = p->out_dtype[0];
    s.divides = isa->pair_quotient != NULL;
    q->products = q->conjugates = q->quotients = 0;
    to->out_reg[0] = gni_pair_find(&s, (uint32_t)p->out_reg[0], (uint32_t)p->out_reg[1]);
    if (to->out_reg[0] < 0) return false;
    q->map.out[0] = m->out[0];
    q->map.out[0].stride[inner] = 1;
    return true;
}

#endif
