// >>fft_passes
// Passes of the FFT over rows of vectors, and what is made of them: transforms of columns, of batches and of
// short lengths, the twist, the fold. Compiled with room `fft micro`; from outside: the table GNI_FT(gni_ft_isa).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../simd/fft_micro.h"
#endif

// A butterfly of x, in place or into y: IN(q) makes x[q], OUT(q) takes y[q]. The wide ones alternate the two with their
// arithmetic, as all numbers at once would not fit the registers.
#define GNI_FT_DO2(IN, OUT)                                                                        \
    GNI_FT_E2(IN) gni_fbf2(x), y = x;                                                              \
    GNI_FT_E2(OUT)
#define GNI_FT_DO3(IN, OUT)                                                                        \
    GNI_FT_E3(IN) gni_fbf3(x), y = x;                                                              \
    GNI_FT_E3(OUT)
#define GNI_FT_DO4(IN, OUT)                                                                        \
    GNI_FT_E4(IN) gni_fbf4(x), y = x;                                                              \
    GNI_FT_E4(OUT)
#define GNI_FT_DO5(IN, OUT)                                                                        \
    GNI_FT_E5(IN) gni_fbf5(x), y = x;                                                              \
    GNI_FT_E5(OUT)
#define GNI_FT_DO7(IN, OUT)                                                                        \
    GNI_FT_E7(IN) gni_fbf7(x), y = x;                                                              \
    GNI_FT_E7(OUT)
#define GNI_FT_DO8(IN, OUT)                                                                        \
    IN(0) IN(2) IN(4) IN(6) gni_ffirst4(x, 0, 2);                                                  \
    IN(1) IN(3) IN(5) IN(7) gni_ffirst4(x, 1, 2);                                                  \
    gni_fthen8(0)(x, y);                                                                           \
    OUT(0) OUT(4) gni_fthen8(1)(x, y);                                                             \
    OUT(1) OUT(5) gni_fthen8(2)(x, y);                                                             \
    OUT(2) OUT(6) gni_fthen8(3)(x, y);                                                             \
    OUT(3) OUT(7)
#define GNI_FT_DO9(IN, OUT)                                                                        \
    GNI_FT_E9(IN) gni_fbf9(x), y = x;                                                              \
    GNI_FT_E9(OUT)
#define GNI_FT_DO11(IN, OUT)                                                                       \
    GNI_FT_E11(IN) gni_fbf11(x), y = x;                                                            \
    GNI_FT_E11(OUT)
#define GNI_FT_DO13(IN, OUT)                                                                       \
    GNI_FT_E13(IN) gni_fbf13(x), y = x;                                                            \
    GNI_FT_E13(OUT)
#define GNI_FT_DO16(IN, OUT)                                                                       \
    IN(0) IN(4) IN(8) IN(12) gni_ffirst4(x, 0, 4);                                                 \
    IN(1) IN(5) IN(9) IN(13) gni_ffirst4(x, 1, 4);                                                 \
    IN(2) IN(6) IN(10) IN(14) gni_ffirst4(x, 2, 4);                                                \
    IN(3) IN(7) IN(11) IN(15) gni_ffirst4(x, 3, 4);                                                \
    gni_fthen16(0)(x, y);                                                                          \
    OUT(0) OUT(4) OUT(8) OUT(12) gni_fthen16(1)(x, y);                                             \
    OUT(1) OUT(5) OUT(9) OUT(13) gni_fthen16(2)(x, y);                                             \
    OUT(2) OUT(6) OUT(10) OUT(14) gni_fthen16(3)(x, y);                                            \
    OUT(3) OUT(7) OUT(11) OUT(15)

#define GNI_FT_LOAD(q) gni_frow_get(&x[q], a + q * step);
#define GNI_FT_GET(q)                                                                              \
    GNI_FT_PREFETCH(a + q * step + across);                                                        \
    GNI_FT_PREFETCH(a + q * step + across + GNI_FT_W);                                             \
    gni_fget(&x[q], a + q * step, swap);
#define GNI_FT_TWIDDLE(q)                                                                          \
    if (q > 0) gni_fturn(&y[q], w + 2 * q);                                                        \
    gni_frow_put(b + q * out, &y[q]);
#define GNI_FT_PUT(q)                                                                              \
    gni_fscale(&y[q], scale);                                                                      \
    gni_fput(b + q * out, &y[q], swap);

// One pass. With src_ld = 0 from rows, else from memory, numbers one after the other and rows that far apart; likewise to
// dst, where the results are scaled. Memory is the source of a first pass only, and the target of a last one; both of the
// only pass there is, if it is one of GNI_FT_ONE.
typedef void (*GNI_FT(gni_ft_pass_fn))(const gni_ft_pass *p, const GNI_FT_T *src, int64_t src_ld,
                                       GNI_FT_T *dst, int64_t dst_ld, GNI_FT_T scale, bool swap);

