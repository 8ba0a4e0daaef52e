// >>evaluate
// Pending expressions become one program, which runs; writes first give pending readers the old values. From outside:
// gni_materialize, gni_evaluate, gni_host, gni_contiguous, gni_copy_into, gni_before_write.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/half.h"
#include "../core/lazy.h"
#endif

// ---- from expressions to programs

struct gni_builder {
    gni_map map;
    uint32_t walk;           // number of the walk: expressions that it has met are in the program already
    bool full;               // it does not fit
    bool paired;             // an element is a part of a complex number, see gni_build_pairs
    bool turned;             // the map's axes are the results' in this order
    int order[GN_MAX_RANK];
    const gn_array *product; // the pending one that is input 0, or NULL
};

static uint64_t gni_const_bits(double v, gni_domain d, bool wide) {
    if (d == GNI_F) {
        uint64_t bits = 0;
        float f = (float)v;
        if (wide)
            memcpy(&bits, &v, sizeof v);
        else
            memcpy(&bits, &f, sizeof f);
        return bits;
    }
    // Integers wrap like the results of integer arithmetic; beyond int64 and NaN there is nothing to wrap.
    if (v != v) return 0;
    if (d == GNI_U && wide && v >= 9223372036854775808.0)
        return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
    int64_t i = v <= -9223372036854775808.0  ? INT64_MIN
                : v >= 9223372036854775807.0 ? INT64_MAX
                                             : (int64_t)v;
    return wide ? (uint64_t)i : (uint64_t)(uint32_t)i;
}

// v and `more`, a small whole number that float64 could not add to v, of integer dtypes.
static int gni_build_const(gni_builder *b, double v, double more, gn_dtype t) {
    gni_program *p = &b->map.program;
    if (t == GN_F16) v = (double)gni_f16_to_f32(gni_f32_to_f16(gni_round_odd(v)));
    if (t == GN_BF16) v = (double)gni_bf16_to_f32(gni_f32_to_bf16(gni_round_odd(v)));
    if (t == GN_F32) v = (double)(float)v;
    if (t == GN_BOOL) v = v != 0.0 ? 1.0 : 0.0;
    uint64_t bits = gni_const_bits(v, gni_domain_of(t, p->wide), p->wide);
    if (more != 0.0) bits += (uint64_t)more;
    for (int i = 0; i < p->n_const; i++)
        if (p->konst[i] == bits) return GNI_MAX_INPUTS + i;
    if (p->n_const == GNI_MAX_CONSTS) {
        b->full = true;
        return 0;
    }
    p->konst[p->n_const] = bits;
    return GNI_MAX_INPUTS + p->n_const++;
}

// Strides of an operand broadcast against the job's dimensions.
static void gni_operand_of(const gn_array *a, int rank, gni_operand *o) {
    memset(o, 0, sizeof *o);
    o->buf = a->buf;
    o->dtype = a->dtype;
    o->offset = a->offset;
    for (int i = 0; i < a->shape.rank; i++) {
        int at = rank - a->shape.rank + i;
        o->stride[at] = a->shape.dim[i] == 1 ? 0 : a->stride[i];
    }
}

// A part of complex numbers as an operand: the real (0) or the imaginary (1) one.
static void gni_operand_part(gni_operand *o, int which) {
    o->dtype = gni_part_of(o->dtype);
    o->offset = 2 * o->offset + which;
    for (int i = 0; i < GN_MAX_RANK; i++) o->stride[i] *= 2;
}

// `which`: the part that is wanted of complex data, or -1.
static int gni_build_input(gni_builder *b, const gn_array *a, int which) {
    gni_program *p = &b->map.program;
    gni_operand spare, *o = p->n_in < GNI_MAX_INPUTS ? &b->map.in[p->n_in] : &spare; // made in place
    gni_operand_of(a, b->map.rank, o);
    if (which >= 0) gni_operand_part(o, which);
    for (int i = 0; i < p->n_in; i++) {
        const gni_operand *have = &b->map.in[i];
        if (have->buf == o->buf && have->offset == o->offset && have->dtype == o->dtype &&
            memcmp(have->stride, o->stride, sizeof o->stride) == 0)
            return i;
    }
    if (p->n_in == GNI_MAX_INPUTS) {
        b->full = true;
        return 0;
    }
    p->in_dtype[p->n_in] = o->dtype;
    return p->n_in++;
}

// While a program is built, inputs are registers 0.., constants GNI_MAX_INPUTS.., results
// GNI_MAX_INPUTS + GNI_MAX_CONSTS..; gni_build_finish packs them.
static int gni_build_insn(gni_builder *b, gni_op op, gni_domain d, const int *r) {
    gni_program *p = &b->map.program;
    if (d == GNI_U && p->wide && !gni_wide_unsigned(op)) d = GNI_I;
    uint32_t insn = GNI_INSN(op, d, r[0], r[1], r[2]);
    for (int i = 0; i < p->n_insn; i++)
        if (p->insn[i] == insn) return GNI_MAX_INPUTS + GNI_MAX_CONSTS + i;
    if (p->n_insn == GNI_MAX_INSNS) {
        b->full = true;
        return 0;
    }
    p->insn[p->n_insn] = insn;
    return GNI_MAX_INPUTS + GNI_MAX_CONSTS + p->n_insn++;
}

