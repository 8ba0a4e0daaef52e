// >>fft_micro
// Butterflies of the FFT, once per instruction set and precision (GNI_FT_T, GNI_FT_W lanes), with room
// `fft passes`. Both are compiled by room `fft cpu`, which also holds the types.
//
// A row is one complex vector: W real parts, then W imaginary parts. W transforms run side by side,
// one per lane; between the passes nothing is shuffled. Stockham's order: a pass of radix r reads rows
// k + s (j + m q), q < r, and writes rows k + s (r j + q), turned by exp(-2 pi i j q / (r m)).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#include "../simd/simd.h"
#define GNI_FT_T float
#define GNI_FT_WIDE 0
#define GNI_FT_I int32_t
#define GNI_FT_W GNI_VW
#define GNI_FT(name) GNI_FN(name##_f32)
#define GNI_FT_MAX_RADIX 8
#define GNI_FT_FMA(a, b, c) ((a) * (b) + (c))
#define GNI_FT_FNMA(a, b, c) ((c) - (a) * (b))
#endif

#if GNI_FT_W == 1
typedef GNI_FT_T GNI_FT(gni_ft_v);
#else
typedef GNI_FT_T GNI_FT(gni_ft_v) __attribute__((vector_size(GNI_FT_W * sizeof(GNI_FT_T))));
typedef GNI_FT_I GNI_FT(gni_ft_vi) __attribute__((vector_size(GNI_FT_W * sizeof(GNI_FT_T))));
#endif
typedef struct GNI_FT(gni_ft_c) {
    GNI_FT(gni_ft_v) r, i;
} GNI_FT(gni_ft_c);

#define gni_fv GNI_FT(gni_ft_v)
#define gni_fvi GNI_FT(gni_ft_vi)
#define gni_fc GNI_FT(gni_ft_c)
#define gni_fload GNI_FT(gni_ft_load)
#define gni_fstore GNI_FT(gni_ft_store)
#define gni_fset GNI_FT(gni_ft_set)
#define gni_ffma GNI_FT(gni_ft_fma)
#define gni_ffnma GNI_FT(gni_ft_fnma)
#define gni_fadd GNI_FT(gni_ft_add)
#define gni_fsub GNI_FT(gni_ft_sub)
#define gni_fmul GNI_FT(gni_ft_mul)
#define gni_fscale GNI_FT(gni_ft_scale)
#define gni_fmadd GNI_FT(gni_ft_madd)
#define gni_fpair GNI_FT(gni_ft_pair)
#define gni_fspair GNI_FT(gni_ft_spair)
#define gni_fturn GNI_FT(gni_ft_turn)
#define gni_fturn_each GNI_FT(gni_ft_turn_each)
#define gni_ftwiddle GNI_FT(gni_ft_twiddle)
#define gni_fcmul GNI_FT(gni_ft_cmul)
#define gni_fbf2 GNI_FT(gni_ft_bf2)
#define gni_fbf3 GNI_FT(gni_ft_bf3)
#define gni_fbf4 GNI_FT(gni_ft_bf4)
#define gni_fbf5 GNI_FT(gni_ft_bf5)
#define gni_fbf7 GNI_FT(gni_ft_bf7)
#define gni_fbf8 GNI_FT(gni_ft_bf8)
#define gni_fbf9 GNI_FT(gni_ft_bf9)
#define gni_fbf11 GNI_FT(gni_ft_bf11)
#define gni_fbf13 GNI_FT(gni_ft_bf13)
#define gni_fbf16 GNI_FT(gni_ft_bf16)
#define gni_ffirst4 GNI_FT(gni_ft_stage4)
#define gni_fthen8(k) GNI_FT(gni_ft_then8_##k)
#define gni_fthen16(k) GNI_FT(gni_ft_then16_##k)
#define gni_feven GNI_FT(gni_ft_even)
#define gni_fodd GNI_FT(gni_ft_odd)
#define gni_flow GNI_FT(gni_ft_low)
#define gni_fhigh GNI_FT(gni_ft_high)
#define gni_freverse GNI_FT(gni_ft_reverse)
#define gni_frow_get GNI_FT(gni_ft_row_get)
#define gni_frow_put GNI_FT(gni_ft_row_put)
#define gni_fget GNI_FT(gni_ft_get)
#define gni_fput GNI_FT(gni_ft_put)
#define gni_ftranspose GNI_FT(gni_ft_transpose)

