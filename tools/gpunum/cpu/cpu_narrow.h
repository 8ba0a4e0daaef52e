// >>cpu_narrow
// Elementwise programs on items of 8 and 16 bits that need no wider registers: loops over the items as they are in memory,
// compiled once. From outside: gni_narrow_program, gni_narrow_kernel, gni_narrow_isa_of, gni_narrow_convert.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

#ifdef GNI_WASM // built to be small: loops of these would take bytes and time

static gni_kernel gni_narrow_kernel(uint32_t code, gn_dtype t) {
    GNI_UNUSED(code);
    GNI_UNUSED(t);
    return NULL;
}
static const gni_cpu_isa *gni_narrow_isa_of(gn_dtype t) {
    GNI_UNUSED(t);
    return NULL;
}
static gn_dtype gni_narrow_program(gni_program *q, const gni_program *p) {
    GNI_UNUSED(q);
    GNI_UNUSED(p);
    return GN_DTYPE_COUNT;
}
static gni_convert_fn gni_narrow_convert(gn_dtype from, gn_dtype to) {
    GNI_UNUSED(from);
    GNI_UNUSED(to);
    return NULL;
}

#else

// ---- kernels, 16 elements at a time, which compilers turn into vectors

#if defined(__GNUC__) && !defined(__clang__)
#define GNI_NARROW_IN_PLACE _Pragma("GCC ivdep") // a result lies just where an operand does, or apart from it
#define GNI_NARROW_FROM(x, from) const T *const x = (from)
#else
#define GNI_NARROW_IN_PLACE
#define GNI_NARROW_FROM(x, from) T x[16]; memcpy(x, (from), sizeof x)
#endif
#define GNI_NARROW(name, TYPE, E)                                                                  \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, int n) {           \
        typedef TYPE T;                                                                            \
        for (int i = 0; i < n; i += 16) {                                                          \
            T *r = (T *)dst + i;                                                                   \
            GNI_NARROW_FROM(x, (const T *)pa + i);                                                 \
            GNI_NARROW_FROM(y, (const T *)pb + i);                                                 \
            GNI_NARROW_FROM(z, (const T *)pc + i);                                                 \
            GNI_NARROW_IN_PLACE                                                                    \
            for (int j = 0; j < 16; j++) {                                                         \
                const T a = x[j], b = y[j], c = z[j];                                              \
                GNI_UNUSED(b);                                                                     \
                GNI_UNUSED(c);                                                                     \
                r[j] = (T)(E);                                                                     \
            }                                                                                      \
        }                                                                                          \
    }
// Of bits alone, and of values.
#define GNI_NARROW_BITS(X)                                                                         \
    X(NEG, 0 - a) X(SQUARE, 1u * a * a) \
    X(ADD, a + b) X(SUB, a - b) X(MUL, 1u * a * b) X(AND, a & b) X(OR, a | b) X(XOR, a ^ b) X(EQ, a == b) X(NE, a != b) \
    X(LOGICAL_AND, (a != 0) & (b != 0)) X(LOGICAL_OR, (a | b) != 0) X(LOGICAL_XOR, (a != 0) ^ (b != 0)) \
    X(LOGICAL_NOT, a == 0) \
    X(WHERE, a != 0 ? b : c)