static int gni_build_convert(gni_builder *b, int reg, gn_dtype from, gn_dtype to) {
    gni_op ops[2];
    bool wide = b->map.program.wide;
    int n = gni_convert_ops(from, to, wide, ops);
    for (int i = 0; i < n; i++) {
        int r[3] = {0, 0, 0};
        r[0] = reg;
        // Rounding and wrapping act on what the conversion before them made.
        gni_domain d = gni_domain_of(i == 0 ? from : to, wide);
        if (ops[i] == GNI_OP_WRAP_U8 || ops[i] == GNI_OP_WRAP_I8 || ops[i] >= GNI_OP_WRAP_U16) d = GNI_I;
        if (gni_saturates(from, ops[i])) {
            double low, high;
            gni_integer_range(to, &low, &high);
            gn_dtype t = wide ? GN_I64 : GN_I32;
            r[1] = gni_build_const(b, low, 0.0, t);
            r[0] = gni_build_insn(b, GNI_OP_MAX, GNI_I, r);
            r[1] = gni_build_const(b, high, 0.0, t);
            reg = gni_build_insn(b, GNI_OP_MIN, GNI_I, r);
            continue;
        }
        reg = gni_build_insn(b, ops[i], d, r);
    }
    return reg;
}

static int gni_build_value(gni_builder *b, gn_array *a);

static int gni_build_part(gni_builder *b, gn_array *a, int which) {
    a = gni_whole(a);
    if (a->expr == NULL) return gni_build_input(b, a, which);
    gn_array *s = a->expr->src[which];
    return gni_build_convert(b, gni_build_value(b, s), s->dtype, a->expr->compute);
}

static int gni_build_value(gni_builder *b, gn_array *a) {
    gni_expr *e = a->expr;
    if (e == NULL) return gni_build_input(b, a, -1);
    if (gni_is_part(e->op)) return gni_build_part(b, e->src[0], e->op == GNI_OP_IMAG);
    if (e->walk == b->walk) return e->reg;
    bool wide = b->map.program.wide;
    int r[3] = {0, 0, 0};
    const gn_array *s = e->src[0];
    if (e->op == GNI_OP_CAST && s->expr == NULL && gni_is_integer(s->dtype) && gni_is_integer(a->dtype) &&
        gn_dtype_size(s->dtype) == gn_dtype_size(a->dtype)) {
        gn_array same = *s; // bits
        same.dtype = a->dtype;
        return gni_build_input(b, &same, -1);
    }
    if (e->op == GNI_OP_CONST) return gni_build_const(b, e->konst[0], e->konst[1], a->dtype);
    if (e->op == GNI_OP_PRODUCT) {
        b->full = b->full || a != b->product;
        return 0;
    }
    for (int i = 0; i < e->n_src; i++) {
        gn_dtype t = gni_source_dtype(e->op, i, e->compute);
        if (e->src[i] == NULL)
            r[i] = gni_build_const(b, e->konst[i], 0.0, t);
        else
            r[i] = gni_build_convert(b, gni_build_value(b, e->src[i]), e->src[i]->dtype, t);
    }
    gni_op fix;
    int reg = r[0];
    if (e->op == GNI_OP_CAST) {
        reg = gni_build_convert(b, r[0], e->compute, a->dtype);
    } else {
        reg = gni_build_insn(b, e->op, gni_domain_of(e->compute, wide), r);
        if (gni_normalize_op(e->op, e->compute, wide, &fix)) {
            int f[3] = {0, 0, 0};
            f[0] = reg;
            reg = gni_build_insn(b, fix, gni_domain_of(e->compute, wide), f);
        }
    }
    e->walk = b->walk;
    e->reg = reg;
    return reg;
}

static uint32_t gni_pack_reg(const gni_program *p, uint32_t r) {
    if (r < GNI_MAX_INPUTS) return r;
    if (r < GNI_MAX_INPUTS + GNI_MAX_CONSTS) return r - GNI_MAX_INPUTS + (uint32_t)p->n_in;
    return r - GNI_MAX_INPUTS - GNI_MAX_CONSTS + (uint32_t)(p->n_in + p->n_const);
}

static void gni_build_finish(gni_program *p) {
    for (int i = 0; i < p->n_insn; i++) {
        uint32_t w = p->insn[i];
        p->insn[i] = GNI_INSN_CODE(w) | (gni_pack_reg(p, GNI_INSN_A(w)) << 11) |
                     (gni_pack_reg(p, GNI_INSN_B(w)) << 18) |
                     (gni_pack_reg(p, GNI_INSN_C(w)) << 25);
    }
    for (int i = 0; i < p->n_out; i++)
        p->out_reg[i] = (int)gni_pack_reg(p, (uint32_t)p->out_reg[i]);
}

// Whether an instruction rounds to the dtype of the program's one output.
static bool gni_rounds_output(const gni_program *p, uint32_t insn) {
    const uint32_t op = GNI_INSN_CODE(insn) / 3u;
    const gn_dtype t = p->out_dtype[0];
    return op == (t == GN_F16    ? GNI_OP_ROUND_F16
                  : t == GN_BF16 ? GNI_OP_ROUND_BF16
                                 : GNI_OP_ROUND_F32) &&
           (t == GN_F16 || t == GN_BF16 || t == GN_F32);
}

