// >>fold_kernels
// Folds of the CPU backend's reductions over 32-bit registers, compiled per pass: of elements that follow each other, and of
// columns side by side. From outside: the tables GNI_FN(gni_fold_table) and GNI_FN(gni_columns_table); what room
// `wide_kernels` makes its own of with the same macros, and takes them back.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#include "../simd/simd.h"
#endif

// gcc makes vectors of loops whose length it knows (GNI_SOME elements), and is told that what they write lies just where they
// read, or apart from it. Others find out by themselves.
#if defined(__GNUC__) && !defined(__clang__)
#define GNI_IN_PLACE _Pragma("GCC ivdep")
#define GNI_SOME 16
#else
#define GNI_IN_PLACE
#define GNI_SOME 1
#endif

// ---- folds of contiguous elements

// 64 running sums whatever the width of a vector, joined in one order: the same bits from every pass.
#define GNI_AT_ONCE (GNI_VW == 8 ? 2 : 1) // vectors of the 16, as many as registers hold: memory is read once
static void GNI_FN(gni_sum_block)(const float *x, int64_t n, double *both) { // of even and of odd places
    float lane[16];
    int64_t whole = n & ~(int64_t)63;
    for (int g = 0; g < 16; g += GNI_VW * GNI_AT_ONCE) {
        gni_vf s[4 * GNI_AT_ONCE];
        const float *p = x + g;
        GNI_FT_UNROLL
        for (int k = 0; k < 4 * GNI_AT_ONCE; k++) s[k] = gni_vset(0.0f);
        for (int64_t i = 0; i < whole; i += 64, p += 64)
            GNI_FT_UNROLL
            for (int k = 0; k < 4 * GNI_AT_ONCE; k++) s[k] += gni_vload(p + k / GNI_AT_ONCE * 16 + k % GNI_AT_ONCE * GNI_VW);
        for (int h = 0; h < GNI_AT_ONCE; h++) {
            for (int64_t i = whole + g + h * GNI_VW, k = h; i < n; i += 16, k += GNI_AT_ONCE)
                s[k] += n - i >= GNI_VW ? gni_vload(x + i) : gni_vloadn(x + i, (int)(n - i));
            gni_vstore(lane + g + h * GNI_VW,
                       (s[h] + s[2 * GNI_AT_ONCE + h]) + (s[GNI_AT_ONCE + h] + s[3 * GNI_AT_ONCE + h]));
        }
    }
    double t[8];
    for (int i = 0; i < 8; i++) t[i] = (double)lane[i] + (double)lane[i + 8];
    for (int i = 0; i < 2; i++) both[i] = (t[i] + t[i + 4]) + (t[i + 2] + t[i + 6]);
}
#undef GNI_AT_ONCE
static void GNI_FN(gni_fold_sum_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const int parts = at == GNI_PAIRS_AT ? 2 : 1;
    for (int64_t i = 0; i < n; i += GNI_SUM_BLOCK) {
        const float *p = (const float *)x + i;
        int64_t m = GNI_MIN(n - i, GNI_SUM_BLOCK);
        double s[2];
        GNI_FN(gni_sum_block)(p, m, s);
        if (parts == 1) s[0] += s[1];
        for (int j = 0; j < parts; j++) {
            if (!(s[j] - s[j] == 0.0)) { // float64 has the range
                s[j] = 0.0;
                for (int64_t k = j; k < m; k += parts) s[j] += (double)p[k];
            }
            acc[j].d += s[j];
        }
    }
}
#define GNI_PROD_BLOCK 5 // float32 numbers that one within 2^-256 and 2^256 can be multiplied by in float64
static void GNI_FN(gni_fold_prod_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    const float *p = (const float *)x;
    double s[16];
    uint64_t beyond = 0;
    GNI_UNUSED(at);
    for (int j = 0; j < 16; j++) s[j] = 1.0;
    for (int64_t i = 0; i < n; beyond = 0) {
        const int64_t stop = GNI_MIN(n, i + 16 * GNI_PROD_BLOCK);
        for (; i + 16 <= stop; i += 16)
            for (int j = 0; j < 16; j++) s[j] *= (double)p[i + j];
        for (; i < stop; i++) s[i & 15] *= (double)p[i];
        for (int j = 0; j < 16 && i < n; j++) beyond |= gni_beyond(s[j], 9);
        for (int j = 0; j < 16 && beyond != 0; j++) gni_acc_multiply(&acc->d, &acc->e, s[j]), s[j] = 1.0;
    }
    for (int j = 0; j < 16; j++) beyond |= gni_beyond(s[j], 6); // the product of all has 2^-512 to 2^512
    for (int h = 8; h > 0 && beyond == 0; h /= 2)
        for (int j = 0; j < h; j++) s[j] *= s[j + h];
    for (int j = 0; j < (beyond != 0 ? 16 : 1); j++) gni_acc_multiply(&acc->d, &acc->e, s[j]);
}