// x86 without AVX2 gets what is needed, not what is fast. So do transforms of float64 in a page, where what is downloaded
// counts, and those of float32 where it is compiled for size.
#if (defined(GNI_X86) && defined(GNI_PASS_BASE)) || (defined(GNI_WASM) && (GNI_FT_WIDE || defined(__OPTIMIZE_SIZE__)))
#define GNI_FT_SLIM 1
#else
#define GNI_FT_SLIM 0
#endif
// Up to this length, many transforms are done without passes; 0 if there are none of the forms that live in registers.
#if GNI_FT_SLIM || GNI_FT_W == 1
#define GNI_FT_TINY_MOST 0
#elif GNI_FT_W == 16
#define GNI_FT_TINY_MOST 4 // shorter vectors do the others
#else
#define GNI_FT_TINY_MOST GNI_FT_MAX_TINY
#endif

// X(q) for q = 0 to n - 1.
#define GNI_FT_E2(X) X(0) X(1)
#define GNI_FT_E3(X) GNI_FT_E2(X) X(2)
#define GNI_FT_E4(X) GNI_FT_E3(X) X(3)
#define GNI_FT_E5(X) GNI_FT_E4(X) X(4)
#define GNI_FT_E6(X) GNI_FT_E5(X) X(5)
#define GNI_FT_E7(X) GNI_FT_E6(X) X(6)
#define GNI_FT_E8(X) GNI_FT_E7(X) X(7)
#define GNI_FT_E9(X) GNI_FT_E8(X) X(8)
#define GNI_FT_E10(X) GNI_FT_E9(X) X(9)
#define GNI_FT_E11(X) GNI_FT_E10(X) X(10)
#define GNI_FT_E12(X) GNI_FT_E11(X) X(11)
#define GNI_FT_E13(X) GNI_FT_E12(X) X(12)
#define GNI_FT_E14(X) GNI_FT_E13(X) X(13)
#define GNI_FT_E15(X) GNI_FT_E14(X) X(14)
#define GNI_FT_E16(X) GNI_FT_E15(X) X(15)

GNI_FT_INLINE gni_fv gni_fload(const GNI_FT_T *p) {
    gni_fv r;
    memcpy(&r, p, sizeof r);
    return r;
}
GNI_FT_INLINE void gni_fstore(GNI_FT_T *p, gni_fv v) { memcpy(p, &v, sizeof v); }