// Rounding at the end to the dtype of the output is what the store does anyway, and before relu it is as good as after it.
static void gni_drop_round(gni_program *p) {
    const int last = p->n_insn - 1, first = p->n_in + p->n_const;
    if (last < 0 || p->out_reg[0] != first + last) return;
    for (int i = 1; i < p->n_out; i++)
        if (p->out_reg[i] >= first + last) return;
    if (gni_rounds_output(p, p->insn[last])) {
        p->out_reg[0] = (int)GNI_INSN_A(p->insn[last]);
        p->n_insn--;
        return;
    }
    if (last < 1 || p->n_out > 1 || GNI_INSN_CODE(p->insn[last]) != GNI_OP_RELU * 3u + GNI_F ||
        (int)GNI_INSN_A(p->insn[last]) != first + last - 1 || !gni_rounds_output(p, p->insn[last - 1]))
        return;
    p->insn[last - 1] = GNI_INSN(GNI_OP_RELU, GNI_F, GNI_INSN_A(p->insn[last - 1]), 0, 0);
    p->out_reg[0]--;
    p->n_insn--;
}

// Drops dimensions of size 1 and merges neighbours that every operand steps through evenly; the first
// `kept` dimensions are not merged with the rest. Returns how many of the kept ones remain.
static int gni_merge_dims(int *rank, int64_t *dim, gni_operand **op, int n_op, int kept) {
    int out = 0, out_kept = 0;
    // Of an empty group one dimension is enough: the product of the others may be too large for an integer.
    for (int from = 0, to = kept; from < *rank; from = to, to = *rank) {
        bool empty = false;
        for (int i = from; i < to; i++) empty = empty || dim[i] == 0;
        for (int i = from; i < to && empty; i++) {
            dim[i] = i > from;
            for (int k = 0; k < n_op; k++) op[k]->stride[i] = 0;
        }
    }
    for (int i = 0; i < *rank; i++) {
        if (dim[i] == 1) continue;
        bool join = out > 0 && !(i >= kept && out == out_kept);
        for (int k = 0; k < n_op && join; k++)
            join = (uint64_t)op[k]->stride[out - 1] == (uint64_t)op[k]->stride[i] * (uint64_t)dim[i];
        // Beside an empty group the others may have more elements than an integer says.
        if (join && (dim[i] == 0 || dim[out - 1] <= INT64_MAX / dim[i])) {
            dim[out - 1] *= dim[i];
            for (int k = 0; k < n_op; k++) op[k]->stride[out - 1] = op[k]->stride[i];
            continue;
        }
        dim[out] = dim[i];
        for (int k = 0; k < n_op; k++) op[k]->stride[out] = op[k]->stride[i];
        out++;
        if (i < kept) out_kept = out;
    }
    for (int i = out; i < GN_MAX_RANK; i++) {
        dim[i] = 1;
        for (int k = 0; k < n_op; k++) op[k]->stride[i] = 0;
    }
    *rank = GNI_MAX(out, 1); // a single element still has one dimension
    return out_kept;
}

static void gni_map_merge(gni_map *m) {
    gni_operand *op[GNI_MAX_INPUTS + GNI_MAX_OUTPUTS];
    int n = 0;
    for (int i = 0; i < m->program.n_in; i++) op[n++] = &m->in[i];
    for (int i = 0; i < m->program.n_out; i++) op[n++] = &m->out[i];
    gni_merge_dims(&m->rank, m->dim, op, n, m->rank);
}

static void gni_build_begin(gni_builder *b, gn_context *g, const gn_shape *s, bool wide) {
    memset(b, 0, sizeof *b);
    b->map.rank = s->rank;
    memcpy(b->map.dim, s->dim, sizeof s->dim);
    b->map.program.wide = wide;
    b->walk = ++g->walk;
}

// ---- computing

// Of a program not packed yet: the register in its second half that does what r does in the first.
static uint32_t gni_other_half(const gni_program *p, uint32_t r) {
    if (r < GNI_MAX_INPUTS) return r + (uint32_t)p->n_in / 2u;
    return r < GNI_MAX_INPUTS + GNI_MAX_CONSTS ? r : r + (uint32_t)p->n_insn / 2u;
}

// Sums, differences and real multiples of complex numbers do the same with either part. Where parts lie side by side in all
// operands, half the program on twice as many elements does it, and nothing is taken apart.
static void gni_build_pairs(gni_builder *b) {
    gni_map *m = &b->map;
    gni_program *p = &m->program;
    const int in = p->n_in / 2, insns = p->n_insn / 2, last = m->rank - 1;
    if (p->n_out != 2 || last < 0 || insns < 1 || p->n_in % 2 != 0 || p->n_insn % 2 != 0) return;
    if ((uint32_t)p->out_reg[1] != gni_other_half(p, (uint32_t)p->out_reg[0]) || p->out_dtype[0] != p->out_dtype[1]) return;
    for (int i = 0; i < in; i++) {
        const gni_operand *re = &m->in[i], *im = &m->in[i + in];
        if (re->buf != im->buf || re->dtype != im->dtype || re->offset + 1 != im->offset || re->stride[last] != 2) return;
        if (memcmp(re->stride, im->stride, sizeof re->stride) != 0) return;
    }
    for (int i = 0; i < insns; i++) {
        const uint32_t w = p->insn[i], v = p->insn[i + insns], op = GNI_INSN_CODE(w) / 3u;
        const bool two = op == GNI_OP_ADD || op == GNI_OP_SUB || op == GNI_OP_MUL || op == GNI_OP_DIV;
        if ((!two && op != GNI_OP_NEG) || GNI_INSN_CODE(w) != GNI_INSN_CODE(v)) return;
        if (gni_other_half(p, GNI_INSN_A(w)) != GNI_INSN_A(v) || (two && gni_other_half(p, GNI_INSN_B(w)) != GNI_INSN_B(v)))
            return;
    }
    b->paired = true;
    p->n_in = in;
    p->n_insn = insns;
    p->n_out = 1;
    m->dim[last] *= 2;
    for (int i = 0; i < in; i++) m->in[i].stride[last] = 1;
}