// The smallest (PICK gni_vminc) or largest element; NaN if there is one.
#define GNI_EXTREME_BLOCK(name, PICK)                                                              \
    static float GNI_FN(name)(const float *p, int64_t n) {                                         \
        float t[GNI_VW];                                                                           \
        if (n < GNI_VW) { /* too few for a vector: fill up with the first */                       \
            for (int i = 0; i < GNI_VW; i++) t[i] = p[i < n ? i : 0];                              \
            p = t;                                                                                 \
            n = GNI_VW;                                                                            \
        }                                                                                          \
        gni_vf a = gni_vload(p);                                                                   \
        gni_vmask nan = gni_knan(a);                                                               \
        int64_t i = GNI_VW;                                                                        \
        if (n >= 4 * GNI_VW) {                                                                     \
            gni_vf b = a, c = a, d = a;                                                            \
            for (i = 0; i < n; i += 4 * GNI_VW) {                                                  \
                i = GNI_MIN(i, n - 4 * GNI_VW); /* the last vectors overlap those before */        \
                gni_vf x = gni_vload(p + i), y = gni_vload(p + i + GNI_VW);                        \
                gni_vf z = gni_vload(p + i + 2 * GNI_VW), w = gni_vload(p + i + 3 * GNI_VW);       \
                nan = gni_kor(nan, gni_kor(gni_knan(x), gni_knan(y)));                             \
                nan = gni_kor(nan, gni_kor(gni_knan(z), gni_knan(w)));                             \
                a = PICK(a, x);                                                                    \
                b = PICK(b, y);                                                                    \
                c = PICK(c, z);                                                                    \
                d = PICK(d, w);                                                                    \
            }                                                                                      \
            a = PICK(PICK(a, b), PICK(c, d));                                                      \
        }                                                                                          \
        for (; i < n; i += GNI_VW) {                                                               \
            const gni_vf x = gni_vload(p + GNI_MIN(i, n - GNI_VW));                                \
            nan = gni_kor(nan, gni_knan(x));                                                       \
            a = PICK(a, x);                                                                        \
        }                                                                                          \
        if (gni_kany(nan)) return (float)NAN;                                                      \
        gni_vstore(t, a);                                                                          \
        for (int h = GNI_VW / 2; h > 0; h /= 2)                                                    \
            for (int j = 0; j < h; j++) t[j] = GNI_BETTER(t[j + h], t[j]) ? t[j + h] : t[j];       \
        return t[0];                                                                               \
    }
#define GNI_FOLD_EXTREME(name, BLOCK)                                                              \
    static void GNI_FN(name)(gni_acc * acc, const void *x, int64_t n, int64_t at) {                \
        GNI_UNUSED(at);                                                                            \
        if (n <= 0 || acc->d != acc->d) return;                                                    \
        double m = (double)GNI_FN(BLOCK)((const float *)x, n);                                     \
        if (m != m || GNI_BETTER(m, acc->d)) acc->d = m;                                           \
    }
#define GNI_BETTER(x, y) ((x) < (y))
GNI_EXTREME_BLOCK(gni_min_block, gni_vminc)
GNI_FOLD_EXTREME(gni_fold_min_f, gni_min_block)
#undef GNI_BETTER
#define GNI_BETTER(x, y) ((x) > (y))
GNI_EXTREME_BLOCK(gni_max_block, gni_vmaxc)
GNI_FOLD_EXTREME(gni_fold_max_f, gni_max_block)
#undef GNI_BETTER
#undef GNI_EXTREME_BLOCK
#undef GNI_FOLD_EXTREME