// The radices that most lengths are made of have a function for each of the three.
#define GNI_FT_MID(R)                                                                              \
    static void GNI_FT(gni_ft_mid##R)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst) {  \
        const int64_t s = p->s, m = p->m, step = s * m * 2 * GNI_FT_W, out = s * 2 * GNI_FT_W;     \
        const GNI_FT_T *w = (const GNI_FT_T *)p->twiddle - 2;                                         \
        for (int64_t j = 0; j < m; j++, w += 2 * (R - 1)) {                                        \
            const GNI_FT_T *a = src + j * out;                                                     \
            GNI_FT_T *b = dst + j * out * R;                                                       \
            for (int64_t k = 0; k < s; k++, a += 2 * GNI_FT_W, b += 2 * GNI_FT_W) {                \
                gni_fc x[R], into[R], *y = into;                                                 \
                GNI_FT_DO##R(GNI_FT_LOAD, GNI_FT_TWIDDLE)                                             \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_FT_FIRST(R)                                                                            \
    static void GNI_FT(gni_ft_first##R)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t across, \
                                        GNI_FT_T *dst, bool swap) {                                \
        const int64_t m = p->m, step = m * across, out = 2 * GNI_FT_W;                             \
        const GNI_FT_T *w = (const GNI_FT_T *)p->twiddle - 2;                                         \
        for (int64_t j = 0; j < m; j++, w += 2 * (R - 1)) {                                        \
            const GNI_FT_T *a = src + j * across;                                                  \
            GNI_FT_T *b = dst + j * out * R;                                                       \
            gni_fc x[R], into[R], *y = into;                                                     \
            GNI_FT_DO##R(GNI_FT_GET, GNI_FT_TWIDDLE)                                                  \
        }                                                                                          \
    }
#define GNI_FT_LAST(R)                                                                             \
    static void GNI_FT(gni_ft_last##R)(const gni_ft_pass *p, const GNI_FT_T *src, GNI_FT_T *dst,   \
                                       int64_t ld, GNI_FT_T scale, bool swap) {                    \
        const int64_t s = p->s, step = s * 2 * GNI_FT_W, out = s * ld;                             \
        for (int64_t k = 0; k < s; k++) {                                                          \
            const GNI_FT_T *a = src + k * 2 * GNI_FT_W;                                            \
            GNI_FT_T *b = dst + k * ld;                                                            \
            gni_fc x[R], into[R], *y = into;                                                     \
            GNI_FT_DO##R(GNI_FT_LOAD, GNI_FT_PUT)                                                  \
        }                                                                                          \
    }

#define GNI_FT_PASS(R)                                                                             \
    GNI_FT_MID(R)                                                                                  \
    GNI_FT_FIRST(R)                                                                                \
    GNI_FT_LAST(R)                                                                                 \
    static void GNI_FT(gni_ft_pass##R)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t src_ld,  \
                                       GNI_FT_T *dst, int64_t dst_ld, GNI_FT_T scale, bool swap) { \
        if (src_ld != 0)                                                                           \
            GNI_FT(gni_ft_first##R)(p, src, src_ld, dst, swap);                                    \
        else if (dst_ld != 0)                                                                      \
            GNI_FT(gni_ft_last##R)(p, src, dst, dst_ld, scale, swap);                              \
        else                                                                                       \
            GNI_FT(gni_ft_mid##R)(p, src, dst);                                                    \
    }
// The others choose for every butterfly.
#define GNI_FT_ONE(radix) (GNI_FT_SLIM || (radix) == 11 || ((radix) >= 13 && (radix) != 16))
#define GNI_FT_ENDS(R)                                                                             \
    static void GNI_FT(gni_ft_pass##R)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t src_ld,  \
                                       GNI_FT_T *dst, int64_t dst_ld, GNI_FT_T scale, bool swap) { \
        const int64_t s = p->s, m = p->m, row = 2 * GNI_FT_W;                                      \
        const int64_t across = src_ld != 0 ? src_ld : s * row, step = m * across;                  \
        const int64_t along = dst_ld != 0 ? dst_ld : row, out = s * along;                         \
        const GNI_FT_T *w = (const GNI_FT_T *)p->twiddle - 2;                                         \
        for (int64_t j = 0; j < m; j++, w += 2 * (R - 1)) {                                        \
            const GNI_FT_T *a = src + j * across;                                                  \
            GNI_FT_T *b = dst + j * out * R;                                                       \
            for (int64_t k = 0; k < s; k++, a += row, b += along) {                                \
                gni_fc x[R], *y = x;                                                               \
                if (src_ld != 0) {                                                                 \
                    GNI_FT_E##R(GNI_FT_GET)                                                        \
                } else {                                                                           \
                    GNI_FT_E##R(GNI_FT_LOAD)                                                       \
                }                                                                                  \
                gni_fbf##R(x);                                                                     \
                if (dst_ld != 0) {                                                                 \
                    GNI_FT_E##R(GNI_FT_PUT)                                                        \
                } else {                                                                           \
                    GNI_FT_E##R(GNI_FT_TWIDDLE)                                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#if GNI_FT_SLIM
GNI_FT_ENDS(2)
GNI_FT_ENDS(3)
GNI_FT_ENDS(4)
GNI_FT_ENDS(5)
GNI_FT_ENDS(8)
#else
GNI_FT_PASS(2)
GNI_FT_PASS(3)
GNI_FT_PASS(4)
GNI_FT_PASS(5)
GNI_FT_PASS(7)
GNI_FT_PASS(8)
GNI_FT_PASS(9)
#endif
#if GNI_FT_MAX_RADIX >= 16 // there are registers for them
GNI_FT_PASS(16)
GNI_FT_ENDS(11)
GNI_FT_ENDS(13)
#endif

// ---- the other radices, whose butterflies lie in memory

// x becomes its DFT of n points.
typedef void (*GNI_FT(gni_ft_points_fn))(gni_fc *x);
#define GNI_FT_POINTS(n)                                                                           \
    static void GNI_FT(gni_ft_points##n)(gni_fc * x) { GNI_FT(gni_ft_bf##n)(x); }
#if GNI_FT_SLIM
GNI_FT_POINTS(9)
#elif GNI_FT_MAX_RADIX < 16
GNI_FT_POINTS(11)
GNI_FT_POINTS(13)
#endif
#undef GNI_FT_POINTS
static GNI_FT(gni_ft_points_fn) GNI_FT(gni_ft_points)(int n) {
    switch (n) {
#if GNI_FT_SLIM
    case 9: return GNI_FT(gni_ft_points9);
#elif GNI_FT_MAX_RADIX < 16
    case 11: return GNI_FT(gni_ft_points11);
    case 13: return GNI_FT(gni_ft_points13);
#endif
    default: return NULL;
    }
}

// Odd primes up to GNI_FT_MAX_PRIME: p->circle has the p numbers cos, sin of 2 pi q / p.
static void GNI_FT(gni_ft_bf_prime)(const gni_ft_pass *p, gni_fc *x) {
    const GNI_FT_T *circle = (const GNI_FT_T *)p->circle;
    const int n = p->radix, h = n / 2;
    gni_fc sum = x[0], base = gni_fmadd(-0.5, gni_fadd(x[h], x[h + 1]), x[0]);
    gni_fc t[GNI_FT_MAX_PRIME / 2 + 1], d[GNI_FT_MAX_PRIME / 2 + 1];
    for (int q = 1; q <= h; q++) {
        t[q] = gni_fadd(x[q], x[n - q]);
        d[q] = gni_fsub(x[q], x[n - q]);
        sum = gni_fadd(sum, t[q]);
    }
    // The h cosines of a frequency add up to -1/2: the last one is left out, so that equal inputs cancel.
    for (int q = 1; q < h; q++) t[q] = gni_fsub(t[q], t[h]);
    x[0] = sum;
    for (int k = 1; k <= h; k++) {
        gni_fc a = base, b = gni_fmul((double)circle[2 * k + 1], d[1]);
        if (h > 1) a = gni_fmadd((double)circle[2 * k], t[1], a);
        for (int q = 2, at = 2 * k; q <= h; q++, at += at + k < n ? k : k - n) {
            if (q < h) a = gni_fmadd((double)circle[2 * at], t[q], a);
            b = gni_fmadd((double)circle[2 * at + 1], d[q], b);
        }
        gni_fpair(a, b, &x[k], &x[n - k]);
    }
}

static void GNI_FT(gni_ft_pass_any)(const gni_ft_pass *p, const GNI_FT_T *src, int64_t src_ld,
                                    GNI_FT_T *dst, int64_t dst_ld, GNI_FT_T scale, bool swap) {
    const int64_t s = p->s, m = p->m, row = 2 * GNI_FT_W, across = src_ld != 0 ? src_ld : s * row;
    const int64_t along = dst_ld != 0 ? dst_ld : row, out = s * along;
    const GNI_FT_T *w = (const GNI_FT_T *)p->twiddle;
    const GNI_FT(gni_ft_points_fn) points = GNI_FT(gni_ft_points)(p->radix);
    gni_fc x[GNI_FT_MAX_PRIME];
    for (int64_t j = 0; j < m; j++, w += 2 * (p->radix - 1))
        for (int64_t k = 0; k < s; k++) {
            const GNI_FT_T *a = src + j * across + k * row;
            GNI_FT_T *b = dst + j * out * p->radix + k * along;
            for (int q = 0; q < p->radix; q++, a += m * across) {
                if (src_ld != 0)
                    gni_fget(&x[q], a, swap);
                else
                    gni_frow_get(&x[q], a);
            }
            if (points != NULL)
                points(x);
            else
                GNI_FT(gni_ft_bf_prime)(p, x);
            for (int q = 0; q < p->radix; q++, b += out) {
                if (dst_ld != 0) {
                    gni_fscale(&x[q], scale);
                    gni_fput(b, &x[q], swap);
                    continue;
                }
                if (q > 0) gni_fturn(&x[q], w + 2 * q - 2);
                gni_frow_put(b, &x[q]);
            }
        }
}

static GNI_FT(gni_ft_pass_fn) GNI_FT(gni_ft_pass_of)(const gni_ft_pass *p) {
    switch (p->radix) {
    case 2: return GNI_FT(gni_ft_pass2);
    case 3: return GNI_FT(gni_ft_pass3);
    case 4: return GNI_FT(gni_ft_pass4);
    case 5: return GNI_FT(gni_ft_pass5);
    case 8: return GNI_FT(gni_ft_pass8);
#if !GNI_FT_SLIM
    case 7: return GNI_FT(gni_ft_pass7);
    case 9: return GNI_FT(gni_ft_pass9);
#endif
#if GNI_FT_MAX_RADIX >= 16
    case 11: return GNI_FT(gni_ft_pass11);
    case 13: return GNI_FT(gni_ft_pass13);
    case 16: return GNI_FT(gni_ft_pass16);
#endif
    default: return GNI_FT(gni_ft_pass_any);
    }
}

// ---- W transforms side by side. `work` has room for 2 n rows, where `n` is the length.

// The remaining passes of rows in `x`; where the result is.
static GNI_FT_T *GNI_FT(gni_ft_passes)(const gni_ft_lane *f, int from, int to, GNI_FT_T *x,
                                       GNI_FT_T *work) {
    GNI_FT_T *half[2] = {work, work + f->n * 2 * GNI_FT_W};
    for (int i = from; i < to; i++) {
        GNI_FT_T *y = x == half[0] ? half[1] : half[0];
        GNI_FT(gni_ft_pass_of) (&f->pass[i])(&f->pass[i], x, 0, y, 0, 1, false);
        x = y;
    }
    return x;
}

// Columns of memory to rows in `work`.
static void *GNI_FT(gni_ft_columns_in)(const gni_ft_lane *f, const void *src, int64_t ld, bool swap,
                                       void *work) {
    GNI_FT_T *w = (GNI_FT_T *)work;
    GNI_FT(gni_ft_pass_of)(f->pass)(f->pass, (const GNI_FT_T *)src, 2 * ld, w, 0, 1, swap);
    return GNI_FT(gni_ft_passes)(f, 1, f->count, w, w);
}

// Rows (which stay as they are unless they are in `work`) to columns of memory.
static void GNI_FT(gni_ft_columns_out)(const gni_ft_lane *f, void *rows, void *dst, int64_t ld,
                                       double scale, bool swap, void *work) {
    GNI_FT_T *x = GNI_FT(gni_ft_passes)(f, 0, f->count - 1, (GNI_FT_T *)rows, (GNI_FT_T *)work);
    const gni_ft_pass *last = &f->pass[f->count - 1];
    GNI_FT(gni_ft_pass_of)(last)(last, x, 0, (GNI_FT_T *)dst, 2 * ld, (GNI_FT_T)scale, swap);
}

// Columns of memory to columns of memory, which may be the same.
static void GNI_FT(gni_ft_columns)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst,
                                   int64_t dst_ld, double scale, bool swap, void *work) {
    const gni_ft_pass *last = &f->pass[f->count - 1];
    GNI_FT_T *w = (GNI_FT_T *)work;
    if (f->count == 1 && GNI_FT_ONE(last->radix)) {
        GNI_FT(gni_ft_pass_of)
        (last)(last, (const GNI_FT_T *)src, 2 * src_ld, (GNI_FT_T *)dst, 2 * dst_ld,
               (GNI_FT_T)scale, swap);
        return;
    }
    if (f->count == 1) {
        for (int64_t q = 0; q < f->n; q++) {
            gni_fc x;
            gni_fget(&x, (const GNI_FT_T *)src + 2 * q * src_ld, swap);
            gni_frow_put(w + 2 * q * GNI_FT_W, &x);
        }
    } else {
        GNI_FT(gni_ft_pass_of)(f->pass)(f->pass, (const GNI_FT_T *)src, 2 * src_ld, w, 0, 1, swap);
        w = GNI_FT(gni_ft_passes)(f, 1, f->count - 1, w, (GNI_FT_T *)work);
    }
    GNI_FT(gni_ft_pass_of)(last)(last, w, 0, (GNI_FT_T *)dst, 2 * dst_ld, (GNI_FT_T)scale, swap);
}

// X for each of the W numbers of a block, and the butterfly of W.
#if GNI_FT_W == 1
#define GNI_FT_EACH(X) X(0)
#define GNI_FT_DOW(IN, OUT)                                                                        \
    IN(0) y = x;                                                                                  \
    OUT(0)
#elif GNI_FT_W == 2
#define GNI_FT_EACH GNI_FT_E2
#define GNI_FT_DOW GNI_FT_DO2
#elif GNI_FT_W == 4
#define GNI_FT_EACH GNI_FT_E4
#define GNI_FT_DOW GNI_FT_DO4
#elif GNI_FT_W == 8
#define GNI_FT_EACH GNI_FT_E8
#define GNI_FT_DOW GNI_FT_DO8
#else
#define GNI_FT_EACH GNI_FT_E16
#define GNI_FT_DOW GNI_FT_DO16
#endif

#define GNI_FT_ROW_GET(q) gni_fget(&x[q], a + 2 * j + q * step, swap);
#define GNI_FT_ROW_LOAD(q)                                                                         \
    gni_frow_get(&x[q], from + q * step);                                                          \
    gni_fscale(&x[q], (GNI_FT_T)scale);
#define GNI_FT_ROW_STORE(q) gni_frow_put(to + q * out, &x[q]);
#define GNI_FT_ROW_PUT(q) gni_fput(b + 2 * j + q * out, &x[q], swap);
#define GNI_FT_TWIDDLE_V(q)                                                                        \
    if (q > 0) gni_fturn_each(&y[q], u + 2 * q * GNI_FT_W);

// `count` <= W transforms of contiguous memory, `src_ld` and `dst_ld` numbers apart.
static void GNI_FT(gni_ft_batch)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst,
                                 int64_t dst_ld, int count, double scale, bool swap, void *work) {
    const GNI_FT_T *a = (const GNI_FT_T *)src;
    GNI_FT_T *b = (GNI_FT_T *)dst, *w = (GNI_FT_T *)work, *y;
    const int64_t n = f->n;
    const int re = swap ? 1 : 0;
    const bool whole = count == GNI_FT_W && n >= GNI_FT_W;
    for (int64_t at = 0; whole && at < n; at += GNI_FT_W) {
        const int64_t j = GNI_MIN(at, n - GNI_FT_W), step = 2 * src_ld, out = 2 * GNI_FT_W;
        gni_fc x[GNI_FT_W];
        GNI_FT_T *to = w + 2 * j * GNI_FT_W;
        GNI_FT_EACH(GNI_FT_ROW_GET)
        gni_ftranspose(x);
        GNI_FT_EACH(GNI_FT_ROW_STORE)
    }
    for (int l = 0; !whole && l < GNI_FT_W; l++) {
        const GNI_FT_T *from = a + 2 * GNI_MIN(l, count - 1) * src_ld;
        for (int64_t j = 0; j < n; j++) {
            w[2 * j * GNI_FT_W + l] = from[2 * j + re];
            w[2 * j * GNI_FT_W + GNI_FT_W + l] = from[2 * j + 1 - re];
        }
    }
    y = GNI_FT(gni_ft_passes)(f, 0, f->count, w, w);
    for (int64_t at = 0; whole && at < n; at += GNI_FT_W) {
        const int64_t j = GNI_MIN(at, n - GNI_FT_W), step = 2 * GNI_FT_W, out = 2 * dst_ld;
        gni_fc x[GNI_FT_W];
        const GNI_FT_T *from = y + 2 * j * GNI_FT_W;
        GNI_FT_EACH(GNI_FT_ROW_LOAD)
        gni_ftranspose(x);
        GNI_FT_EACH(GNI_FT_ROW_PUT)
    }
    for (int l = 0; !whole && l < count; l++) {
        GNI_FT_T *to = b + 2 * l * dst_ld;
        for (int64_t j = 0; j < n; j++) {
            to[2 * j + re] = y[2 * j * GNI_FT_W + l] * (GNI_FT_T)scale;
            to[2 * j + 1 - re] = y[2 * j * GNI_FT_W + GNI_FT_W + l] * (GNI_FT_T)scale;
        }
    }
}

// n = W b points, where b divides W: W / b transforms at a time, in registers all the way. A vector holds
// b neighbours of each of them; `table` is that of the twist. Up to GNI_FT_MAX_TINY points are left to gni_ft_tiny, but
// where one transform by itself fills the vectors.
#if GNI_FT_W > 1
#if GNI_FT_W == 2
#define GNI_FT_SMALL_MIX GNI_FT_EACH(GNI_FT_MIX1)
#elif GNI_FT_W == 4
#define GNI_FT_SMALL_MIX GNI_FT_EACH(GNI_FT_MIX2) GNI_FT_EACH(GNI_FT_MIX1)
#elif GNI_FT_W == 8
#define GNI_FT_SMALL_MIX GNI_FT_EACH(GNI_FT_MIX4) GNI_FT_EACH(GNI_FT_MIX2) GNI_FT_EACH(GNI_FT_MIX1)
#else
#define GNI_FT_SMALL_MIX                                                                           \
    GNI_FT_EACH(GNI_FT_MIX8)                                                                       \
    GNI_FT_EACH(GNI_FT_MIX4) GNI_FT_EACH(GNI_FT_MIX2) GNI_FT_EACH(GNI_FT_MIX1)
#endif
// Blocks of k numbers of the vectors of different transforms change places.
#define GNI_FT_MIX(k, q)                                                                           \
    if (GNI_FT_P(k) >= b && q / GNI_MAX(GNI_FT_P(k) / b, 1) % 2 == 0)                              \
    GNI_FT_SWAP(k, q, q + GNI_MAX(GNI_FT_P(k) / b, 1))
#define GNI_FT_MIX1(q) GNI_FT_MIX(1, q)
#define GNI_FT_MIX2(q) GNI_FT_MIX(2, q)
#define GNI_FT_MIX4(q) GNI_FT_MIX(4, q)
#define GNI_FT_MIX8(q) GNI_FT_MIX(8, q)
#define GNI_FT_SMALL_AHEAD(q)                                                                      \
    GNI_FT_PREFETCH_2(a + 2 * ((q % per + 2 * per) * src_ld + q / per * GNI_FT_W));                \
    GNI_FT_PREFETCH_2(a + 2 * ((q % per + 2 * per) * src_ld + q / per * GNI_FT_W) + GNI_FT_W);
#define GNI_FT_SMALL_GET(q)                                                                        \
    gni_fget(&x[q], a + 2 * (GNI_MIN(q % per, most - 1) * src_ld + q / per * GNI_FT_W), swap);
#define GNI_FT_SMALL_BF(q)                                                                         \
    if (b == 2 && q % 2 == 0) gni_fbf2(x + q);                                                     \
    if (b == 4 && q % 4 == 0) gni_fbf4(x + q);                                                     \
    if (b == 8 && q % 8 == 0) gni_fbf8(x + q);
#define GNI_FT_SMALL_PUT(q)                                                                        \
    if (q / b < most) {                                                                            \
        gni_fscale(&y[q], scale);                                                                  \
        gni_fput(to + 2 * (q / b * dst_ld + q % b * GNI_FT_W), &y[q], swap);                       \
    }
#define GNI_FT_NOTHING(q)
#define GNI_FT_TO_X(q) x[q] = y[q];
#define GNI_FT_SMALL_EACH(X)                                                                       \
    if (back) {                                                                                    \
        const bool swap = true;                                                                    \
        GNI_FT_EACH(X)                                                                             \
    } else {                                                                                       \
        const bool swap = false;                                                                   \
        GNI_FT_EACH(X)                                                                             \
    }
#define GNI_FT_SMALL_CASE(B)                                                                       \
    static void GNI_FT(gni_ft_small##B)(const GNI_FT_T *a, int64_t src_ld, GNI_FT_T *to,           \
                                        int64_t dst_ld, int64_t rows, const GNI_FT_T *u,           \
                                        GNI_FT_T scale, bool back) {                               \
        enum { b = B, per = GNI_FT_W / B };                                                        \
        for (; rows > 0; rows -= per, a += 2 * per * src_ld, to += 2 * per * dst_ld) {             \
            const int most = (int)GNI_MIN(rows, (int64_t)per);                                     \
            gni_fc x[GNI_FT_W], into[GNI_FT_W], *y = into;                                                       \
            if (rows > per) {                                                                      \
                GNI_FT_EACH(GNI_FT_SMALL_AHEAD)                                                    \
            }                                                                                      \
            GNI_FT_SMALL_EACH(GNI_FT_SMALL_GET)                                                    \
            GNI_FT_SMALL_MIX                                                                       \
            GNI_FT_DOW(GNI_FT_NOTHING, GNI_FT_TWIDDLE_V)                                              \
            gni_ftranspose(y);                                                                     \
            GNI_FT_EACH(GNI_FT_TO_X)                                                               \
            GNI_FT_EACH(GNI_FT_SMALL_BF)                                                           \
            y = x;                                                                                 \
            GNI_FT_SMALL_EACH(GNI_FT_SMALL_PUT)                                                    \
        }                                                                                          \
    }
#if GNI_FT_W >= 8
GNI_FT_SMALL_CASE(4)
#endif
#if GNI_FT_W >= 16
GNI_FT_SMALL_CASE(2)
GNI_FT_SMALL_CASE(8)
#endif

// W W points.
GNI_FT_INLINE void GNI_FT(gni_ft_small_whole)(const GNI_FT_T *a, int64_t src_ld, GNI_FT_T *to,
                                              int64_t dst_ld, int64_t rows, const GNI_FT_T *u,
                                              GNI_FT_T scale, const bool back) {
    enum { b = GNI_FT_W, per = 1, most = 1 };
    for (; rows > 0; rows--, a += 2 * src_ld, to += 2 * dst_ld) {
        gni_fc x[GNI_FT_W], into[GNI_FT_W], *y = into;
        if (rows > 1) {
            GNI_FT_EACH(GNI_FT_SMALL_AHEAD)
        }
#if GNI_FT_W == 16 // as many numbers as there are registers come and go with the arithmetic
        const bool swap = back;
        GNI_FT_DOW(GNI_FT_SMALL_GET, GNI_FT_TWIDDLE_V)
        gni_ftranspose(y);
        GNI_FT_EACH(GNI_FT_TO_X)
        GNI_FT_DOW(GNI_FT_NOTHING, GNI_FT_SMALL_PUT)
#else
        GNI_FT_SMALL_EACH(GNI_FT_SMALL_GET)
        GNI_FT_DOW(GNI_FT_NOTHING, GNI_FT_TWIDDLE_V)
        gni_ftranspose(y);
        GNI_FT_EACH(GNI_FT_TO_X)
        GNI_FT_DOW(GNI_FT_NOTHING, GNI_FT_NOTHING)
        GNI_FT_SMALL_EACH(GNI_FT_SMALL_PUT)
#endif
    }
}
static void GNI_FT(gni_ft_small_square)(const GNI_FT_T *a, int64_t src_ld, GNI_FT_T *to,
                                        int64_t dst_ld, int64_t rows, const GNI_FT_T *u,
                                        GNI_FT_T scale, bool back) {
#if GNI_FT_W == 16 // a copy for each direction: a choice for every number costs a lone transform a tenth
    if (back) {
        GNI_FT(gni_ft_small_whole)(a, src_ld, to, dst_ld, rows, u, scale, true);
        return;
    }
    back = false;
#endif
    GNI_FT(gni_ft_small_whole)(a, src_ld, to, dst_ld, rows, u, scale, back);
}
static void GNI_FT(gni_ft_small)(const void *src, int64_t src_ld, void *dst, int64_t dst_ld, int b,
                                 int64_t count, const void *table, double scale, bool swap) {
    void (*run)(const GNI_FT_T *, int64_t, GNI_FT_T *, int64_t, int64_t, const GNI_FT_T *, GNI_FT_T,
                bool);
    run = GNI_FT(gni_ft_small_square);
#if GNI_FT_W >= 8
    if (b == 4) run = GNI_FT(gni_ft_small4);
#endif
#if GNI_FT_W >= 16
    if (b == 2) run = GNI_FT(gni_ft_small2);
    if (b == 8) run = GNI_FT(gni_ft_small8);
#endif
    GNI_UNUSED(b);
    run((const GNI_FT_T *)src, src_ld, (GNI_FT_T *)dst, dst_ld, count, (const GNI_FT_T *)table,
        (GNI_FT_T)scale, swap);
}
#endif

// ---- between the two steps of a long transform of a b points

#define GNI_FT_TWIST(q)                                                                            \
    gni_frow_get(&y[q], rows + 2 * (k + q) * GNI_FT_W);                                            \
    gni_frow_get(&v, twiddle + 2 * (k + q) * GNI_FT_W);                                            \
    if (more != NULL) gni_fturn(&v, more + 2 * (k + q));                                           \
    y[q] = gni_fcmul(y[q], v.r, v.i);
#define GNI_FT_OUT(q) gni_frow_put(to + 2 * q * GNI_FT_W, &y[q]);

// Column transforms of a points to the rows of the second step: number j + l of block k / W, for the W
// columns from j on. `twiddle` has a vector for each row, `more` (or NULL) a factor for each.
static void GNI_FT(gni_ft_twist)(const void *columns, int64_t a, int64_t b, int64_t j,
                                 const void *table, const void *factors, void *dst) {
    const GNI_FT_T *rows = (const GNI_FT_T *)columns, *twiddle = (const GNI_FT_T *)table;
    const GNI_FT_T *more = (const GNI_FT_T *)factors;
    GNI_FT_T *to = (GNI_FT_T *)dst + 2 * j * GNI_FT_W;
    for (int64_t at = 0; at < a; at += GNI_FT_W, to += 2 * b * GNI_FT_W) {
        const int64_t k = GNI_MIN(at, a - GNI_FT_W);
        gni_fc y[GNI_FT_W], v;
        GNI_FT_EACH(GNI_FT_TWIST)
        gni_ftranspose(y);
        GNI_FT_EACH(GNI_FT_OUT)
    }
}

// The whole first step with a = W for the W columns from j on.
#if GNI_FT_TINY_MOST
#define GNI_FT_HEAD_GET(q) gni_fget(&x[q], a + q * step, swap);
#define GNI_FT_HEAD_AHEAD(q)                                                                       \
    GNI_FT_PREFETCH(a + q * step + 2 * GNI_FT_W);                                                  \
    GNI_FT_PREFETCH(a + q * step + 3 * GNI_FT_W);
static void GNI_FT(gni_ft_head)(const void *src, int64_t b, int64_t j, const void *table, bool back,
                                void *dst) {
    const GNI_FT_T *a = (const GNI_FT_T *)src + 2 * j, *u = (const GNI_FT_T *)table;
    GNI_FT_T *to = (GNI_FT_T *)dst + 2 * j * GNI_FT_W;
    const int64_t step = 2 * b;
    gni_fc x[GNI_FT_W], into[GNI_FT_W], *y = into;
    if (b * GNI_FT_W > 2048) {
        GNI_FT_EACH(GNI_FT_HEAD_AHEAD)
    }
    if (back) {
        const bool swap = true;
        GNI_FT_EACH(GNI_FT_HEAD_GET)
    } else {
        const bool swap = false;
        GNI_FT_EACH(GNI_FT_HEAD_GET)
    }
    GNI_FT_DOW(GNI_FT_NOTHING, GNI_FT_TWIDDLE_V)
    gni_ftranspose(y);
    GNI_FT_EACH(GNI_FT_OUT)
}
#endif

// ---- helpers of real transforms and of Bluestein's

// y = scale x w, element by element.
static void GNI_FT(gni_ft_product)(void *dst, const void *src, const void *factors, int64_t n,
                                   double scale, bool swap_in, bool swap_out) {
    const GNI_FT_T *a = (const GNI_FT_T *)src, *w = (const GNI_FT_T *)factors;
    GNI_FT_T *b = (GNI_FT_T *)dst;
    int64_t k = 0;
    for (; k + GNI_FT_W <= n; k += GNI_FT_W) {
        gni_fc x, t;
        gni_fget(&x, a + 2 * k, swap_in);
        gni_fget(&t, w + 2 * k, false);
        x = gni_fcmul(x, t.r, t.i);
        gni_fscale(&x, (GNI_FT_T)scale);
        gni_fput(b + 2 * k, &x, swap_out);
    }
    for (; k < n; k++) {
        GNI_FT_T re = a[2 * k + (swap_in ? 1 : 0)], im = a[2 * k + (swap_in ? 0 : 1)];
        GNI_FT_T yr = (re * w[2 * k] - im * w[2 * k + 1]) * (GNI_FT_T)scale;
        GNI_FT_T yi = (re * w[2 * k + 1] + im * w[2 * k]) * (GNI_FT_T)scale;
        b[2 * k + (swap_out ? 1 : 0)] = yr;
        b[2 * k + (swap_out ? 0 : 1)] = yi;
    }
}

// Pairs k, h - k of a real transform of 2 h points and the complex one of h points over its even and
// odd elements, for k = from to to - 1 <= h / 2. twiddle[k] = exp(-pi i k / h) = table[k - from] times (cr, ci).
//   z to x:  e = (z[k] + z*[h-k]) / 2, o = (z[k] - z*[h-k]) / 2, x[k] = e - i twiddle o, x[h-k] = (e + i twiddle o)*
//   x to z:  the same with +i twiddle* and without the halves.
// `conj` takes the complex conjugate of x. In place too.
static void GNI_FT(gni_ft_fold)(void *dst, const void *src, const void *factors, int64_t from,
                                int64_t to, int64_t h, double cr, double ci, bool back, bool conj) {
    const GNI_FT_T *z = (const GNI_FT_T *)src, *w = (const GNI_FT_T *)factors - 2 * from;
    GNI_FT_T *y = (GNI_FT_T *)dst;
    const GNI_FT_T half = (GNI_FT_T)(back ? 1.0 : 0.5), sign = back ? (GNI_FT_T)-1 : (GNI_FT_T)1;
    const GNI_FT_T in = (GNI_FT_T)(back && conj ? -1 : 1), out = (GNI_FT_T)(!back && conj ? -1 : 1);
    const GNI_FT_T fr = (GNI_FT_T)cr, fi = (GNI_FT_T)ci;
    int64_t k = from;
#if GNI_FT_W > 1
    for (; k + GNI_FT_W <= to && 2 * (k + GNI_FT_W - 1) <= h; k += GNI_FT_W) {
        const int64_t r = h - k - GNI_FT_W + 1; // the mirror images, backwards
        gni_fc a, b, t;
        gni_fget(&a, z + 2 * k, false);
        gni_fget(&b, z + 2 * r, false);
        gni_fget(&t, w + 2 * k, false);
        b.r = gni_freverse(b.r, b.r);
        b.i = gni_freverse(b.i, b.i);
        gni_fv er = (a.r + b.r) * gni_fset(half), ei = (a.i - b.i) * gni_fset(half * in);
        gni_fc o;
        o.r = (a.r - b.r) * gni_fset(half);
        o.i = (a.i + b.i) * gni_fset(half * in);
        t = gni_fcmul(t, gni_fset(fr), gni_fset(fi));
        o = gni_fcmul(o, t.r, t.i * gni_fset(sign));
        // -i o forwards, +i o back
        gni_fv vr = o.i * gni_fset(sign), vi = o.r * gni_fset(-sign);
        a.r = er + vr;
        a.i = (ei + vi) * gni_fset(out);
        b.r = er - vr;
        b.i = (vi - ei) * gni_fset(out);
        b.r = gni_freverse(b.r, b.r);
        b.i = gni_freverse(b.i, b.i);
        gni_fput(y + 2 * k, &a, false);
        gni_fput(y + 2 * r, &b, false);
    }
#endif
    for (; k < to; k++) {
        const int64_t r = h - k;
        const GNI_FT_T ar = z[2 * k], ai = z[2 * k + 1] * in, br = z[2 * r], bi = z[2 * r + 1] * in;
        const GNI_FT_T tr = w[2 * k] * fr - w[2 * k + 1] * fi,
                       ti = (w[2 * k] * fi + w[2 * k + 1] * fr) * sign;
        const GNI_FT_T er = (ar + br) * half, ei = (ai - bi) * half, pr = (ar - br) * half,
                       pi = (ai + bi) * half;
        const GNI_FT_T vr = (pr * ti + pi * tr) * sign, vi = -(pr * tr - pi * ti) * sign;
        y[2 * k] = er + vr;
        y[2 * k + 1] = (ei + vi) * out;
        if (r == k) continue;
        y[2 * r] = er - vr;
        y[2 * r + 1] = (vi - ei) * out;
    }
}

// One transform of 3 to GNI_FT_MAX_DIRECT points by its sums, W frequencies at a time. For each W of the
// frequencies k = 1 to n / 2, and for each q = 1 to n / 2 but the last that has a mirror image, `table` has the cosines
// and the sines of 2 pi k q / n: the cosines of all q add up to what the last one leaves, so that equal inputs cancel.
static void GNI_FT(gni_ft_direct)(const void *src, void *dst, int n, const void *table,
                                  double scale, bool swap) {
    const GNI_FT_T *x = (const GNI_FT_T *)src, *w = (const GNI_FT_T *)table;
    const int re = swap ? 1 : 0, im = 1 - re, h = (n - 1) / 2, half = n / 2;
    GNI_FT_T *y = (GNI_FT_T *)dst, t[4 * (GNI_FT_MAX_DIRECT / 2)], up[2 * GNI_FT_MAX_DIRECT],
             down[2 * GNI_FT_MAX_DIRECT];
    GNI_FT_T sr = x[re], si = x[im];
    for (int q = 1; q <= h; q++) {
        const GNI_FT_T *a = x + 2 * q, *b = x + 2 * (n - q);
        GNI_FT_T *to = t + 4 * (q - 1);
        to[0] = a[re] + b[re], to[1] = a[im] + b[im];
        to[2] = a[re] - b[re], to[3] = a[im] - b[im];
        sr = sr + to[0], si = si + to[1];
    }
    GNI_FT_T *last = t + 4 * (h - 1);
    const GNI_FT_T ur = last[0], ui = last[1];
    const GNI_FT_T br = x[re] - (GNI_FT_T)0.5 * ur, bi = x[im] - (GNI_FT_T)0.5 * ui;
    for (int q = 0; q < h - 1; q++) t[4 * q] = t[4 * q] - ur, t[4 * q + 1] = t[4 * q + 1] - ui;
    // The number without a mirror image, if there is one, takes the place of the cosine that is left out.
    last[0] = last[1] = 0;
    if (half > h) {
        last[0] = x[2 * half + re] - (GNI_FT_T)0.5 * ur,
        last[1] = x[2 * half + im] - (GNI_FT_T)0.5 * ui;
        sr = sr + x[2 * half + re], si = si + x[2 * half + im];
    }
    const int blocks = (half + GNI_FT_W - 1) / GNI_FT_W;
    for (int v = 0; v < blocks; v++) {
        gni_fc a, b, z;
        a.r = gni_fset(br), a.i = gni_fset(bi);
        b.r = gni_fset(0), b.i = b.r;
        for (int q = 0; q < h; q++, w += 2 * GNI_FT_W) {
            const gni_fv c = gni_fload(w), s = gni_fload(w + GNI_FT_W);
            a.r = gni_ffma(c, gni_fset(t[4 * q]), a.r);
            a.i = gni_ffma(c, gni_fset(t[4 * q + 1]), a.i);
            b.r = gni_ffma(s, gni_fset(t[4 * q + 2]), b.r);
            b.i = gni_ffma(s, gni_fset(t[4 * q + 3]), b.i);
        }
        gni_fpair(a, b, &z, &a);
        z = gni_fmul(scale, z);
        a = gni_fmul(scale, a);
#if GNI_FT_W > 1
        a.r = gni_freverse(a.r, a.r);
        a.i = gni_freverse(a.i, a.i);
#endif
        gni_fput(up + 2 * v * GNI_FT_W, &z, swap);
        gni_fput(down + 2 * (blocks - 1 - v) * GNI_FT_W, &a, swap);
    }
    memcpy(y + 2, up, (size_t)half * 2 * sizeof(GNI_FT_T));
    memcpy(y + 2 * (n - h), down + 2 * (blocks * GNI_FT_W - h), (size_t)h * 2 * sizeof(GNI_FT_T));
    y[re] = sr * (GNI_FT_T)scale;
    y[im] = si * (GNI_FT_T)scale;
}

// ---- 2 to GNI_FT_MAX_TINY points, W transforms side by side, without passes in between

#if GNI_FT_TINY_MOST
#define GNI_FT_H (GNI_FT_W / 2)
// Blocks of b lanes of two vectors change places.
#define GNI_FT_BLOCKS(b, p, q)                                                                     \
    {                                                                                              \
        gni_fv l = v[p], h = v[q];                                                                 \
        v[p] = GNI_FT(gni_ft_t##b##l)(l, h);                                                       \
        v[q] = GNI_FT(gni_ft_t##b##h)(l, h);                                                       \
    }
// Squares of `side` numbers, of as many vectors of H numbers as they lie in memory: number q of row l and number l of row
// q change places.
GNI_FT_INLINE void GNI_FT(gni_ft_tile)(gni_fv *v, const int side) {
#if GNI_FT_W == 16
    if (side == 8) {
        GNI_FT_BLOCKS(8, 0, 4)
        GNI_FT_BLOCKS(8, 1, 5)
        GNI_FT_BLOCKS(8, 2, 6)
        GNI_FT_BLOCKS(8, 3, 7)
        GNI_FT_BLOCKS(4, 4, 6)
        GNI_FT_BLOCKS(4, 5, 7)
        GNI_FT_BLOCKS(2, 4, 5)
        GNI_FT_BLOCKS(2, 6, 7)
    }
#endif
#if GNI_FT_W >= 8
    if (side >= 4) {
        GNI_FT_BLOCKS(4, 0, 2)
        GNI_FT_BLOCKS(4, 1, 3)
        GNI_FT_BLOCKS(2, 2, 3)
    }
#endif
#if GNI_FT_W >= 4
    GNI_FT_BLOCKS(2, 0, 1)
#endif
    GNI_UNUSED(v);
    GNI_UNUSED(side);
}

// A tile of 2 `side` rows of `side` numbers between memory and x; `side` is H, or n where several rows fill a vector and
// no part of one. Of each row there are `have` numbers, and whatever follows.
#define GNI_FT_TINY_LOAD(l)                                                                        \
    if (l < side) {                                                                                \
        v[l] = gni_fload(a + 2 * l * ld);                                                          \
        w[l] = gni_fload(a + 2 * (l + side) * ld);                                                 \
    }
#define GNI_FT_TINY_TAKE(l)                                                                        \
    if (l < side && l < have) {                                                                    \
        x[l].r = gni_feven(v[l], w[l]);                                                            \
        x[l].i = gni_fodd(v[l], w[l]);                                                             \
    }
GNI_FT_INLINE void GNI_FT(gni_ft_tile_in)(gni_fc *x, const GNI_FT_T *a, int64_t ld, const int side,
                                          const int have) {
    gni_fv v[8], w[8];
    GNI_FT_E8(GNI_FT_TINY_LOAD)
    GNI_FT(gni_ft_tile)(v, side);
    GNI_FT(gni_ft_tile)(w, side);
    GNI_FT_E8(GNI_FT_TINY_TAKE)
}
#define GNI_FT_TINY_GIVE(l)                                                                        \
    if (l < side) {                                                                                \
        const gni_fc z = x[GNI_MIN(l, have - 1)];                                                  \
        v[l] = gni_flow(z.r, z.i);                                                                 \
        w[l] = gni_fhigh(z.r, z.i);                                                                \
    }
#define GNI_FT_TINY_STORE(l)                                                                       \
    if (l < side) gni_fstore(b + 2 * l * ld, v[l]);
#define GNI_FT_TINY_STORE_2(l)                                                                     \
    if (l < side) gni_fstore(b + 2 * (l + side) * ld, w[l]);
GNI_FT_INLINE void GNI_FT(gni_ft_tile_out)(const gni_fc *x, GNI_FT_T *b, int64_t ld, const int side,
                                           const int have) {
    gni_fv v[8], w[8];
    GNI_FT_E8(GNI_FT_TINY_GIVE)
    GNI_FT(gni_ft_tile)(v, side);
    GNI_FT(gni_ft_tile)(w, side);
    GNI_FT_E8(GNI_FT_TINY_STORE)
    GNI_FT_E8(GNI_FT_TINY_STORE_2)
}

#if GNI_FT_TINY_MOST > 4
// Good's algorithm: a b points without factors in between, as a and b have no common divisor. `one_a` is 1 modulo a and 0
// modulo b, `one_b` the other way round. All indices are constants that the compiler's first look folds.
#define GNI_FT_GOOD_2(j)                                                                           \
    t[0] = x[2 * j % n], t[1] = x[(b + 2 * j) % n];                                                \
    gni_fbf2(t);                                                                                   \
    y[j] = t[0], y[b + j] = t[1];
#define GNI_FT_GOOD_3(j)                                                                           \
    t[0] = x[3 * j % n], t[1] = x[(b + 3 * j) % n], t[2] = x[(2 * b + 3 * j) % n];                 \
    gni_fbf3(t);                                                                                   \
    y[j] = t[0], y[b + j] = t[1], y[2 * b + j] = t[2];
#define GNI_FT_GOOD_OUT(q) x[(one_a * (q / b) + one_b * (q % b)) % n] = y[q];
#define GNI_FT_GOOD(N, A, B, ONE_A, ONE_B)                                                         \
    GNI_FT_INLINE void GNI_FT(gni_ft_bf##N)(gni_fc * x) {                                          \
        enum { n = N, b = B, one_a = ONE_A, one_b = ONE_B };                                       \
        gni_fc y[N], t[A];                                                                         \
        GNI_FT_E##B(GNI_FT_GOOD_##A);                                                              \
        gni_fbf##B(y);                                                                             \
        gni_fbf##B(y + b);                                                                         \
        if (A == 3) gni_fbf##B(y + (A - 1) * b);                                                   \
        GNI_FT_E##N(GNI_FT_GOOD_OUT)                                                               \
    }
GNI_FT_GOOD(6, 2, 3, 3, 4)
GNI_FT_GOOD(10, 2, 5, 5, 6)
GNI_FT_GOOD(12, 3, 4, 4, 9)
#undef GNI_FT_GOOD_2
#undef GNI_FT_GOOD_3
#undef GNI_FT_GOOD_OUT
#undef GNI_FT_GOOD
#endif
#define GNI_FT_DENSE(n) ((n) < GNI_FT_H && GNI_FT_H % (n) == 0)
// W rows. Each is read and written up to the next multiple of H numbers, in ascending order; dense ones lie one behind the
// other. A row's last tile covers the start of the rows behind it: they must come later.
// `blocks` times that.
typedef void (*GNI_FT(gni_ft_tiny_fn))(const GNI_FT_T *a, int64_t src_ld, GNI_FT_T *b,
                                       int64_t dst_ld, int64_t blocks, GNI_FT_T scale, bool back);
// An inverse transform gives its numbers in reverse. Sixteen do not stay in registers, where that is cheap: it takes and
// gives their complex conjugates.
#define GNI_FT_TINY_SIGN(q) x[q].i = x[q].i * sign_in;
#define GNI_FT_TINY_SCALE(q) x[q].r = x[q].r * re, x[q].i = x[q].i * im;
#define GNI_FT_TINY_CASE(N)                                                                        \
    static void GNI_FT(gni_ft_tiny##N)(const GNI_FT_T *a, int64_t src_ld, GNI_FT_T *b,             \
                                       int64_t dst_ld, int64_t blocks, GNI_FT_T scale,             \
                                       bool back) {                                                \
        enum { n = N, side = GNI_FT_DENSE(N) ? N : GNI_FT_H };                                     \
        const int64_t from = GNI_FT_DENSE(N) ? GNI_FT_H : src_ld,                                  \
                      to = GNI_FT_DENSE(N) ? GNI_FT_H : dst_ld;                                    \
        const GNI_FT_T sign = n == 16 && back ? (GNI_FT_T)-1 : (GNI_FT_T)1;                        \
        const gni_fv sign_in = gni_fset(sign), re = gni_fset(scale), im = gni_fset(sign * scale);  \
        for (; blocks > 0; blocks--, a += 2 * GNI_FT_W * src_ld, b += 2 * GNI_FT_W * dst_ld) {     \
            gni_fc x[N];                                                                           \
            GNI_FT_UNROLL                                                                          \
            for (int at = 0; at < n; at += GNI_FT_H)                                               \
                GNI_FT(gni_ft_tile_in)(x + at, a + 2 * at, from, side, n - at);                    \
            if (n == 16) {                                                                         \
                GNI_FT_E##N(GNI_FT_TINY_SIGN)                                                      \
            }                                                                                      \
            GNI_FT(gni_ft_bf##N)(x);                                                               \
            if (n < 16 && back) {                                                                  \
                GNI_FT_UNROLL                                                                      \
                for (int q = 1; q < (n + 1) / 2; q++) {                                            \
                    const gni_fc z = x[q];                                                         \
                    x[q] = x[n - q];                                                               \
                    x[n - q] = z;                                                                  \
                }                                                                                  \
            }                                                                                      \
            if (n == 16 || scale != (GNI_FT_T)1) {                                                 \
                GNI_FT_E##N(GNI_FT_TINY_SCALE)                                                     \
            }                                                                                      \
            GNI_FT_UNROLL                                                                          \
            for (int at = (n - 1) / GNI_FT_H * GNI_FT_H; at >= 0; at -= GNI_FT_H)                  \
                GNI_FT(gni_ft_tile_out)(x + at, b + 2 * at, to, side, n - at);                     \
        }                                                                                          \
    }
GNI_FT_TINY_CASE(2)
GNI_FT_TINY_CASE(4)
#if GNI_FT_TINY_MOST > 4
GNI_FT_TINY_CASE(3)
GNI_FT_TINY_CASE(5)
GNI_FT_TINY_CASE(6)
GNI_FT_TINY_CASE(7)
GNI_FT_TINY_CASE(8)
GNI_FT_TINY_CASE(9)
GNI_FT_TINY_CASE(10)
GNI_FT_TINY_CASE(12)
GNI_FT_TINY_CASE(16)
#endif
#undef GNI_FT_TINY_CASE
#undef GNI_FT_TINY_SIGN
#undef GNI_FT_TINY_SCALE
static GNI_FT(gni_ft_tiny_fn) GNI_FT(gni_ft_tiny_of)(int n) {
    switch (n) {
    case 2: return GNI_FT(gni_ft_tiny2);
#if GNI_FT_TINY_MOST > 4
    case 3: return GNI_FT(gni_ft_tiny3);
    case 5: return GNI_FT(gni_ft_tiny5);
    case 6: return GNI_FT(gni_ft_tiny6);
    case 7: return GNI_FT(gni_ft_tiny7);
    case 8: return GNI_FT(gni_ft_tiny8);
    case 9: return GNI_FT(gni_ft_tiny9);
    case 10: return GNI_FT(gni_ft_tiny10);
    case 12: return GNI_FT(gni_ft_tiny12);
    case 16: return GNI_FT(gni_ft_tiny16);
#endif
    default: return GNI_FT(gni_ft_tiny4);
    }
}

static void GNI_FT(gni_ft_tiny_copy)(GNI_FT_T *to, int64_t to_ld, const GNI_FT_T *from,
                                     int64_t from_ld, int64_t n, int64_t rows) {
    if (to_ld == n && from_ld == n) n *= rows, rows = 1;
    for (; rows > 0; rows--, to += 2 * to_ld, from += 2 * from_ld)
        memcpy(to, from, (size_t)n * 2 * sizeof(GNI_FT_T));
}

// Blocks are read and written where they lie while there are rows behind them that will be written later.
static void GNI_FT(gni_ft_tiny)(const void *src, int64_t src_ld, void *dst, int64_t dst_ld, int n,
                                int64_t count, double scale, bool back) {
    const GNI_FT(gni_ft_tiny_fn) run = GNI_FT(gni_ft_tiny_of)(n);
    const bool dense = GNI_FT_DENSE(n);
    const bool here = dense ? src_ld == n : src_ld > 0,
               there = dense ? dst_ld == n
                             : src != dst && dst_ld >= n && (dst_ld == n || n % GNI_FT_H == 0);
    const GNI_FT_T *a = (const GNI_FT_T *)src, s = (GNI_FT_T)scale;
    GNI_FT_T *b = (GNI_FT_T *)dst;
    int64_t more = GNI_MAX(count - (n % GNI_FT_H == 0 || dense ? 0 : 8), 0) / GNI_FT_W;
    if (here && there) {
        run(a, src_ld, b, dst_ld, more, s, back);
        a += 2 * more * GNI_FT_W * src_ld, b += 2 * more * GNI_FT_W * dst_ld;
        count -= more * GNI_FT_W;
        more = 0;
    }
    GNI_FT_T in[2 * (GNI_FT_MAX_TINY + 1) * GNI_FT_W], out[2 * (GNI_FT_MAX_TINY + 1) * GNI_FT_W];
    if (count > 0) memset(in, 0, sizeof in);
    for (; count > 0; count -= GNI_FT_W, more--) {
        const int64_t rows = GNI_MIN(count, GNI_FT_W);
        const bool from_a = here && more > 0, to_b = there && more > 0;
        if (!from_a) GNI_FT(gni_ft_tiny_copy)(in, n, a, src_ld, n, rows);
        run(from_a ? a : in, from_a ? src_ld : n, to_b ? b : out, to_b ? dst_ld : n, 1, s, back);
        if (!to_b) GNI_FT(gni_ft_tiny_copy)(b, dst_ld, out, n, n, rows);
        a += 2 * GNI_FT_W * src_ld, b += 2 * GNI_FT_W * dst_ld;
    }
}
#endif

#if GNI_FT_W > 1
#define GNI_FT_WIDER(name) GNI_FT(name)
#else
#define GNI_FT_WIDER(name) NULL
#endif
#if GNI_FT_TINY_MOST
#define GNI_FT_MAY(name) GNI_FT(name)
#else
#define GNI_FT_MAY(name) NULL
#endif
GNI_TABLE gni_ft_isa GNI_FT(gni_ft_table) = {GNI_FT_W,
                                             GNI_FT_MAX_RADIX,
                                             GNI_FT(gni_ft_columns_in),
                                             GNI_FT(gni_ft_columns_out),
                                             GNI_FT(gni_ft_columns),
                                             GNI_FT(gni_ft_batch),
                                             GNI_FT_WIDER(gni_ft_small),
                                             GNI_FT(gni_ft_twist),
                                             GNI_FT_MAY(gni_ft_head),
                                             GNI_FT(gni_ft_product),
                                             GNI_FT(gni_ft_fold),
                                             GNI_FT(gni_ft_direct),
                                             GNI_FT_MAY(gni_ft_tiny)};
#undef GNI_FT_MAY
#undef GNI_FT_WIDER

#undef gni_fv
#undef gni_fvi
#undef gni_fc
#undef gni_fload
#undef gni_frow_get
#undef gni_frow_put
#undef gni_fturn
#undef gni_fturn_each
#undef gni_fscale
#undef gni_fstore
#undef gni_fset
#undef gni_ffma
#undef gni_ffnma
#undef gni_fadd
#undef gni_fsub
#undef gni_fmul
#undef gni_fmadd
#undef gni_fpair
#undef gni_fspair
#undef gni_ftwiddle
#undef gni_fcmul
#undef gni_fbf2
#undef gni_fbf3
#undef gni_fbf4
#undef gni_fbf5
#undef gni_fbf7
#undef gni_fbf8
#undef gni_fbf9
#undef gni_fbf11
#undef gni_fbf13
#undef gni_fbf16
#undef gni_ffirst4
#undef gni_fthen8
#undef gni_fthen16
#undef gni_feven
#undef gni_fodd
#undef gni_flow
#undef gni_fhigh
#undef gni_freverse
#undef gni_fget
#undef gni_fput
#undef gni_ftranspose
#undef GNI_FT_MID
#undef GNI_FT_PASS
#undef GNI_FT_ENDS
#undef GNI_FT_ONE
#undef GNI_FT_DENSE
#undef GNI_FT_FIRST
#undef GNI_FT_LAST
#undef GNI_FT_TINY_MOST
#undef GNI_FT_SLIM
#undef GNI_FT_EIGHTH
#undef GNI_FT_P
#undef GNI_FT_SWAP
#undef GNI_FT_T2
#undef GNI_FT_T4
#undef GNI_FT_T8
#undef GNI_FT_STEP
#undef GNI_FT_QUAD
#undef GNI_FT_CROSS
#undef GNI_FT_E2
#undef GNI_FT_E3
#undef GNI_FT_E4
#undef GNI_FT_E5
#undef GNI_FT_E6
#undef GNI_FT_E7
#undef GNI_FT_E8
#undef GNI_FT_E9
#undef GNI_FT_E10
#undef GNI_FT_E11
#undef GNI_FT_E12
#undef GNI_FT_E13
#undef GNI_FT_E14
#undef GNI_FT_E15
#undef GNI_FT_E16
#undef GNI_FT_THEN16
#undef GNI_FT_LOAD
#undef GNI_FT_GET
#undef GNI_FT_TWIDDLE
#undef GNI_FT_DO2
#undef GNI_FT_DO3
#undef GNI_FT_DO4
#undef GNI_FT_DO5
#undef GNI_FT_DO7
#undef GNI_FT_DO8
#undef GNI_FT_DO9
#undef GNI_FT_DO11
#undef GNI_FT_DO13
#undef GNI_FT_DO16
#undef GNI_FT_PUT
#undef GNI_FT_SMALL_PUT
#undef GNI_FT_SMALL_BF
#undef GNI_FT_SMALL_GET
#undef GNI_FT_SMALL_AHEAD
#undef GNI_FT_NOTHING
#undef GNI_FT_TO_X
#undef GNI_FT_MIX8
#undef GNI_FT_MIX4
#undef GNI_FT_MIX2
#undef GNI_FT_MIX1
#undef GNI_FT_MIX
#undef GNI_FT_SMALL_MIX
#undef GNI_FT_SMALL_EACH
#undef GNI_FT_SMALL_CASE
#undef GNI_FT_ROW_PUT
#undef GNI_FT_ROW_STORE
#undef GNI_FT_ROW_LOAD
#undef GNI_FT_ROW_GET
#undef GNI_FT_TWIST
#undef GNI_FT_HEAD_GET
#undef GNI_FT_HEAD_AHEAD
#undef GNI_FT_OUT
#undef GNI_FT_TWIDDLE_V
#undef GNI_FT_EACH
#undef GNI_FT_DOW
#undef GNI_FT_H
#undef GNI_FT_BLOCKS
#undef GNI_FT_TINY_LOAD
#undef GNI_FT_TINY_TAKE
#undef GNI_FT_TINY_GIVE
#undef GNI_FT_TINY_STORE
#undef GNI_FT_TINY_STORE_2