// The axes from the longest steps on, where all that is read lies in one such order and it is not their own.
static bool gni_map_order(const gni_map *m, int *order) {
    bool other = false, sorted = false;
    for (int k = 0; k < m->program.n_in; k++) {
        const int64_t *stride = m->in[k].stride;
        bool full = true;
        for (int i = 0; i < m->rank; i++) full = full && stride[i] > 0;
        for (int i = 0; i < m->rank && full; i++) { // else the same again along an axis: as good in any order
            int to = i;
            for (; !sorted && to > 0 && stride[order[to - 1]] < stride[i]; to--) order[to] = order[to - 1];
            if (!sorted) order[to] = i;
            if (sorted && i > 0 && stride[order[i - 1]] < stride[order[i]]) return false;
            other = other || to < i;
        }
        sorted = sorted || full;
    }
    return other;
}

// New results lie in the order of what is read, as NumPy's do.
static void gni_build_order(gni_builder *b) {
    gni_map *m = &b->map;
    b->turned = gni_map_order(m, b->order);
    for (int k = -1; k < m->program.n_in && b->turned; k++) {
        int64_t *to = k < 0 ? m->dim : m->in[k].stride, was[GN_MAX_RANK];
        memcpy(was, to, sizeof was);
        for (int i = 0; i < m->rank; i++) to[i] = was[b->order[i]];
    }
}

// Outputs of a program for an array: two for a complex one, which is copied only where it is data.
static int gni_root_outputs(gn_array *a) {
    return gni_is_complex(a->dtype) && gni_is_pending(gni_whole(a)) ? 2 : 1;
}

// The program of several pending arrays of one shape. `into`: see gni_evaluate_fused.
static bool gni_build_roots(gni_builder *b, gn_context *g, gn_array *const *roots, gn_array *const *into, int count) {
    gni_build_begin(b, g, &roots[0]->shape, roots[0]->expr->wide);
    gni_program *p = &b->map.program;
    for (int i = 0; i < count; i++) {
        const int n = gni_root_outputs(roots[i]);
        if (roots[i]->expr->wide != p->wide || p->n_out + n > GNI_MAX_OUTPUTS) return false;
        if (n == 1 && count > 1 && gni_is_complex(roots[i]->dtype)) return false; // a copy, which no register holds
        for (int k = 0; k < n; k++) {
            p->out_dtype[p->n_out] = n == 2 ? gni_part_of(roots[i]->dtype) : roots[i]->dtype;
            p->out_reg[p->n_out++] = n == 2 ? gni_build_part(b, roots[i], k) : gni_build_value(b, roots[i]);
        }
    }
    if (b->full || (count > 1 && p->n_in > gni_most_inputs(g, p->n_out))) return false;
    const bool copy = p->n_insn == 0 && p->in_dtype[0] == p->out_dtype[0];
    if (g->gpu == NULL && into == NULL && !copy) gni_build_order(b);
    if (count == 1) gni_build_pairs(b);
    gni_build_finish(p);
    gni_drop_round(p);
    return true;
}

// After a write that failed: `was` is the buffer that `a` had before, held by the caller.
static void gni_restore_buffer(gn_context *g, gn_array *a, gni_buffer *was) {
    if (a->buf == was) return;
    a->buf->readers -= a->lazy_refs;
    gni_buffer_release(g, a->buf);
    a->buf = was;
    was->refs++;
    was->readers += a->lazy_refs;
}