// The place as well, of the smallest (up = -1) or largest: a block is searched only when it has something better.
static GNI_NOINLINE void GNI_FN(gni_fold_place_f)(gni_acc *acc, const float *p, int64_t n, int64_t at, double up,
                                                  float (*block)(const float *p, int64_t n)) {
    for (int64_t i = 0; i < n && acc->d == acc->d; i += GNI_SUM_BLOCK) {
        int64_t m = GNI_MIN(n - i, GNI_SUM_BLOCK), j = 0;
        float best = block(p + i, m);
        if (best == best && !((double)best * up > acc->d * up)) continue;
        const int64_t last = best == best ? m - GNI_VW : -1;
        const gni_vf b = gni_vset(best);
        for (const float *q = p + i; j <= last - 3 * GNI_VW; j += 4 * GNI_VW, q += 4 * GNI_VW) {
            const gni_vmask k = gni_kor(gni_keq(gni_vload(q), b), gni_keq(gni_vload(q + GNI_VW), b));
            const gni_vmask l = gni_kor(gni_keq(gni_vload(q + 2 * GNI_VW), b), gni_keq(gni_vload(q + 3 * GNI_VW), b));
            if (gni_kany(gni_kor(k, l))) break;
        }
        while (j <= last && !gni_kany(gni_keq(gni_vload(p + i + j), b))) j += GNI_VW;
        while (j < m && !(best == best ? p[i + j] == best : p[i + j] != p[i + j])) j++;
        acc->d = (double)best;
        acc->at = at + i + j;
    }
}
static void GNI_FN(gni_fold_argmin_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    GNI_FN(gni_fold_place_f)(acc, (const float *)x, n, at, -1.0, GNI_FN(gni_min_block));
}
static void GNI_FN(gni_fold_argmax_f)(gni_acc *acc, const void *x, int64_t n, int64_t at) {
    GNI_FN(gni_fold_place_f)(acc, (const float *)x, n, at, 1.0, GNI_FN(gni_max_block));
}

// Truth: all stops at the first 0, any at the first that is not.
#define GNI_FOLD_TRUTH(name, STOP, VALUE)                                                          \
    static GNI_NOINLINE void GNI_FN(name)(gni_acc * acc, const uint32_t *p, int64_t n, uint32_t mask) { \
        int64_t i = 0;                                                                             \
        for (; n >= 64 && i < n && acc->i != VALUE; i += 64) { /* the last 64 overlap those before */  \
            i = GNI_MIN(i, n - 64);                                                                \
            int found = 0;                                                                         \
            for (int j = 0; j < 64; j++) found |= (p[i + j] & mask) STOP 0;                        \
            if (found) acc->i = VALUE;                                                             \
        }                                                                                          \
        for (; i < n && acc->i != VALUE; i++)                                                      \
            if ((p[i] & mask) STOP 0) acc->i = VALUE;                                              \
    }
// Of a float the bits but for its sign.
#define GNI_FOLD_TRUTHS(name, of, T, mask)                                                         \
    static void GNI_FN(name)(gni_acc * acc, const void *x, int64_t n, int64_t at) {                \
        GNI_UNUSED(at);                                                                            \
        GNI_FN(of)(acc, (const T *)x, n, mask);                                                    \
    }
GNI_FOLD_TRUTH(gni_fold_any, !=, 1)
GNI_FOLD_TRUTH(gni_fold_all, ==, 0)
GNI_FOLD_TRUTHS(gni_fold_any_f, gni_fold_any, uint32_t, INT32_MAX)
GNI_FOLD_TRUTHS(gni_fold_any_i, gni_fold_any, uint32_t, UINT32_MAX)
GNI_FOLD_TRUTHS(gni_fold_all_f, gni_fold_all, uint32_t, INT32_MAX)
GNI_FOLD_TRUTHS(gni_fold_all_i, gni_fold_all, uint32_t, UINT32_MAX)
#undef GNI_FOLD_TRUTH