#define GNI_NARROW_VALUES(X) X(MIN, a < b ? a : b) X(MAX, a > b ? a : b) X(LT, a < b) X(LE, a <= b)
#define GN_X(NAME, E) GNI_NARROW(gni_k8_##NAME, uint8_t, E) GNI_NARROW(gni_k16_##NAME, uint16_t, E)
GNI_NARROW_BITS(GN_X)
#undef GN_X
#define GN_X(NAME, E)                                                                              \
    GNI_NARROW(gni_ku8_##NAME, uint8_t, E) GNI_NARROW(gni_ki8_##NAME, int8_t, E)                   \
    GNI_NARROW(gni_ku16_##NAME, uint16_t, E) GNI_NARROW(gni_ki16_##NAME, int16_t, E)
GNI_NARROW_VALUES(GN_X)
#undef GN_X
GNI_NARROW(gni_ki8_ABS, int8_t, a < 0 ? -a : a)
GNI_NARROW(gni_ki16_ABS, int16_t, a < 0 ? -a : a)

// Quotients of integers by one number b other than -1, 0 and 1, by products with 16 bits of an inverse. y is what rounds down
// by the divisor's size: a dividend of 8 bits and some times that, or one of 16, all bits of a negative one turned (Granlund
// and Montgomery 1994, figure 4.1, whose last shift is a product, too: vectors of gcc have those).
#define GNI_NARROW_DIVISOR(T)                                                                      \
    const uint16_t top = (uint16_t)(sign ? 1u << (8 * sizeof(T) - 1) : 0u), b = (uint16_t)((*(const T *)pb ^ top) - top); \
    const uint16_t turn = (uint16_t)(0 - (sign & b >> 15)), by = (uint16_t)((b ^ turn) - turn);
static void gni_k8_by(void *dst, const void *pa, const void *pb, int n, bool sign) {
    GNI_NARROW_DIVISOR(uint8_t)
    const uint16_t m = (uint16_t)(65536 / by + 1), some = (uint16_t)(sign ? 127 / by + 1 : 0), way = turn | 1;
    const uint16_t off = (uint16_t)(some * by - top * way);
    for (int i = 0; i < n; i += 16) {
        uint8_t *r = (uint8_t *)dst + i;
        const uint8_t *x = (const uint8_t *)pa + i;
        uint16_t q[16];
        for (int j = 0; j < 16; j++) {
            const uint16_t y = (uint16_t)((x[j] ^ top) * 1u * way + off);
            q[j] = (uint16_t)((uint16_t)((uint32_t)m * y >> 16) - some);
        }
        for (int j = 0; j < 16; j++) r[j] = (uint8_t)q[j];
    }
}
static void gni_k16_by(void *dst, const void *pa, const void *pb, int n, bool sign) {
    typedef uint16_t T;
    GNI_NARROW_DIVISOR(T)
    uint16_t scale[16];
    int l = 1;
    while (1 << l < by) l++;
    const uint16_t m = (uint16_t)((((1u << l) - by) << 16) / by + 1), whole = l > 1 ? 0 : 65535;
    for (int j = 0; j < 16; j++) scale[j] = (uint16_t)(131072 >> l);
    for (int i = 0; i < n; i += 16) {
        T *r = (T *)dst + i;
        GNI_NARROW_FROM(x, (const T *)pa + i);
        GNI_NARROW_IN_PLACE
        for (int j = 0; j < 16; j++) {
            const uint16_t a = x[j], v = (uint16_t)((a ^ turn) - turn);
            const uint16_t down = (uint16_t)((int16_t)(v & ~(a & turn) & top) >> 15), y = v ^ down;
            const uint16_t t = (uint16_t)((uint32_t)m * y >> 16), s = (uint16_t)(t + ((uint16_t)(y - t) >> 1));
            r[j] = (T)(((s & whole) + (uint16_t)((uint32_t)s * scale[j] >> 16)) ^ down);
        }
    }
}
#undef GNI_NARROW_DIVISOR
#define GN_X(name, by, sign)                                                                       \
    static void name(void *dst, const void *pa, const void *pb, const void *pc, int n) {           \
        by(dst, pa, pb, (GNI_UNUSED(pc), n), sign);                                                \
    }
GN_X(gni_ku8_FLOOR_DIV, gni_k8_by, false) GN_X(gni_ki8_FLOOR_DIV, gni_k8_by, true)
GN_X(gni_ku16_FLOOR_DIV, gni_k16_by, false) GN_X(gni_ki16_FLOOR_DIV, gni_k16_by, true)
#undef GN_X

// The loop for an instruction of a program that gni_narrow_program made.
static gni_kernel gni_narrow_kernel(uint32_t code, gn_dtype t) {
    const bool two = t == GN_U16 || t == GN_I16, sign = t == GN_I8 || t == GN_I16;
    switch (code / 3u) {
#define GN_X(NAME, E) case GNI_OP_##NAME: return two ? gni_k16_##NAME : gni_k8_##NAME;
        GNI_NARROW_BITS(GN_X)
#undef GN_X
#define GN_X(NAME, E)                                                                              \
    case GNI_OP_##NAME: return two ? (sign ? gni_ki16_##NAME : gni_ku16_##NAME) : (sign ? gni_ki8_##NAME : gni_ku8_##NAME);
        GNI_NARROW_VALUES(GN_X) GN_X(FLOOR_DIV, 0)
#undef GN_X
    case GNI_OP_ABS: return !sign ? NULL : two ? gni_ki16_ABS : gni_ki8_ABS;
    default: return NULL;
    }
}

// Between 8 and 16 bits, truth values out of registers too. All else is the same in memory.
#define GNI_NARROW_CONVERT(name, S, D)                                                             \
    static void name(void *dst, const void *src, int64_t n) {                                      \
        const S *s = (const S *)src;                                                               \
        D *d = (D *)dst, r[16];                                                                    \
        int64_t i = 0;                                                                             \
        for (; i + 16 <= n; i += 16) {                                                             \
            for (int j = 0; j < 16; j++) r[j] = (D)s[i + j];                                       \
            memcpy(d + i, r, sizeof r);                                                            \
        }                                                                                          \
        for (; i < n; i++) d[i] = (D)s[i];                                                         \
    }
GNI_NARROW_CONVERT(gni_narrow_truth, uint16_t, uint8_t)
GNI_NARROW_CONVERT(gni_narrow_wider, uint8_t, uint16_t)
GNI_NARROW_CONVERT(gni_narrow_signed, int8_t, int16_t)
#undef GNI_NARROW_CONVERT

// What converts integers of 8 bits to 16 or back, or NULL.
static gni_convert_fn gni_narrow_convert(gn_dtype from, gn_dtype to) {
    const bool two = from == GN_U16 || from == GN_I16;
    if (two) return to == GN_U8 || to == GN_I8 ? gni_narrow_truth : NULL;
    if (to != GN_U16 && to != GN_I16) return NULL;
    return from == GN_I8 ? gni_narrow_signed : from == GN_U8 || from == GN_BOOL ? gni_narrow_wider : NULL;
}

// Truth of bytes, `few` for a branch, the last of which overlap those before: any stops at the first that is not 0, all at a
// 0.
#define GNI_NARROW_FOLD(name, few, FIRST, STEP, STOP, VALUE)                                            \
    static void name(gni_acc *acc, const void *x, int64_t n, int64_t at) {                         \
        const uint8_t *p = (const uint8_t *)x;                                                     \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (uint8_t t = FIRST; n >= few && i < n && acc->i != VALUE; i += few) {                  \
            i = GNI_MIN(i, n - few);                                                               \
            for (int j = 0; j < few; j++) t = (uint8_t)(STEP);                                     \
            if (t STOP 0) acc->i = VALUE;                                                          \
        }                                                                                          \
        for (; i < n && acc->i != VALUE; i++)                                                      \
            if (p[i] STOP 0) acc->i = VALUE;                                                       \
    }
GNI_NARROW_FOLD(gni_k8_fold_any, 128, 0, t | p[i + j], !=, 1)
GNI_NARROW_FOLD(gni_k8_fold_all, 256, 255, p[i + j] < t ? p[i + j] : t, ==, 0)
#if defined(GNI_GNU) && !defined(GPUNUM_NO_SIMD)
typedef uint64_t gni_k8_words __attribute__((vector_size(16)));
#else
typedef uint64_t gni_k8_words;
#endif
// The bytes of words by 16 bits, which hold the sum of 128 words.
static void gni_k8_fold_sum(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    enum { STEP = (int)sizeof(gni_k8_words) };
    const uint8_t *p = (const uint8_t *)x;
    const uint64_t low = 0x00ff00ff00ff00ffu;
    int64_t i = 0;
    GNI_UNUSED(at);
    while (i + STEP <= n) {
        gni_k8_words w, s;
        uint16_t part[STEP / 2];
        memset(&s, 0, sizeof s);
        for (const int64_t end = GNI_MIN(n - STEP + 1, i + 128 * STEP); i < end; i += STEP) {
            memcpy(&w, p + i, sizeof w);
            s += (w & low) + (w >> 8 & low);
        }
        memcpy(part, &s, sizeof part);
        for (int k = 0; k < STEP / 2; k++) acc->i += part[k];
    }
    for (; i < n; i++) acc->i += p[i];
}
#define GNI_VALUES(loop) GNI_TRUTH(sum) // of the others no narrow program is made
#define GNI_TRUTH(loop) gni_k8_fold_##loop, gni_k8_fold_##loop, gni_k8_fold_##loop,
#define GN_X(fn, NAME, loop, form, back) GNI_##form(loop)
static const gni_fold_fn gni_narrow_fold[] = {GNI_REDUCE_AXES(GN_X) NULL};
#undef GN_X
#undef GNI_VALUES
#undef GNI_TRUTH

static const gni_convert_fn gni_narrow_none[GN_DTYPE_COUNT] = {NULL};
// By dtype: F32, F16, BF16, F64, I32, I64, U8, I8, U32, BOOL.
static const gni_convert_fn gni_narrow_store[GN_DTYPE_COUNT] = {NULL, NULL, NULL, NULL, NULL,
                                                                NULL, NULL, NULL, NULL, gni_narrow_truth};
static const gni_cpu_isa gni_narrow_isa[2] = {
    {NULL, gni_narrow_none, gni_narrow_none, gni_narrow_fold, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL},
    {NULL, gni_narrow_none, gni_narrow_store, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL}};

static const gni_cpu_isa *gni_narrow_isa_of(gn_dtype t) { return &gni_narrow_isa[gn_dtype_size(t) - 1]; }

// ---- programs

// What a register of 32 bits holds beside its low bits, which the narrow one has: anything, nothing, and just 0 or 1.
enum { GNI_NARROW_LOW, GNI_NARROW_EXACT, GNI_NARROW_TRUTH };

// The dtype of a program's items, or GN_DTYPE_COUNT where they are not all of one, or wider.
static gn_dtype gni_narrow_dtype(const gni_program *p) {
    gn_dtype t = GN_DTYPE_COUNT;
    bool truth = false;
    for (int k = 0; k < p->n_in; k++) {
        const gn_dtype d = p->in_dtype[k];
        if (d == GN_BOOL) {
            truth = true;
            continue;
        }
        if ((d != GN_U8 && d != GN_I8 && d != GN_U16 && d != GN_I16) || (t != GN_DTYPE_COUNT && t != d))
            return GN_DTYPE_COUNT;
        t = d;
    }
    if (t == GN_DTYPE_COUNT) t = GN_U8;
    if (p->wide || p->n_in == 0 || (truth && gn_dtype_size(t) > 1)) return GN_DTYPE_COUNT;
    for (int o = 0; o < p->n_out; o++)
        if (p->out_dtype[o] != t && p->out_dtype[o] != GN_BOOL) return GN_DTYPE_COUNT;
    return t;
}

// A constant's low bits, again and again in 32.
static int gni_narrow_const(uint64_t *konst, gn_dtype t) {
    const int32_t v = (int32_t)(uint32_t)(*konst & UINT32_MAX);
    const int bits = 8 * (int)gn_dtype_size(t), sign = t == GN_I8 || t == GN_I16;
    const int32_t least = sign ? -(1 << (bits - 1)) : 0, most = (1 << (bits - sign)) - 1;
    *konst = bits == 8 ? (*konst & 255) * 0x01010101u : (*konst & 65535) * 0x00010001u;
    return v == 0 || v == 1 ? GNI_NARROW_TRUTH : v >= least && v <= most ? GNI_NARROW_EXACT : GNI_NARROW_LOW;
}

// What the op makes of operands that hold x, y and z; -1 where it needs more than they have.
static int gni_narrow_op(uint32_t *op, gn_dtype t, int x, int y, int z) {
    const int both = GNI_MIN(x, y);
    switch (*op) {
    case GNI_OP_WRAP_U8: return t == GN_U8 ? GNI_NARROW_EXACT : -1;
    case GNI_OP_WRAP_I8: return t == GN_I8 ? GNI_NARROW_EXACT : -1;
    case GNI_OP_WRAP_U16: return t == GN_U16 ? GNI_NARROW_EXACT : -1;
    case GNI_OP_WRAP_I16: return t == GN_I16 ? GNI_NARROW_EXACT : -1;
    case GNI_OP_NEG:
    case GNI_OP_SQUARE:
    case GNI_OP_ADD:
    case GNI_OP_SUB:
    case GNI_OP_MUL: return GNI_NARROW_LOW;
    case GNI_OP_ABS: return x == GNI_NARROW_LOW ? -1 : t == GN_U8 || t == GN_U16 ? x : GNI_NARROW_LOW;
    case GNI_OP_AND:
    case GNI_OP_OR:
    case GNI_OP_XOR:
        // Truth values from outside need not be 0 and 1.
        if (both == GNI_NARROW_TRUTH) *op += (uint32_t)GNI_OP_LOGICAL_AND - (uint32_t)GNI_OP_AND;
        return both;
    case GNI_OP_FLOOR_DIV:
    case GNI_OP_MIN:
    case GNI_OP_MOD:
    case GNI_OP_MAX: return both == GNI_NARROW_LOW ? -1 : both;
    case GNI_OP_WHERE: return x == GNI_NARROW_LOW ? -1 : GNI_MIN(y, z);
    case GNI_OP_LOGICAL_NOT: return x == GNI_NARROW_LOW ? -1 : GNI_NARROW_TRUTH;
    default: return *op < GNI_OP_EQ || *op > GNI_OP_LOGICAL_XOR || both == GNI_NARROW_LOW ? -1 : GNI_NARROW_TRUTH;
    }
}

// The same program for registers of as many bits as the items have, without the instructions that only cut results off.
// Returns their dtype, or GN_DTYPE_COUNT where it needs what such registers lack.
static gn_dtype gni_narrow_program(gni_program *q, const gni_program *p) {
    const gn_dtype t = gni_narrow_dtype(p);
    int has[GNI_MAX_REGS], reg[GNI_MAX_REGS], first = p->n_in + p->n_const;
    if (t == GN_DTYPE_COUNT) return t;
    *q = *p;
    q->n_insn = 0;
    for (int k = 0; k < p->n_in; k++) has[k] = p->in_dtype[k] == GN_BOOL ? GNI_NARROW_TRUTH : GNI_NARROW_EXACT;
    for (int c = 0; c < p->n_const; c++) has[p->n_in + c] = gni_narrow_const(&q->konst[c], t);
    for (int r = 0; r < first; r++) reg[r] = r;
    for (int i = 0; i < p->n_insn; i++) {
        const uint32_t insn = p->insn[i], code = GNI_INSN_CODE(insn);
        uint32_t op = code / 3u, a = GNI_INSN_A(insn), b = GNI_INSN_B(insn), c = GNI_INSN_C(insn);
        has[first + i] = GNI_NARROW_TRUTH;
        reg[first + i] = reg[a];
        if (op == GNI_OP_TO_BOOL && has[a] == GNI_NARROW_TRUTH && a >= (uint32_t)first) continue;
        if (op == GNI_OP_TO_BOOL) op = GNI_OP_LOGICAL_OR, b = a;
        bool other = code % 3u == GNI_F || (code % 3u == GNI_U && (t == GN_I8 || t == GN_I16)); // than of the items
        if (op == GNI_OP_FLOOR_DIV || op == GNI_OP_MOD) // not by one number, or by -1, 0 or 1
            other = b - (uint32_t)p->n_in >= (uint32_t)p->n_const || (uint32_t)p->konst[b - (uint32_t)p->n_in] + 1u < 3u;
        const int makes = other ? -1 : gni_narrow_op(&op, t, has[a], has[b], has[c]);
        if (makes < 0) return GN_DTYPE_COUNT;
        has[first + i] = makes;
        if (op == GNI_OP_MOD) { // a - a / b b, by way of an instruction of the new program that stands for a register
            if (q->n_insn + 3 > GNI_MAX_INSNS) return GN_DTYPE_COUNT;
            c = (uint32_t)(first + q->n_insn);
            q->insn[q->n_insn++] = GNI_INSN(GNI_OP_FLOOR_DIV, GNI_I, (uint32_t)reg[a], b, b);
            q->insn[q->n_insn++] = GNI_INSN(GNI_OP_MUL, GNI_I, c, b, b);
            b = (uint32_t)(first + i), op = GNI_OP_SUB;
            reg[b] = (int)c + 1;
            c = a;
        }
        if (gni_narrow_kernel(op * 3u, t) == NULL) {
            if (op != GNI_OP_GT && op != GNI_OP_GE) continue; // nothing to do
            op -= (uint32_t)GNI_OP_GT - (uint32_t)GNI_OP_LT;
            const uint32_t x = a;
            a = b, b = x;
        }
        q->insn[q->n_insn] = GNI_INSN(op, GNI_I, (uint32_t)reg[a], (uint32_t)reg[b], (uint32_t)reg[c]);
        reg[first + i] = first + q->n_insn++;
    }
    for (int o = 0; o < p->n_out; o++) {
        if (p->out_dtype[o] == GN_BOOL && has[p->out_reg[o]] != GNI_NARROW_TRUTH) return GN_DTYPE_COUNT;
        q->out_reg[o] = reg[p->out_reg[o]];
    }
    return t;
}

#endif