// Runs the program with its outputs in fresh buffers, or in those of `into`.
static bool gni_evaluate_fused(gn_context *g, gni_builder *b, gn_array *const *roots,
                               gn_array *const *into, int count) {
    gni_buffer *fresh[GNI_MAX_OUTPUTS] = {NULL, NULL, NULL, NULL};
    gni_buffer *was[GNI_MAX_OUTPUTS] = {NULL, NULL, NULL, NULL}; // of `into`
    gni_map *m = &b->map;
    bool ok = true;
    // Held, since making room for the outputs may take a buffer away from the array it came from.
    for (int i = 0; i < m->program.n_in; i++) m->in[i].buf->refs++;
    for (int i = 0, at = 0; i < count && ok; i++) {
        const int parts = gni_root_outputs(roots[i]);
        gni_operand *o = &m->out[at];
        memset(o, 0, sizeof *o);
        o->dtype = roots[i]->dtype;
        gni_strides_of(&roots[i]->shape, o->stride);
        if (b->turned) {
            int64_t step = 1;
            for (int k = m->rank - 1; k >= 0; step *= roots[i]->shape.dim[b->order[k--]])
                o->stride[k] = roots[i]->stride[b->order[k]] = step;
        }
        if (into != NULL && into[i] != NULL) {
            int held = 0;
            for (int k = 0; k < m->program.n_in; k++) held += m->in[k].buf == into[i]->buf;
            was[i] = into[i]->buf;
            if (was[i] != NULL) was[i]->refs++, held++;
            ok = gni_before_overwrite(g, into[i], b->walk, held);
            o->buf = into[i]->buf;
            o->offset = into[i]->offset;
            memcpy(o->stride, into[i]->stride, sizeof o->stride);
        } else {
            fresh[i] = gni_buffer_new(g, (uint64_t)gni_elements(&roots[i]->shape) *
                                             gn_dtype_size(o->dtype));
            o->buf = fresh[i];
            ok = fresh[i] != NULL;
        }
        if (parts == 2) {
            o[1] = o[0];
            gni_operand_part(&o[0], 0);
            gni_operand_part(&o[1], 1);
        }
        if (b->paired) o->stride[m->rank - 1] = 1;
        at += parts;
    }
    if (ok) {
        gni_map_merge(m);
        ok = gni_run(g, &gni_kind_map, m, roots[0]);
    }
    for (int i = 0; i < m->program.n_in; i++) gni_buffer_release(g, m->in[i].buf);
    for (int i = 0; i < count; i++) {
        if (was[i] != NULL && !ok) gni_restore_buffer(g, into[i], was[i]);
        gni_buffer_release(g, was[i]);
        if (!ok) {
            gni_strides_of(&roots[i]->shape, roots[i]->stride);
            gni_buffer_release(g, fresh[i]);
            continue;
        }
        roots[i]->reason = roots[0]->reason;
        roots[i]->on_gpu = roots[0]->on_gpu;
        roots[i]->buf = fresh[i];
        if (fresh[i] != NULL) fresh[i]->version = 0; // the second part of complex numbers overwrites nothing either
        if (fresh[i] == NULL) { // the result lives in into[i]'s memory
            roots[i]->buf = into[i]->buf;
            roots[i]->offset = into[i]->offset;
            memcpy(roots[i]->stride, into[i]->stride, sizeof roots[i]->stride);
            roots[i]->buf->refs++;
        }
        const bool copy = b->turned && roots[i]->expr->op == GNI_OP_CAST && roots[i]->expr->compute == roots[i]->dtype;
        gni_expr_free(g, roots[i]);
        if (copy) ok = gni_in_order(g, roots[i]);
    }
    return ok;
}

// ---- matrix products: elementwise work on the result of one goes into its store, unless someone else
// may want the product itself

// Counts how often a's tree reads each part of it that holds a product, and the records of its ops that
// hold such parts without ever reading their values.
static void gni_tree_count(gn_array *a, uint32_t walk) {
    gni_expr *e = a->expr;
    const gni_node *node = a->node;
    for (int i = 0; i < e->n_src; i++) {
        gn_array *s = e->src[i];
        if (!gni_has_product(s)) continue;
        if (s->expr->walk != walk) {
            s->expr->walk = walk;
            s->expr->seen = s->expr->unread = 0;
            gni_tree_count(s, walk);
        }
        s->expr->seen++;
    }
    if (node == NULL || node->backward != gni_back_elementwise) return;
    uint32_t reads = gni_elementwise_reads(node, gni_may_want);
    for (int i = 0; i < node->n_in; i++) {
        gn_array *s = node->in[i];
        if (gni_has_product(s) && s->expr->walk == walk && !(reads >> i & 1u)) s->expr->unread++;
    }
}

// Whether only the tree under examination needs the value of this part of it. An open scope's reference
// does not count: most results that a scope owns are steps on the way to others.
static bool gni_tree_owns(const gn_array *s) {
    const gni_expr *e = s->expr;
    bool user = s->user_refs > 1 || (s->user_refs == 1 && s->scope_slot < 0);
    if (user || s->lazy_refs != e->seen || s->refs - s->user_refs - s->lazy_refs != e->unread)
        return false;
    return s->node == NULL || s->node->backward != gni_back_elementwise ||
           !(gni_elementwise_reads(s->node, gni_may_want) & GNI_READS_OUTPUT);
}

// Computes the parts of a's tree that hold a product and are needed elsewhere too.
static bool gni_tree_cut(gn_context *g, gn_array *a) {
    for (int i = 0; i < a->expr->n_src; i++) {
        gn_array *s = a->expr->src[i];
        if (!gni_has_product(s)) continue;
        if (!(gni_tree_owns(s) ? gni_tree_cut(g, s) : gni_materialize(g, s))) return false;
    }
    return true;
}

// The products that are pending in a's tree, at most `most`.
static int gni_tree_products(gn_array *a, gn_array **list, int n, int most) {
    bool had = false;
    if (!gni_has_product(a)) return n;
    for (int i = 0; i < n; i++) had = had || list[i] == a;
    if (gni_is_product(a) && n < most && !had) list[n++] = a;
    for (int i = 0; i < a->expr->n_src; i++) n = gni_tree_products(a->expr->src[i], list, n, most);
    return n;
}

static uint32_t gni_product_kind(const gn_array *product) {
    uint32_t h = (uint32_t)product->dtype + 1u;
    for (int k = 0; k < 2; k++) {
        const gn_shape *s = &product->expr->src[k]->shape;
        for (int i = 0; i < s->rank; i++) h = (h ^ (uint32_t)(uint64_t)s->dim[i]) * 16777619u;
    }
    return h | 1u;
}