#define GNI_FOLD_INT(name, T, UNIT, STEP)                                                          \
    static void GNI_FN(name)(gni_acc * acc, const void *x, int64_t n, int64_t at) {                \
        const T *p = (const T *)x;                                                                 \
        uint64_t s[16];                                                                            \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 16; j++) s[j] = UNIT;                                                  \
        for (; i + 16 <= n; i += 16)                                                               \
            for (int j = 0; j < 16; j++) s[j] STEP(uint64_t)(int64_t) p[i + j];                    \
        for (; i < n; i++) s[0] STEP(uint64_t)(int64_t) p[i];                                      \
        uint64_t r = (uint64_t)acc->i;                                                             \
        for (int j = 0; j < 16; j++) r STEP s[j];                                                  \
        acc->i = (int64_t)r;                                                                       \
    }
#define GNI_FOLD_INT_EXTREME(name, T, OP)                                                          \
    static void GNI_FN(name)(gni_acc * acc, const void *x, int64_t n, int64_t at) {                \
        const T *p = (const T *)x;                                                                 \
        T s[16];                                                                                   \
        int64_t i = 0;                                                                             \
        GNI_UNUSED(at);                                                                            \
        for (int j = 0; j < 16; j++) s[j] = (T)acc->i;                                             \
        for (; i + 16 <= n; i += 16)                                                               \
            for (int j = 0; j < 16; j++) s[j] = p[i + j] OP s[j] ? p[i + j] : s[j];                \
        for (; i < n; i++) s[0] = p[i] OP s[0] ? p[i] : s[0];                                      \
        for (int j = 0; j < 16; j++)                                                               \
            if ((int64_t)s[j] OP acc->i) acc->i = (int64_t)s[j];                                   \
    }
static GNI_NOINLINE void GNI_FN(gni_fold_place_i)(gni_acc *acc, const uint32_t *p, int64_t n, int64_t at,
                                                  gni_fold_fn extreme) {
    for (int64_t i = 0; i < n; i += GNI_SUM_BLOCK) {
        int64_t m = GNI_MIN(n - i, GNI_SUM_BLOCK), before = acc->i, j = i;
        extreme(acc, p + i, m, 0);
        if (acc->i == before) continue;
        const uint32_t best = (uint32_t)((uint64_t)acc->i & UINT32_MAX);
        for (int found = 0; j + 16 <= n; j += 16) { // sixteen for a branch
            for (int k = 0; k < 16; k++) found |= p[j + k] == best;
            if (found != 0) break;
        }
        while (p[j] != best) j++;
        acc->at = at + j;
    }
}
#define GNI_FOLD_INT_PLACE(name, extreme)                                                          \
    static void GNI_FN(name)(gni_acc * acc, const void *x, int64_t n, int64_t at) {                \
        GNI_FN(gni_fold_place_i)(acc, (const uint32_t *)x, n, at, GNI_FN(extreme));                \
    }
GNI_FOLD_INT(gni_fold_sum_i, int32_t, 0, +=)
GNI_FOLD_INT(gni_fold_sum_u, uint32_t, 0, +=)
GNI_FOLD_INT(gni_fold_prod_i, int32_t, 1, *=)
GNI_FOLD_INT(gni_fold_prod_u, uint32_t, 1, *=)
GNI_FOLD_INT_EXTREME(gni_fold_min_i, int32_t, <)
GNI_FOLD_INT_EXTREME(gni_fold_min_u, uint32_t, <)
GNI_FOLD_INT_EXTREME(gni_fold_max_i, int32_t, >)
GNI_FOLD_INT_EXTREME(gni_fold_max_u, uint32_t, >)
GNI_FOLD_INT_PLACE(gni_fold_argmin_i, gni_fold_min_i)
GNI_FOLD_INT_PLACE(gni_fold_argmin_u, gni_fold_min_u)
GNI_FOLD_INT_PLACE(gni_fold_argmax_i, gni_fold_max_i)
GNI_FOLD_INT_PLACE(gni_fold_argmax_u, gni_fold_max_u)
#undef GNI_FOLD_INT
#undef GNI_FOLD_INT_EXTREME
#undef GNI_FOLD_INT_PLACE