#if GNI_FT_W == 1
GNI_FT_INLINE gni_fv gni_fset(GNI_FT_T s) { return s; }
#else
GNI_FT_INLINE gni_fv gni_fset(GNI_FT_T s) {
#if GNI_FT_W == 2
    gni_fv r = {s, s};
#elif GNI_FT_W == 4
    gni_fv r = {s, s, s, s};
#elif GNI_FT_W == 8
    gni_fv r = {s, s, s, s, s, s, s, s};
#else
    gni_fv r = {s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
#endif
    return r;
}
#endif

// a b + c and c - a b, rounded once where the hardware can.
GNI_FT_INLINE gni_fv gni_ffma(gni_fv a, gni_fv b, gni_fv c) { return GNI_FT_FMA(a, b, c); }
GNI_FT_INLINE gni_fv gni_ffnma(gni_fv a, gni_fv b, gni_fv c) { return GNI_FT_FNMA(a, b, c); }

// ---- complex vectors

GNI_FT_INLINE void gni_frow_get(gni_fc *x, const GNI_FT_T *p) {
    x->r = gni_fload(p);
    x->i = gni_fload(p + GNI_FT_W);
}
GNI_FT_INLINE void gni_frow_put(GNI_FT_T *p, const gni_fc *x) {
    gni_fstore(p, x->r);
    gni_fstore(p + GNI_FT_W, x->i);
}
GNI_FT_INLINE gni_fc gni_fadd(gni_fc a, gni_fc b) {
    a.r = a.r + b.r;
    a.i = a.i + b.i;
    return a;
}
GNI_FT_INLINE gni_fc gni_fsub(gni_fc a, gni_fc b) {
    a.r = a.r - b.r;
    a.i = a.i - b.i;
    return a;
}
GNI_FT_INLINE gni_fc gni_fmul(double s, gni_fc a) {
    a.r = a.r * gni_fset((GNI_FT_T)s);
    a.i = a.i * gni_fset((GNI_FT_T)s);
    return a;
}
GNI_FT_INLINE void gni_fscale(gni_fc *x, GNI_FT_T s) {
    x->r = x->r * gni_fset(s);
    x->i = x->i * gni_fset(s);
}
GNI_FT_INLINE gni_fc gni_fmadd(double s, gni_fc a, gni_fc b) { // s a + b
    b.r = gni_ffma(gni_fset((GNI_FT_T)s), a.r, b.r);
    b.i = gni_ffma(gni_fset((GNI_FT_T)s), a.i, b.i);
    return b;
}
// x = a - i b, y = a + i b
GNI_FT_INLINE void gni_fpair(gni_fc a, gni_fc b, gni_fc *x, gni_fc *y) {
    x->r = a.r + b.i;
    x->i = a.i - b.r;
    y->r = a.r - b.i;
    y->i = a.i + b.r;
}
// The same of s b, which is not rounded by itself where the hardware can.
GNI_FT_INLINE void gni_fspair(gni_fc a, double s, gni_fc b, gni_fc *x, gni_fc *y) {
    const gni_fv f = gni_fset((GNI_FT_T)s);
    x->r = gni_ffma(f, b.i, a.r);
    x->i = gni_ffnma(f, b.r, a.i);
    y->r = gni_ffnma(f, b.i, a.r);
    y->i = gni_ffma(f, b.r, a.i);
}
GNI_FT_INLINE gni_fc gni_fcmul(gni_fc a, gni_fv wr, gni_fv wi) {
    gni_fc y;
    y.r = gni_ffnma(a.i, wi, a.r * wr);
    y.i = gni_ffma(a.i, wr, a.r * wi);
    return y;
}
GNI_FT_INLINE void gni_fturn(gni_fc *x, const GNI_FT_T *w) { // all lanes by one number
    *x = gni_fcmul(*x, gni_fset(w[0]), gni_fset(w[1]));
}
GNI_FT_INLINE void gni_fturn_each(gni_fc *x, const GNI_FT_T *w) { // each lane by its own
    gni_fc v;
    gni_frow_get(&v, w);
    *x = gni_fcmul(*x, v.r, v.i);
}
GNI_FT_INLINE gni_fc gni_ftwiddle(gni_fc a, double c, double s) { // a (c - i s)
    gni_fc y;
    y.r = gni_ffma(gni_fset((GNI_FT_T)s), a.i, gni_fset((GNI_FT_T)c) * a.r);
    y.i = gni_ffnma(gni_fset((GNI_FT_T)s), a.r, gni_fset((GNI_FT_T)c) * a.i);
    return y;
}

// ---- butterflies: x becomes its DFT. Equal inputs give exact zeros.

GNI_FT_INLINE void gni_fbf2(gni_fc *x) {
    gni_fc a = x[0];
    x[0] = gni_fadd(a, x[1]);
    x[1] = gni_fsub(a, x[1]);
}

GNI_FT_INLINE void gni_fbf3(gni_fc *x) {
    gni_fc t = gni_fadd(x[1], x[2]), d = gni_fsub(x[1], x[2]);
    gni_fc a = gni_fmadd(-0.5, t, x[0]);
    x[0] = gni_fadd(x[0], t);
    gni_fspair(a, GNI_FT_S3, d, &x[1], &x[2]);
}

GNI_FT_INLINE void gni_fbf4(gni_fc *x) {
    gni_fc a = gni_fadd(x[0], x[2]), b = gni_fsub(x[0], x[2]);
    gni_fc c = gni_fadd(x[1], x[3]), d = gni_fsub(x[1], x[3]);
    x[0] = gni_fadd(a, c);
    x[2] = gni_fsub(a, c);
    gni_fpair(b, d, &x[1], &x[3]);
}

GNI_FT_INLINE void gni_fbf5(gni_fc *x) {
    gni_fc t1 = gni_fadd(x[1], x[4]), d1 = gni_fsub(x[1], x[4]);
    gni_fc t2 = gni_fadd(x[2], x[3]), d2 = gni_fsub(x[2], x[3]);
    gni_fc t = gni_fadd(t1, t2), u = gni_fsub(t1, t2), m = gni_fmadd(-0.25, t, x[0]);
    gni_fc b1 = gni_fmadd(GNI_FT_S5_2, d2, gni_fmul(GNI_FT_S5_1, d1));
    gni_fc b2 = gni_fmadd(-GNI_FT_S5_1, d2, gni_fmul(GNI_FT_S5_2, d1));
    x[0] = gni_fadd(x[0], t);
    gni_fpair(gni_fmadd(GNI_FT_SQRT5_4, u, m), b1, &x[1], &x[4]);
    gni_fpair(gni_fmadd(-GNI_FT_SQRT5_4, u, m), b2, &x[2], &x[3]);
}

// e + h (r, i) and e - h (r, i): the odd half of an 8-point butterfly, turned by an eighth.
#define GNI_FT_EIGHTH(e, re, im, y, z)                                                             \
    {                                                                                              \
        gni_fv p = re, q = im, h = gni_fset((GNI_FT_T)GNI_FT_SQRT1_2);                             \
        y.r = gni_ffma(h, p, e.r);                                                                 \
        y.i = gni_ffma(h, q, e.i);                                                                 \
        z.r = gni_ffnma(h, p, e.r);                                                                \
        z.i = gni_ffnma(h, q, e.i);                                                                \
    }

// Butterflies of 8 and 16 in two stages, so that a pass need not hold all of its numbers at once. First
// radix 4 over every second or fourth number from x[q] on, in place.
GNI_FT_INLINE void gni_ffirst4(gni_fc *x, const int q, const int step) {
    gni_fc t[4];
    t[0] = x[q], t[1] = x[q + step], t[2] = x[q + 2 * step], t[3] = x[q + 3 * step];
    gni_fbf4(t);
    x[q] = t[0], x[q + step] = t[1], x[q + 2 * step] = t[2], x[q + 3 * step] = t[3];
}

// Then what makes y[k] and y[k + 4], in a function for each k: compilers would read all four in every place.
GNI_FT_INLINE void GNI_FT(gni_ft_then8_0)(const gni_fc *x, gni_fc *y) {
    y[0] = gni_fadd(x[0], x[1]);
    y[4] = gni_fsub(x[0], x[1]);
}
GNI_FT_INLINE void GNI_FT(gni_ft_then8_1)(const gni_fc *x, gni_fc *y) {
    const gni_fc e = x[2], o = x[3];
    GNI_FT_EIGHTH(e, o.r + o.i, o.i - o.r, y[1], y[5]);
}
GNI_FT_INLINE void GNI_FT(gni_ft_then8_2)(const gni_fc *x, gni_fc *y) {
    gni_fpair(x[4], x[5], &y[2], &y[6]);
}
GNI_FT_INLINE void GNI_FT(gni_ft_then8_3)(const gni_fc *x, gni_fc *y) {
    const gni_fc e = x[6], o = x[7];
    GNI_FT_EIGHTH(e, o.i - o.r, -o.i - o.r, y[3], y[7]);
}

GNI_FT_INLINE void gni_fbf8(gni_fc *x) {
    gni_fc y[8];
    gni_ffirst4(x, 0, 2);
    gni_ffirst4(x, 1, 2);
    gni_fthen8(0)(x, y);
    gni_fthen8(1)(x, y);
    gni_fthen8(2)(x, y);
    gni_fthen8(3)(x, y);
    x[0] = y[0], x[1] = y[1], x[2] = y[2], x[3] = y[3];
    x[4] = y[4], x[5] = y[5], x[6] = y[6], x[7] = y[7];
}

GNI_FT_INLINE void gni_fbf9(gni_fc *x) {
    gni_fc a[3], b[3], c[3];
    a[0] = x[0], a[1] = x[3], a[2] = x[6];
    b[0] = x[1], b[1] = x[4], b[2] = x[7];
    c[0] = x[2], c[1] = x[5], c[2] = x[8];
    gni_fbf3(a);
    gni_fbf3(b);
    gni_fbf3(c);
    b[1] = gni_ftwiddle(b[1], GNI_FT_C9_1, GNI_FT_S9_1);
    c[1] = gni_ftwiddle(c[1], GNI_FT_C9_2, GNI_FT_S9_2);
    b[2] = gni_ftwiddle(b[2], GNI_FT_C9_2, GNI_FT_S9_2);
    c[2] = gni_ftwiddle(c[2], GNI_FT_C9_4, GNI_FT_S9_4);
    gni_fc t[3];
    t[0] = a[0], t[1] = b[0], t[2] = c[0];
    gni_fbf3(t);
    x[0] = t[0], x[3] = t[1], x[6] = t[2];
    t[0] = a[1], t[1] = b[1], t[2] = c[1];
    gni_fbf3(t);
    x[1] = t[0], x[4] = t[1], x[7] = t[2];
    t[0] = a[2], t[1] = b[2], t[2] = c[2];
    gni_fbf3(t);
    x[2] = t[0], x[5] = t[1], x[8] = t[2];
}

// The same of 16: y[k], y[k + 4], y[k + 8] and y[k + 12].
#define GNI_FT_THEN16(k)                                                                           \
    gni_fbf4(t);                                                                                   \
    y[k] = t[0], y[k + 4] = t[1], y[k + 8] = t[2], y[k + 12] = t[3];
GNI_FT_INLINE void GNI_FT(gni_ft_then16_0)(const gni_fc *x, gni_fc *y) {
    gni_fc t[4];
    t[0] = x[0], t[1] = x[1], t[2] = x[2], t[3] = x[3];
    GNI_FT_THEN16(0)
}
GNI_FT_INLINE void GNI_FT(gni_ft_then16_1)(const gni_fc *x, gni_fc *y) {
    gni_fc t[4];
    t[0] = x[4];
    t[1] = gni_ftwiddle(x[5], GNI_FT_C16, GNI_FT_S16);
    t[2] = gni_ftwiddle(x[6], GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t[3] = gni_ftwiddle(x[7], GNI_FT_S16, GNI_FT_C16);
    GNI_FT_THEN16(1)
}
GNI_FT_INLINE void GNI_FT(gni_ft_then16_2)(const gni_fc *x, gni_fc *y) {
    gni_fc p, q, t1, t3, d;
    gni_fpair(x[8], x[10], &p, &q); // a quarter turn of x[10] is in the signs
    t1 = gni_ftwiddle(x[9], GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t3 = gni_ftwiddle(x[11], -GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    d = gni_fsub(t1, t3), t1 = gni_fadd(t1, t3);
    y[2] = gni_fadd(p, t1), y[10] = gni_fsub(p, t1);
    gni_fpair(q, d, &y[6], &y[14]);
}
GNI_FT_INLINE void GNI_FT(gni_ft_then16_3)(const gni_fc *x, gni_fc *y) {
    gni_fc t[4];
    t[0] = x[12];
    t[1] = gni_ftwiddle(x[13], GNI_FT_S16, GNI_FT_C16);
    t[2] = gni_ftwiddle(x[14], -GNI_FT_SQRT1_2, GNI_FT_SQRT1_2);
    t[3] = gni_ftwiddle(x[15], -GNI_FT_C16, -GNI_FT_S16);
    GNI_FT_THEN16(3)
}

GNI_FT_INLINE void gni_fbf16(gni_fc *x) {
    gni_fc y[16];
    for (int q = 0; q < 4; q++) gni_ffirst4(x, q, 4);
    gni_fthen16(0)(x, y);
    gni_fthen16(1)(x, y);
    gni_fthen16(2)(x, y);
    gni_fthen16(3)(x, y);
    for (int q = 0; q < 16; q++) x[q] = y[q];
}

// Odd primes n up to 13: numbers k and n - k, of sums t and differences d of numbers that lie opposite each other. All
// indices are constants that the compiler's first look folds.
#define GNI_FT_PRIME_TERM(q)                                                                       \
    if (q > 0 && q < n / 2) {                                                                      \
        if (q < n / 2 - 1) a = gni_fmadd(gni_ft_cos(n, k * (q + 1) % n), t[q], a);                 \
        b = gni_fmadd(gni_ft_sin(n, k * (q + 1) % n), d[q], b);                                    \
    }
GNI_FT_INLINE void GNI_FT(gni_ft_prime_pair)(gni_fc *x, const int n, const int k, gni_fc base, const gni_fc *t,
                                             const gni_fc *d) {
    gni_fc a = gni_fmadd(gni_ft_cos(n, k), t[0], base), b = gni_fmul(gni_ft_sin(n, k), d[0]);
    GNI_FT_E6(GNI_FT_PRIME_TERM)
    gni_fpair(a, b, &x[k], &x[n - k]);
}
#define GNI_FT_PRIME_ENDS(q)                                                                       \
    if (q < h) {                                                                                   \
        t[q] = gni_fadd(x[q + 1], x[n - 1 - q]);                                                   \
        d[q] = gni_fsub(x[q + 1], x[n - 1 - q]);                                                   \
        sum = gni_fadd(sum, t[q]);                                                                 \
    }
// The cosines of a frequency add up to -1/2: the last one is left out, so that equal inputs cancel.
#define GNI_FT_PRIME_LESS(q)                                                                       \
    if (q < h - 1) t[q] = gni_fsub(t[q], t[h - 1]);
#define GNI_FT_PRIME_PAIR(q)                                                                       \
    if (q < h) GNI_FT(gni_ft_prime_pair)(x, n, q + 1, base, t, d);
GNI_FT_INLINE void GNI_FT(gni_ft_prime)(gni_fc *x, const int n) {
    const int h = n / 2;
    gni_fc t[6], d[6], sum = x[0];
    GNI_FT_E6(GNI_FT_PRIME_ENDS)
    const gni_fc base = gni_fmadd(-0.5, t[h - 1], x[0]);
    GNI_FT_E6(GNI_FT_PRIME_LESS)
    x[0] = sum;
    GNI_FT_E6(GNI_FT_PRIME_PAIR)
}
GNI_FT_INLINE void gni_fbf7(gni_fc *x) { GNI_FT(gni_ft_prime)(x, 7); }
GNI_FT_INLINE void gni_fbf11(gni_fc *x) { GNI_FT(gni_ft_prime)(x, 11); }
GNI_FT_INLINE void gni_fbf13(gni_fc *x) { GNI_FT(gni_ft_prime)(x, 13); }

// ---- shuffles

// The number that lane l holds of W that were read from memory, and register l of W of those when they are
// transposed.
#if GNI_FT_WIDE
#define GNI_FT_P(l) ((l) % 2 * (GNI_FT_W / 2) + (l) / 2)
#else
#define GNI_FT_P(l) ((l) % 4 / 2 * (GNI_FT_W / 2) + (l) / 4 * 2 + (l) % 2)
#endif

#if GNI_FT_W > 1
#if defined(__clang__)
#define GNI_FT_SHUFFLE(name, ...)                                                                  \
    GNI_FT_INLINE gni_fv GNI_FT(name)(gni_fv a, gni_fv b) {                                        \
        return __builtin_shufflevector(a, b, __VA_ARGS__);                                         \
    }
#else
#define GNI_FT_SHUFFLE(name, ...)                                                                  \
    GNI_FT_INLINE gni_fv GNI_FT(name)(gni_fv a, gni_fv b) {                                        \
        const gni_fvi mask = {__VA_ARGS__};                                                        \
        return __builtin_shuffle(a, b, mask);                                                      \
    }
#endif

// gni_ft_even and odd take the parts of numbers apart, low and high put them together again, both inside of
// 16 bytes only: lane l holds number GNI_FT_P(l).
// gni_ft_t<b>l and h: blocks of b lanes; even blocks of a and b side by side, and odd ones.
#if GNI_FT_W == 2
GNI_FT_SHUFFLE(gni_ft_even, 0, 2)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3)
GNI_FT_SHUFFLE(gni_ft_low, 0, 2)
GNI_FT_SHUFFLE(gni_ft_high, 1, 3)
GNI_FT_SHUFFLE(gni_ft_reverse, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 2)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 3)
#elif GNI_FT_W == 4
#if GNI_FT_WIDE
GNI_FT_SHUFFLE(gni_ft_even, 0, 4, 2, 6)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 5, 3, 7)
GNI_FT_SHUFFLE(gni_ft_low, 0, 4, 2, 6)
GNI_FT_SHUFFLE(gni_ft_high, 1, 5, 3, 7)
#else
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 4, 6)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 5, 7)
GNI_FT_SHUFFLE(gni_ft_low, 0, 4, 1, 5)
GNI_FT_SHUFFLE(gni_ft_high, 2, 6, 3, 7)
#endif
GNI_FT_SHUFFLE(gni_ft_reverse, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 4, 2, 6)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 5, 3, 7)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 4, 5)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 6, 7)
GNI_FT_SHUFFLE(gni_ft_u1l, 0, 4, 1, 5)
GNI_FT_SHUFFLE(gni_ft_u1h, 2, 6, 3, 7)
#elif GNI_FT_W == 8
#if GNI_FT_WIDE
GNI_FT_SHUFFLE(gni_ft_even, 0, 8, 2, 10, 4, 12, 6, 14)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 9, 3, 11, 5, 13, 7, 15)
GNI_FT_SHUFFLE(gni_ft_low, 0, 8, 2, 10, 4, 12, 6, 14)
GNI_FT_SHUFFLE(gni_ft_high, 1, 9, 3, 11, 5, 13, 7, 15)
#else
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 8, 10, 4, 6, 12, 14)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 9, 11, 5, 7, 13, 15)
GNI_FT_SHUFFLE(gni_ft_low, 0, 8, 1, 9, 4, 12, 5, 13)
GNI_FT_SHUFFLE(gni_ft_high, 2, 10, 3, 11, 6, 14, 7, 15)
#endif
GNI_FT_SHUFFLE(gni_ft_reverse, 7, 6, 5, 4, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 8, 2, 10, 4, 12, 6, 14)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 9, 3, 11, 5, 13, 7, 15)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 8, 9, 4, 5, 12, 13)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 10, 11, 6, 7, 14, 15)
GNI_FT_SHUFFLE(gni_ft_t4l, 0, 1, 2, 3, 8, 9, 10, 11)
GNI_FT_SHUFFLE(gni_ft_t4h, 4, 5, 6, 7, 12, 13, 14, 15)
GNI_FT_SHUFFLE(gni_ft_u1l, 0, 8, 1, 9, 4, 12, 5, 13)
GNI_FT_SHUFFLE(gni_ft_u1h, 2, 10, 3, 11, 6, 14, 7, 15)
#else
GNI_FT_SHUFFLE(gni_ft_even, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30)
GNI_FT_SHUFFLE(gni_ft_odd, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31)
GNI_FT_SHUFFLE(gni_ft_low, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
GNI_FT_SHUFFLE(gni_ft_high, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
GNI_FT_SHUFFLE(gni_ft_reverse, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
GNI_FT_SHUFFLE(gni_ft_t1l, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30)
GNI_FT_SHUFFLE(gni_ft_t1h, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31)
GNI_FT_SHUFFLE(gni_ft_t2l, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
GNI_FT_SHUFFLE(gni_ft_t2h, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
GNI_FT_SHUFFLE(gni_ft_t4l, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27)
GNI_FT_SHUFFLE(gni_ft_t4h, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31)
GNI_FT_SHUFFLE(gni_ft_t8l, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23)
GNI_FT_SHUFFLE(gni_ft_t8h, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31)
GNI_FT_SHUFFLE(gni_ft_u1l, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
GNI_FT_SHUFFLE(gni_ft_u1h, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
GNI_FT_SHUFFLE(gni_ft_q4l, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
GNI_FT_SHUFFLE(gni_ft_q4h, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#endif
#undef GNI_FT_SHUFFLE
#endif

// W complex numbers as they lie in memory; `swap` exchanges the parts, which turns a transform into
// its inverse when it is done on the way in and on the way out.
GNI_FT_INLINE void gni_fget(gni_fc *x, const GNI_FT_T *p, bool swap) {
#if GNI_FT_W == 1
    gni_fv e = p[0], o = p[1];
#else
    gni_fv a = gni_fload(p), b = gni_fload(p + GNI_FT_W), e = gni_feven(a, b), o = gni_fodd(a, b);
#endif
    x->r = swap ? o : e;
    x->i = swap ? e : o;
}
GNI_FT_INLINE void gni_fput(GNI_FT_T *p, const gni_fc *x, bool swap) {
    gni_fv e = swap ? x->i : x->r, o = swap ? x->r : x->i;
#if GNI_FT_W == 1
    p[0] = e;
    p[1] = o;
#else
    gni_fstore(p, gni_flow(e, o));
    gni_fstore(p + GNI_FT_W, gni_fhigh(e, o));
#endif
}

// Blocks of b lanes of two vectors change places.
#define GNI_FT_SWAP(b, p, q)                                                                       \
    {                                                                                              \
        gni_fc l = x[p], h = x[q];                                                                 \
        x[p].r = GNI_FT(gni_ft_t##b##l)(l.r, h.r);                                                 \
        x[q].r = GNI_FT(gni_ft_t##b##h)(l.r, h.r);                                                 \
        x[p].i = GNI_FT(gni_ft_t##b##l)(l.i, h.i);                                                 \
        x[q].i = GNI_FT(gni_ft_t##b##h)(l.i, h.i);                                                 \
    }

// Number l of x[q] and number q of x[l] change places: blocks first, then what is in them.
#define GNI_FT_STEP(k, p, q)                                                                       \
    {                                                                                              \
        gni_fc l = x[GNI_FT_P(p)], h = x[GNI_FT_P(q)];                                             \
        x[GNI_FT_P(p)].r = GNI_FT(gni_ft_##k##l)(l.r, h.r);                                        \
        x[GNI_FT_P(q)].r = GNI_FT(gni_ft_##k##h)(l.r, h.r);                                        \
        x[GNI_FT_P(p)].i = GNI_FT(gni_ft_##k##l)(l.i, h.i);                                        \
        x[GNI_FT_P(q)].i = GNI_FT(gni_ft_##k##h)(l.i, h.i);                                        \
    }
#define GNI_FT_T2(o) GNI_FT_STEP(t1, o, o + 1)
#define GNI_FT_T4(o)                                                                               \
    GNI_FT_STEP(t2, o, o + 2) GNI_FT_STEP(t2, o + 1, o + 3) GNI_FT_T2(o) GNI_FT_T2(o + 2)
#define GNI_FT_T8(o)                                                                               \
    GNI_FT_STEP(t4, o, o + 4)                                                                      \
    GNI_FT_STEP(t4, o + 1, o + 5)                                                                  \
    GNI_FT_STEP(t4, o + 2, o + 6) GNI_FT_STEP(t4, o + 3, o + 7) GNI_FT_T4(o) GNI_FT_T4(o + 4)

// The same by shuffles inside of 16 bytes and then of those, which need no table of indices.
#define GNI_FT_QUAD(o)                                                                             \
    GNI_FT_STEP(u1, o, o + 1)                                                                      \
    GNI_FT_STEP(u1, o + 2, o + 3)                                                                  \
    GNI_FT_STEP(t2, o, o + 2)                                                                      \
    GNI_FT_STEP(t2, o + 1, o + 3) {                                                                \
        gni_fc l = x[GNI_FT_P(o + 1)];                                                             \
        x[GNI_FT_P(o + 1)] = x[GNI_FT_P(o + 2)];                                                   \
        x[GNI_FT_P(o + 2)] = l;                                                                    \
    }
#define GNI_FT_CROSS(o)                                                                            \
    GNI_FT_STEP(q4, o, o + 4)                                                                      \
    GNI_FT_STEP(q4, o + 8, o + 12)                                                                 \
    GNI_FT_STEP(q4, o, o + 8)                                                                      \
    GNI_FT_STEP(q4, o + 4, o + 12)

GNI_FT_INLINE void gni_ftranspose(gni_fc *x) {
#if GNI_FT_W == 2
    GNI_FT_T2(0)
#elif GNI_FT_W == 4 && !GNI_FT_WIDE
    GNI_FT_QUAD(0)
#elif GNI_FT_W == 4
    GNI_FT_T4(0)
#elif GNI_FT_W == 8 && !GNI_FT_WIDE
    GNI_FT_QUAD(0)
    GNI_FT_QUAD(4)
    GNI_FT_STEP(t4, 0, 4)
    GNI_FT_STEP(t4, 1, 5)
    GNI_FT_STEP(t4, 2, 6)
    GNI_FT_STEP(t4, 3, 7)
#elif GNI_FT_W == 8
    GNI_FT_T8(0)
#elif GNI_FT_W == 16
    GNI_FT_QUAD(0)
    GNI_FT_QUAD(4)
    GNI_FT_QUAD(8)
    GNI_FT_QUAD(12)
    GNI_FT_CROSS(0)
    GNI_FT_CROSS(1)
    GNI_FT_CROSS(2)
    GNI_FT_CROSS(3)
#else
    GNI_UNUSED(x);
#endif
}