// One that is asked for after it went into a store is computed a second time; from then on products of
// its kind are kept.
static void gni_product_keep(gn_context *g, const gn_array *product) {
    uint32_t kind = gni_product_kind(product);
    if (product->expr->consumed) g->kept[(kind >> 16) % GNI_KEPT] = kind;
}

// Of room `product`: the operand that is made while the product reads it (1, 2), or 0. `by`: the other one's rows or
// columns.
static int gni_product_prologue(const gn_array *product, int64_t *by);

// Whether elementwise work may go into the store of this product.
static bool gni_product_open(const gn_context *g, const gn_array *product) {
    uint32_t kind = gni_product_kind(product);
    int64_t by = 0;
    return !product->expr->consumed && g->kept[(kind >> 16) % GNI_KEPT] != kind &&
           (gni_product_prologue(product, &by) == 0 || by > 1);
}

static int64_t gni_product_depth(const gn_array *product) {
    const gn_shape *s = &product->expr->src[0]->shape;
    return s->dim[s->rank - 1];
}

// Leaves one product at most in the root's tree, in *one, which its program is to follow; all are computed
// where `fuse` is not set.
static bool gni_tree_prepare(gn_context *g, gn_array *root, bool fuse, gn_array **one) {
    gn_array *list[GNI_MAX_INPUTS];
    *one = NULL;
    if (!gni_has_product(root)) return true;
    if (gni_is_product(root)) {
        *one = root;
        return fuse || gni_materialize(g, root);
    }
    fuse = fuse && gni_is_float(root->dtype) && !root->expr->wide;
    if (fuse) {
        uint32_t walk = ++g->walk;
        gni_tree_count(root, walk);
        if (!gni_tree_cut(g, root)) return false;
    }
    int n = gni_tree_products(root, list, 0, GNI_MAX_INPUTS);
    for (int i = 0; i < n && fuse; i++)
        if (gni_product_open(g, list[i]) &&
            (*one == NULL || gni_product_depth(list[i]) > gni_product_depth(*one)))
            *one = list[i];
    for (int i = 0; i < n; i++)
        if (list[i] != *one && !gni_materialize(g, list[i])) return false;
    if (*one == NULL) return true;
    // Before the program is built, which may read them as well. What the product makes itself nobody else reads.
    int64_t by;
    const int prologue = gni_product_prologue(*one, &by);
    for (int i = 0; i < 2; i++)
        if (i + 1 != prologue && !gni_materialize(g, (*one)->expr->src[i])) return false;
    return true;
}

// The program from the product, as its input 0, to the root.
static bool gni_build_on(gni_builder *b, gn_context *g, const gn_array *product, gn_array *root) {
    gni_build_begin(b, g, &root->shape, false);
    gni_program *p = &b->map.program;
    b->product = product;
    p->n_in = 1;
    p->in_dtype[0] = GN_F32;
    p->n_out = 1;
    p->out_dtype[0] = root->dtype;
    p->out_reg[0] = gni_build_value(b, root);
    if (b->full) return false;
    gni_build_finish(p);
    return true;
}

// Of several arrays none is fused into a product's store; each alone may be.
static bool gni_roots_prepare(gn_context *g, gn_array *const *roots, gn_array *const *into,
                              int count) {
    gn_array *one;
    for (int i = 0; i < count; i++) {
        if (!gni_has_product(roots[i])) continue;
        if (into == NULL ? !gni_materialize(g, roots[i])
                         : !gni_tree_prepare(g, roots[i], false, &one))
            return false;
    }
    return true;
}

// What the root is a conversion of, where that is made of several arrays and others want it too, as the gradient behind a
// residual sum: they would read them all again, and one more with each sum.
static gn_array *gni_converted_too(const gn_context *g, const gn_array *root) {
    enum { LEAVES = 3, ELEMENTS = 65536 };
    const gni_expr *e = root->expr;
    gn_array *s = gni_is_pending(root) && e->op == GNI_OP_CAST ? e->src[0] : NULL;
    if (s == NULL || g->gpu == NULL || !gni_is_pending(s) || s->expr->leaves < LEAVES || gni_has_product(s) ||
        gni_is_complex(s->dtype) || gni_is_complex(root->dtype))
        return NULL;
    const bool others = s->lazy_refs > 1 || s->refs > s->user_refs + s->lazy_refs;
    return others && gni_same_shape(&s->shape, &root->shape) && gni_elements(&s->shape) >= ELEMENTS ? s : NULL;
}