// What a table has by reduction: GNI_LOOP(op, domain) for floating-point, signed and unsigned numbers; of truth the last two
// are one.
#define GNI_VALUES(op) GNI_LOOP(op, f), GNI_LOOP(op, i), GNI_LOOP(op, u)
#define GNI_TRUTH(op) GNI_LOOP(op, f), GNI_LOOP(op, i), GNI_LOOP(op, i)
#define GNI_FOLD_ROW_AXES(fn, NAME, loop, form, back) GNI_##form(loop),
#define GNI_FOLD_ROW_PLACE(fn, NAME, loop, form) GNI_##form(loop),
#define GNI_FOLD_ROWS GNI_REDUCE_AXES(GNI_FOLD_ROW_AXES) GNI_REDUCE_PLACE(GNI_FOLD_ROW_PLACE)
#define GNI_LOOP(op, d) GNI_FN(gni_fold_##op##_##d)
static const gni_fold_fn GNI_FN(gni_fold_table)[GNI_RED_COUNT * 3] = {GNI_FOLD_ROWS};
#undef GNI_LOOP

// ---- folds of columns

// Rows four at a time: `t` gathers up to GNI_COLUMN_BLOCK of them.
static void GNI_FN(gni_columns_sum_f)(gni_acc_columns *acc, const void *x, int64_t rows,
                                      int64_t stride, int64_t n, int64_t at) {
    float t[GNI_BAND];
    double *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r0 = 0; r0 < rows; r0 += GNI_COLUMN_BLOCK) {
        int64_t last = GNI_MIN(r0 + GNI_COLUMN_BLOCK, rows), whole = n & ~(int64_t)(GNI_VW - 1);
        memset(t, 0, sizeof(float) * (size_t)n);
        for (int64_t r = r0; r < last; r += 4) {
            const float *p = (const float *)x + r * stride;
            int64_t have = last - r, c = 0;
            if (have >= 4) {
                const float *q = p + stride, *u = q + stride, *w = u + stride;
                for (; c < whole; c += GNI_VW)
                    gni_vstore(t + c, gni_vload(t + c) + ((gni_vload(p + c) + gni_vload(q + c)) +
                                                          (gni_vload(u + c) + gni_vload(w + c))));
                for (; c < n; c++) t[c] += (p[c] + q[c]) + (u[c] + w[c]);
                continue;
            }
            for (int64_t k = 0; k < GNI_MIN(have, 4); k++, p += stride) {
                for (c = 0; c < whole; c += GNI_VW)
                    gni_vstore(t + c, gni_vload(t + c) + gni_vload(p + c));
                for (; c < n; c++) t[c] += p[c];
            }
        }
        int64_t c = 0;
        float rest = 0.0f;
        gni_vf past = gni_vset(0.0f); // NaN if a sum is past float32's range
        for (; c < whole; c += GNI_VW) past += gni_vload(t + c) - gni_vload(t + c);
        for (; c < n; c++) rest += t[c] - t[c];
        for (c = 0; (rest != rest || gni_kany(gni_knan(past))) && c < n; c++) {
            if (t[c] - t[c] == 0.0f) continue;
            double s = 0.0; // which has the range
            for (int64_t r = r0; r < last; r++) s += (double)((const float *)x)[r * stride + c];
            v[c] += s;
            t[c] = 0.0f;
        }
        for (c = 0; c + 16 <= n; c += 16)
            for (int j = 0; j < 16; j++) v[c + j] += (double)t[c + j];
        for (; c < n; c++) v[c] += (double)t[c];
    }
}

// The smallest (up = -1) or largest numbers of columns, and their places.
static GNI_NOINLINE void GNI_FN(gni_columns_place_f)(gni_acc_columns *acc, const float *p, int64_t rows, int64_t stride,
                                                     int64_t n, int64_t at, float up) {
    const gni_vf turn = gni_vset(up);
    float *v = (float *)acc->v;
    int32_t where[GNI_BAND];
    for (int64_t c = 0; c < n; c++) where[c] = -1;
    for (int64_t r = 0; r < rows; r++, p += stride) {
        int64_t c = 0;
        for (; c + GNI_VW <= n; c += GNI_VW) {
            gni_vf m = gni_vload(v + c), y = gni_vload(p + c);
            gni_vmask k = gni_kor(gni_kgt(y * turn, m * turn), gni_kand(gni_knan(y), gni_knot(gni_knan(m))));
            if (!gni_kany(k)) continue;
            gni_vstore(v + c, gni_ksel(k, y, m));
            gni_vstorei(where + c, gni_kseli(k, gni_vseti((int32_t)r), gni_vloadi(where + c)));
        }
        for (; c < n; c++) {
            if (v[c] != v[c] || !(p[c] != p[c] || p[c] * up > v[c] * up)) continue;
            v[c] = p[c];
            where[c] = (int32_t)r;
        }
    }
    for (int64_t c = 0; c < n; c++)
        if (where[c] >= 0) acc->at[c] = at + where[c];
}
#define GNI_COLUMNS_PLACE(name, up)                                                                \
    static void GNI_FN(name)(gni_acc_columns * acc, const void *x, int64_t rows, int64_t stride,   \
                             int64_t n, int64_t at) {                                              \
        GNI_FN(gni_columns_place_f)(acc, (const float *)x, rows, stride, n, at, up);               \
    }
// The columns' extremes.
#define GNI_COLUMNS_EXTREME(name, PICK, BETTER)                                                    \
    static void GNI_FN(name)(gni_acc_columns * acc, const void *x, int64_t rows, int64_t stride,   \
                             int64_t n, int64_t at) {                                              \
        float *v = (float *)acc->v;                                                                \
        GNI_UNUSED(at);                                                                            \
        for (int64_t r = 0; r < rows;) {                                                           \
            const float *p = (const float *)x + r * stride;                                        \
            int64_t step = rows - r >= 4 ? stride : 0, c = 0;                                      \
            r += step != 0 ? 4 : 1;                                                                \
            for (; c + GNI_VW <= n; c += GNI_VW) {                                                 \
                gni_vf m = gni_vload(p + c);                                                       \
                if (step != 0)                                                                     \
                    m = PICK(PICK(m, gni_vload(p + step + c)),                                     \
                             PICK(gni_vload(p + 2 * step + c), gni_vload(p + 3 * step + c)));      \
                gni_vstore(v + c, PICK(gni_vload(v + c), m));                                      \
            }                                                                                      \
            for (; c < n; c++)                                                                     \
                for (int k = 0; k < (step != 0 ? 4 : 1); k++) {                                    \
                    float y = p[k * step + c];                                                     \
                    if (v[c] == v[c] && (y != y || y BETTER v[c])) v[c] = y;                       \
                }                                                                                  \
        }                                                                                          \
    }
GNI_COLUMNS_EXTREME(gni_columns_min_f, gni_vmin, <)
GNI_COLUMNS_EXTREME(gni_columns_max_f, gni_vmax, >)
GNI_COLUMNS_PLACE(gni_columns_argmin_f, -1.0f)
GNI_COLUMNS_PLACE(gni_columns_argmax_f, 1.0f)
#undef GNI_COLUMNS_EXTREME
#undef GNI_COLUMNS_PLACE

static void GNI_FN(gni_columns_prod_f)(gni_acc_columns *acc, const void *from, int64_t rows, int64_t stride, int64_t n,
                                       int64_t at) {
    double *v = (double *)acc->v;
    GNI_UNUSED(at);
    for (int64_t r = 0; r < rows; r += GNI_PROD_BLOCK) {
        const float *p = (const float *)from + r * stride;
        const int64_t few = GNI_MIN(rows - r, GNI_PROD_BLOCK);
        for (int64_t c = 0; c < n; c += 16) {
            const int64_t m = GNI_MIN(n - c, 16);
            uint64_t beyond = 0;
            if (m == 16 && few == GNI_PROD_BLOCK) {
                const float *q = p + c, *x = q + stride, *y = x + stride, *z = y + stride, *w = z + stride;
                double s[16];
                for (int j = 0; j < 16; j++)
                    s[j] = v[c + j] * (double)q[j] * (double)x[j] * (double)y[j] * (double)z[j] * (double)w[j];
                for (int j = 0; j < 16; j++) beyond |= gni_beyond(s[j], 9), v[c + j] = s[j];
                if (beyond == 0) continue;
            } else {
                for (int64_t k = 0; k < few; k++)
                    for (int64_t j = 0; j < m; j++) v[c + j] *= (double)p[k * stride + c + j];
            }
            for (int64_t j = 0; j < m; j++) {
                int e = 0;
                v[c + j] = frexp(v[c + j], &e);
                acc->e[c + j] += e;
            }
        }
    }
}