static bool gni_evaluate(gn_context *g, gn_array *const *roots, gn_array *const *into, int count) {
    gni_builder b;
    gn_array *product = NULL;
    if (count == 1 && into == NULL) {
        if ((GNI_CPU_ALONE || g->gpu == NULL) && gni_cpu_short(g, roots[0])) return true;
        if (!gni_tree_prepare(g, roots[0], true, &product)) return false;
        if (product == roots[0]) return product->expr->run(g, product, product, NULL);
        if (product != NULL && gni_build_on(&b, g, product, roots[0]))
            return product->expr->run(g, product, roots[0], &b);
        if (product != NULL && !gni_materialize(g, product)) return false;
        gn_array *both[2] = {roots[0], gni_converted_too(g, roots[0])};
        if (both[1] != NULL && gni_build_roots(&b, g, both, NULL, 2)) return gni_evaluate_fused(g, &b, both, NULL, 2);
    } else if (!gni_roots_prepare(g, roots, into, count)) {
        return false;
    }
    bool fuse = count <= GNI_MAX_OUTPUTS;
    for (int i = 0; i < count; i++)
        fuse =
            fuse && gni_is_pending(roots[i]) && gni_same_shape(&roots[i]->shape, &roots[0]->shape);
    for (int i = 0; i < count && fuse; i++)
        for (int k = 0; k < i; k++) fuse = fuse && roots[i] != roots[k];
    if (fuse && gni_build_roots(&b, g, roots, into, count))
        return gni_evaluate_fused(g, &b, roots, into, count);
    if (count == 1 && into == NULL && gni_is_pending(roots[0])) {
        if (roots[0]->expr->shares) { // what it shared may have been computed since
            for (int i = 0; i < roots[0]->expr->n_src; i++)
                if (gni_is_pending(roots[0]->expr->src[i]) && !gni_materialize(g, roots[0]->expr->src[i])) return false;
            if (gni_build_roots(&b, g, roots, into, 1)) return gni_evaluate_fused(g, &b, roots, into, 1);
        }
        return gni_fail(g, GN_ERROR_UNSUPPORTED, "%s: expression does not fit one program", roots[0]->maker);
    }
    for (int i = 0; i < count; i++)
        if (!gni_materialize(g, roots[i])) return false;
    for (int i = 0; i < count && into != NULL; i++) {
        if (into[i] == NULL) continue;
        if (!gni_before_write(g, into[i])) return false;
        if (!gni_copy_into(g, into[i]->buf, into[i]->dtype, into[i]->offset, into[i]->stride,
                           roots[i]))
            return false;
    }
    return true;
}

static bool gni_materialize(gn_context *g, gn_array *a) {
    return a->buf != NULL || gni_evaluate(g, &a, NULL, 1);
}

static bool gni_copy_into(gn_context *g, gni_buffer *dst, gn_dtype t, int64_t offset,
                          const int64_t *stride, gn_array *src) {
    gni_builder b;
    if (!gni_materialize(g, src)) return false;
    gni_build_begin(&b, g, &src->shape, gni_is_wide(src->dtype) || gni_is_wide(t));
    gni_program *p = &b.map.program;
    int reg = gni_build_input(&b, src, -1);
    p->out_dtype[0] = t;
    p->out_reg[0] = gni_build_convert(&b, reg, src->dtype, t);
    p->n_out = 1;
    gni_build_finish(p);
    gni_operand *o = &b.map.out[0];
    memset(o, 0, sizeof *o);
    o->buf = dst;
    o->dtype = t;
    o->offset = offset;
    memcpy(o->stride, stride, sizeof(int64_t) * (size_t)src->shape.rank);
    gni_map_merge(&b.map);
    return gni_run(g, &gni_kind_map, &b.map, NULL);
}

static gn_array *gni_contiguous(gn_context *g, gn_array *a) {
    if (!gni_materialize(g, a)) return NULL;
    if (gni_is_contiguous(a)) {
        a->refs++;
        return a;
    }
    gn_array *y = gni_array_empty(g, a->maker, a->dtype, &a->shape);
    if (y != NULL && gni_copy_into(g, y->buf, y->dtype, 0, y->stride, a)) return y;
    gni_unref(g, y);
    return NULL;
}

// Brings data that no other array shows into C order.
static bool gni_in_order(gn_context *g, gn_array *a) {
    gn_array *c = gni_contiguous(g, a);
    if (c != NULL && c != a) {
        c->buf->version = a->buf->version;
        gni_restore_buffer(g, a, c->buf);
        memcpy(a->stride, c->stride, sizeof a->stride);
    }
    gni_unref(g, c);
    return c != NULL;
}

static const void *gni_host(gn_context *g, gn_array *a) {
    if (!gni_materialize(g, a) || !gni_buffer_need(g, a->buf, GNI_ON_CPU)) return NULL;
    return (const char *)a->buf->host + a->offset * (int64_t)gn_dtype_size(a->dtype);
}

// The bytes of its buffer among which the elements are.
static void gni_reach(const gn_array *a, int64_t *low, int64_t *high) {
    const int64_t size = (int64_t)gn_dtype_size(a->dtype);
    int64_t first = a->offset, last = a->offset;
    for (int i = 0; i < a->shape.rank; i++) {
        const int64_t step = (a->shape.dim[i] - 1) * a->stride[i];
        if (step < 0) first += step;
        if (step > 0) last += step;
    }
    *low = first * size;
    *high = gni_elements(&a->shape) > 0 ? (last + 1) * size : *low;
}

static bool gni_may_overlap(const gn_array *a, const gn_array *b) {
    int64_t low, high, from, to;
    if (a->buf == NULL || a->buf != b->buf) return false;
    gni_reach(a, &low, &high);
    gni_reach(b, &from, &to);
    return low < to && from < high;
}

// Whether pending work is part of the program of that walk.
static bool gni_in_walk(const gn_array *p, uint32_t walk) { return walk != 0 && p->expr->walk == walk; }

// How often pending work reads the buffer of `a`; into *found where a write to `a` overwrites some, outside that program.
static int gni_read_times(gn_array *p, const gn_array *a, uint32_t walk, gn_array **found) {
    int n = 0;
    for (int i = 0; i < p->expr->n_src; i++) {
        const gn_array *s = p->expr->src[i];
        if (s == NULL || s->buf != a->buf) continue;
        n++;
        if (!gni_in_walk(p, walk) && gni_may_overlap(a, s)) *found = p;
    }
    return n;
}

// The first work of that kind, looked for from both ends, and where that is far what reads other parts of the buffer, too:
// not each write of a loop passes all that was left pending before.
static gn_array *gni_find_reader(const gn_context *g, const gn_array *a, uint32_t walk) {
    enum { LONG_WAY = 128 };
    gn_array *p = g->pending_first, *q = g->pending_last, *hit = NULL, *found = NULL, *oldest = NULL;
    int steps = 0;
    for (int left = a->buf->readers, n; left > 0 && q != NULL; p = p->expr->next, q = q->expr->prev, steps++) {
        n = gni_read_times(p, a, walk, &hit);
        if (hit != NULL || (n > 0 && steps > LONG_WAY && !gni_in_walk(p, walk))) return p;
        n = gni_read_times(q, a, walk, &found);
        if (n > 0 && !gni_in_walk(q, walk)) oldest = q;
        left -= n;
    }
    return found != NULL || steps <= LONG_WAY ? found : oldest;
}

// Gives `a`, which shows its buffer to nobody but pending readers, another one with undefined contents where there are some
// outside the program of that walk; they keep the old one. Looked for among the last ones, then from where others were found:
// an optimizer writes parameters in the order in which they were read.
static bool gni_swap_buffer(gn_context *g, gn_array *a, uint32_t walk) {
    enum { LAST_ONES = 64 };
    gni_buffer *was = a->buf, *fresh = NULL;
    gn_array *old = NULL, *last = g->pending_last, *from = g->pending_read, *start = NULL, *p = last;
    for (int left = was->readers, steps = 0; left > 0 && p != NULL; steps++) {
        for (int i = 0; i < p->expr->n_src; i++) {
            gn_array *s = p->expr->src[i];
            if (s == NULL || s->buf != was) continue;
            left--;
            if (gni_in_walk(p, walk)) continue;
            if (old == NULL) {
                old = gni_array_new(g, a->maker, a->dtype, &a->shape);
                fresh = gni_buffer_new(g, was->bytes);
                if (old == NULL || fresh == NULL) {
                    gni_unref(g, old);
                    gni_buffer_release(g, fresh);
                    return false;
                }
                fresh->version = was->version + 1;
                old->buf = was;
                old->offset = a->offset;
                memcpy(old->stride, a->stride, sizeof a->stride);
            }
            if (s != a) continue;
            p->expr->src[i] = old;
            old->refs++;
            old->lazy_refs++;
            a->refs--;
            a->lazy_refs--;
        }
        if (steps < LAST_ONES) {
            if (p == from) from = NULL;
            p = last = p->expr->prev;
            if (steps == LAST_ONES - 1 && p != NULL) p = start = from != NULL ? from : g->pending_first;
        } else {
            g->pending_read = p;
            p = p == last ? g->pending_first : p->expr->next;
            if (p == start) break;
        }
    }
    if (old == NULL) return true;
    a->buf = fresh;
    was->readers -= a->lazy_refs; // those in the walk
    fresh->readers = a->lazy_refs;
    gni_unref(g, old);
    return true;
}

// How many other arrays show the buffer, for nobody but pending readers. Of more than a few, as many as they are at least.
static int gni_views_of_readers(const gn_context *g, const gn_array *a) {
    const gn_array *had[8];
    int n = 0, left = a->buf->readers;
    for (const gn_array *p = g->pending_last; p != NULL && left > 0; p = p->expr->prev)
        for (int i = 0; i < p->expr->n_src; i++) {
            const gn_array *s = p->expr->src[i];
            if (s == NULL || s->buf != a->buf) continue;
            left--;
            if (s == a || s->refs != s->lazy_refs) continue;
            int k = 0;
            while (k < n && had[k] != s) k++;
            if (k == n && n < GNI_COUNT(had)) had[n++] = s;
        }
    return n;
}

// `held`: references to the buffer that the program of that walk holds for itself.
static bool gni_before_overwrite(gn_context *g, gn_array *a, uint32_t walk, int held) {
    if (!gni_materialize(g, a)) return false;
    // Where no other array shows the buffer, who reads it reads `a`.
    if (a->lazy_refs == 0 && a->buf->refs - held == 1) return true;
    // When only `a` shows the buffer to whom the new values matter, and all of it goes, another one is cheaper than
    // computing the readers, and those that nobody asks for are never computed.
    bool whole = !a->buf->host_borrowed && !a->buf->device_borrowed && gni_is_contiguous(a) && gn_bytes(a) == a->buf->bytes;
    const int others = a->buf->refs - held - 1;
    if (whole && (others == 0 || others == gni_views_of_readers(g, a)))
        return gni_swap_buffer(g, a, walk);
    for (;;) {
        gn_array *reader = gni_find_reader(g, a, walk);
        if (reader == NULL) return true;
        if (!gni_materialize(g, reader)) return false;
    }
}

static bool gni_before_write(gn_context *g, gn_array *a) {
    return gni_before_overwrite(g, a, 0, 0);
}