// The rest element by element, `some` at a time where that makes vectors: S is the accumulator, y the element.
#define GNI_COLUMNS(name, T, S, some, STEP)                                                        \
    static void GNI_FN(name)(gni_acc_columns * acc, const void *x, int64_t rows, int64_t stride,   \
                             int64_t n, int64_t at) {                                              \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            S *GNI_RESTRICT v = (S *)acc->v;                                                       \
            const T *GNI_RESTRICT p = (const T *)x + r * stride;                                   \
            int64_t first = 0, row = at + r;                                                       \
            GNI_UNUSED(row);                                                                       \
            for (; some > 1 && first + some <= n; first += some) {                                 \
                GNI_IN_PLACE                                                                       \
                for (int j = 0; j < some; j++) {                                                   \
                    const int64_t c = first + j;                                                   \
                    const T y = p[c];                                                              \
                    STEP;                                                                          \
                }                                                                                  \
            }                                                                                      \
            for (int64_t c = first; c < n; c++) {                                                  \
                const T y = p[c];                                                                  \
                STEP;                                                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define GNI_PLACE_STEP(BETTER)                                                                     \
    if (BETTER) {                                                                                  \
        v[c] = y;                                                                                  \
        acc->at[c] = row;                                                                          \
    }
GNI_COLUMNS(gni_columns_sum_i, int32_t, uint64_t, GNI_SOME, v[c] += (uint64_t)(int64_t)y)
GNI_COLUMNS(gni_columns_sum_u, uint32_t, uint64_t, GNI_SOME, v[c] += (uint64_t)y)
GNI_COLUMNS(gni_columns_prod_i, int32_t, uint64_t, GNI_SOME, v[c] *= (uint64_t)(int64_t)y)
GNI_COLUMNS(gni_columns_prod_u, uint32_t, uint64_t, GNI_SOME, v[c] *= (uint64_t)y)
GNI_COLUMNS(gni_columns_min_i, int32_t, int32_t, GNI_SOME, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_min_u, uint32_t, uint32_t, GNI_SOME, v[c] = y < v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_max_i, int32_t, int32_t, GNI_SOME, v[c] = y > v[c] ? y : v[c])
GNI_COLUMNS(gni_columns_max_u, uint32_t, uint32_t, GNI_SOME, v[c] = y > v[c] ? y : v[c])
// Truth, whose `at` says which bits of an element tell: of a float those but for its sign.
#define GNI_COLUMNS_TRUTH(name, of, mask)                                                          \
    static void GNI_FN(name)(gni_acc_columns * acc, const void *x, int64_t rows, int64_t stride,   \
                             int64_t n, int64_t at) {                                              \
        GNI_UNUSED(at);                                                                            \
        GNI_FN(of)(acc, x, rows, stride, n, mask);                                                 \
    }
GNI_COLUMNS(gni_columns_any, uint32_t, int32_t, GNI_SOME, v[c] |= (int32_t)((y & (uint32_t)at) != 0))
GNI_COLUMNS(gni_columns_all, uint32_t, int32_t, GNI_SOME, v[c] &= (int32_t)((y & (uint32_t)at) != 0))
GNI_COLUMNS_TRUTH(gni_columns_any_f, gni_columns_any, INT32_MAX)
GNI_COLUMNS_TRUTH(gni_columns_any_i, gni_columns_any, -1)
GNI_COLUMNS_TRUTH(gni_columns_all_f, gni_columns_all, INT32_MAX)
GNI_COLUMNS_TRUTH(gni_columns_all_i, gni_columns_all, -1)
GNI_COLUMNS(gni_columns_argmin_i, int32_t, int32_t, 1, GNI_PLACE_STEP(y < v[c]))
GNI_COLUMNS(gni_columns_argmin_u, uint32_t, uint32_t, 1, GNI_PLACE_STEP(y < v[c]))
GNI_COLUMNS(gni_columns_argmax_i, int32_t, int32_t, 1, GNI_PLACE_STEP(y > v[c]))
GNI_COLUMNS(gni_columns_argmax_u, uint32_t, uint32_t, 1, GNI_PLACE_STEP(y > v[c]))

#define GNI_LOOP(op, d) GNI_FN(gni_columns_##op##_##d)
static const gni_fold_columns_fn GNI_FN(gni_columns_table)[GNI_RED_COUNT * 3] = {GNI_FOLD_ROWS};
#undef GNI_LOOP
