// >>tables
// What one pass of the SIMD rooms offers to the CPU backend: tables of functions, the types in them, and the numbers
// that both sides must agree on. A pass is all SIMD rooms compiled for one instruction set.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/kinds.h"
#endif

// Where the hardware does not tell, gni_isa_best is the pass that every CPU of the target runs.
typedef enum gni_isa {
    GNI_ISA_PLAIN,
    GNI_ISA_BASE,
    GNI_ISA_AVX2,
    GNI_ISA_AVX512,
    GNI_ISA_COUNT
} gni_isa;

// ---- elementwise work, reductions, softmax, random numbers

#define GNI_SUM_BLOCK 1024  // elements summed in float32 before float64 takes over
#define GNI_COLUMN_BLOCK 32 // the same for rows of column sums
#define GNI_BAND 1024       // columns at once at most

// A root takes a tenth of the time; pow has other values for two numbers.
GNI_INLINE double gni_pow(double a, double b) { return b == 0.5 ? fabs(sqrt(a == -GNI_INF ? GNI_INF : a)) : pow(a, b); }

// One instruction on a block: n elements, a multiple of 16; dst may be any of the sources.
typedef void (*gni_kernel)(void *dst, const void *a, const void *b, const void *c, int n);
// n elements of memory to a register, or of a register to memory.
typedef void (*gni_convert_fn)(void *dst, const void *src, int64_t n);

// What a reduction has gathered so far. `d` is for floats, `i` for integers and truth values; `e` is
// what rounding took away from `d` in a wide sum, `at` the place of the smallest or largest.
// Float sums are d + e, or d times 2^512 where a partial sum would leave float64's range and e is NaN. Float products are
// d times 2^e.
typedef struct gni_acc {
    double d, e;
    int64_t i, at;
} gni_acc;
// Not 0 if x is NaN or beyond 2^(2^(bits - 1)) on either side of 1. Sums of them by | tell of several.
GNI_INLINE uint64_t gni_beyond(double x, int bits) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return ((u & (uint64_t)0x7ff << 52) - ((uint64_t)(1024 - (1 << (bits - 1))) << 52)) >> (52 + bits);
}
// d times 2^e is multiplied by x.
GNI_MAYBE_UNUSED GNI_NOINLINE static void gni_acc_multiply_beyond(double *d, double *e, double x) {
    int i = 0, k = 0;
    *d = frexp(*d, &i) * frexp(x, &k);
    *e += i + k;
}
GNI_INLINE void gni_acc_multiply(double *d, double *e, double x) {
    const double y = *d * x;
    if (gni_beyond(y, 10) != 0)
        gni_acc_multiply_beyond(d, e, x);
    else
        *d = y;
}
#define GNI_FAR 1.340780792994259709957e154  // 2^512
#define GNI_NEAR 7.458340731200206743290e-155 // 2^-512
// acc += x, keeping what rounding takes away (Neumaier 1974; Knuth's way to it takes no branch that data decide).
GNI_INLINE void gni_acc_add(double *d, double *e, double x) {
    const double t = *d + x, up = t - *d;
    double rest = *e + ((*d - (t - up)) + (x - up));
    if (rest - rest == 0.0) {
        *d = t;
    } else { // see gni_acc
        *d = (*e == *e ? *d * GNI_NEAR + *e * GNI_NEAR : *d) + x * GNI_NEAR;
        rest = GNI_NAN;
    }
    *e = rest;
}

// Takes n elements in; `at` is the place of the first. A place is an index among the reduced elements. Sums take the parts of
// complex numbers with GNI_PAIRS_AT, those of real parts into the first of two accumulators.
enum { GNI_PAIRS_AT = -1 };
typedef void (*gni_fold_fn)(gni_acc *acc, const void *x, int64_t n, int64_t at);

// Accumulators of neighbouring columns: 8 bytes each in `v` (float64 sums and products, int64, float32
// or int32 extremes), `e` and `at` as in gni_acc.
typedef struct gni_acc_columns {
    void *v;
    double *e;
    int64_t *at;
} gni_acc_columns;
// Takes `rows` rows of n columns in, row r at x + r * stride elements and with place at + r.
typedef void (*gni_fold_columns_fn)(gni_acc_columns *acc, const void *x, int64_t rows,
                                    int64_t stride, int64_t n, int64_t at);

// Pieces of a softmax row. `stats` finds the largest element and the sum of exp(x - it), and stores the
// terms at y unless that is NULL; the others make y from x.
typedef struct gni_softmax_part {
    double most, sum;
} gni_softmax_part;
typedef struct gni_softmax_fns {
    gni_softmax_part (*stats)(void *y, const void *x, int64_t n);
    void (*scale)(void *y, const void *x, int64_t n, double factor); // x * factor
    void (*emit)(void *y, const void *x, int64_t n, double most,
                 double factor); // exp(x - most) * factor
    void (*emit_log)(void *y, const void *x, int64_t n, double most, double low); // x - most - low
    void (*columns)(float *x, int64_t n, int64_t rows,
                    gni_softmax_kind kind); // many short rows, transposed
} gni_softmax_fns;

// Attention's scores s, rows of them `step` apart. A column is a query; columns are a multiple of the pass's lanes.
typedef struct gni_attend_isa {
    // s becomes exp(s - most), most and sum take it in; `keep` is what earlier sums are to be multiplied by. False: 1
    // everywhere.
    bool (*fold)(float *s, int64_t step, int64_t rows, int64_t cols, float *most, float *sum, float *keep);
    void (*times)(float *x, int64_t step, int64_t rows, int64_t cols, const float *factor);
    // s becomes exp(s - lse), and ds that times (ds - dot) scale
    void (*back)(float *s, float *ds, int64_t step, int64_t rows, int64_t cols, const float *lse, const float *dot,
                 float scale);
} gni_attend_isa;

// What one pass offers. Kernels are indexed by GNI_INSN_CODE, folds by reduction * 3 + domain.
#define GNI_NET_ROWS 16

typedef struct gni_cpu_isa {
    gni_kernel const *kernel; // NULL in `wide`
    gni_convert_fn const *load, *store; // by dtype, NULL where the register is the same as memory
    gni_fold_fn const *fold;
    gni_fold_columns_fn const *fold_columns;
    // past the caches, while as many bytes from `next` on are fetched for what comes then
    void (*stream)(void *dst, const void *src, int64_t bytes, const char *next);
    void (*fill)(void *dst, uint64_t word, int64_t bytes); // the bytes of word again and again; NULL: gni_copy_repeat does
    // s[0] += the sum of h, s[1] += that of h (x - mean): h is gy w, w is 1 where it is NULL, or without gy x - mean
    void (*norm_sums)(double s[2], const float *x, const float *gy, const float *w, int64_t n, float mean);
    // With z = (x - c[0]) c[1]: y = z w + b + c[2], with gy z c[4] + gy w c[3] + c[2]; y may be x
    void (*norm_write)(float *y, const float *x, const float *gy, const float *w, const float *b, int64_t n,
                       const float c[5]);
    // gw += gy (x - mean) scale and gb += gy, each where it is not NULL
    void (*norm_add)(float *gw, float *gb, const float *x, const float *gy, int64_t n, float mean, float scale);
    void (*net)(int32_t *x, int64_t n); // sorts n numbers in each of GNI_NET_ROWS rows that are side by side: x (n,rows)
    // Of complex numbers as they lie in memory, n parts; NULL: there are none.
    gni_kernel pair_product, pair_conj, pair_quotient;
    gni_kernel pair_dot; // sums of a b, and 64 bytes further of a by b's other part, by lanes of a vector
    const struct gni_cpu_isa *wide; // the same for registers of 64 bits, up to `fold_columns` and those of pairs
    gni_kernel (*wide_kernel)(uint32_t code); // and its kernel of a GNI_INSN_CODE; NULL: it is in room `cpu_wide`
} gni_cpu_isa;

// Kernels of GNI_INSN_CODE in registers of 32 bits that are in a table of their own, see gni_math.
typedef struct gni_math_isa {
    gni_kernel (*kernel)(uint32_t code);
} gni_math_isa;

// Philox blocks first to first + blocks - 1, four words each; floats are by[0] times the number and by[1].
typedef struct gni_random_isa {
    void (*bits)(uint32_t *dst, uint64_t seed, uint64_t first, uint32_t third, int64_t blocks);
    void (*uniform)(float *dst, uint64_t seed, uint64_t first, const float *by, int64_t blocks);
    void (*normal)(float *dst, uint64_t seed, uint64_t first, const float *by, int64_t blocks);
    void (*decaying)(float *dst, uint64_t seed, uint64_t first, const float *by, int64_t blocks);
} gni_random_isa;

// ---- matrix products

#define GNI_GEMM_MAX_ROWS 16 // more than the rows of any tile

// One register tile: c (rows,cols) = a (rows,k) b (k,cols), strides in elements.
typedef struct gni_gemm_tile {
    int64_t k;
    const void *a; // (i,p) at a + i * a_rs + p * a_cs
    int64_t a_rs, a_cs;
    const void *b; // row p at b + p * b_rs; the tile's full width is read, but where tiles clip
    int64_t b_rs;
    void *c;
    int64_t c_rs;
    int cols;          // columns of c that exist
    int act;           // 0 none, 1 relu
    bool add;          // to what c holds
    bool fetch;        // c comes from far away
    const float *bias; // (cols) or NULL
    // Of float32's whole tiles of many rows: a has so many lines (0 = 1) of k, a_jump behind the one before, and b, b_jump
    // behind.
    int64_t lines, a_jump, b_jump;
} gni_gemm_tile;

typedef void (*gni_gemm_tile_fn)(const gni_gemm_tile *t);

// d[p * dw + i] = s[i * is + p * ps] for i < w and p < k, 0 for w <= i < dw. May write up to one vector
// past the end of d.
typedef void (*gni_gemm_pack_fn)(void *d, int64_t dw, const void *s, int64_t is, int64_t ps,
                                 int64_t w, int64_t k);

// Tiles of one kind of number.
typedef struct gni_gemm_family {
    int rows;  // of the largest tile
    int lanes; // columns of a narrow tile; a wide one has two times as many, a half one half as many
    int lined; // rows from which on tiles of float32 go along lines
    bool clip; // nothing of b is read past the columns that exist
    // [0 narrow, 1 wide, 2 half][rows], NULL where there is none
    gni_gemm_tile_fn tile[3][GNI_GEMM_MAX_ROWS + 1];
} gni_gemm_family;

// Rows of a against columns of b, both contiguous along k: c[i * c_rs + j * c_cs]. With `runs` they have so many times k
// elements, which begin at a_runs and b_runs, and column j of b is at cols[j].
typedef struct gni_gemm_dots {
    int64_t m, n, k;
    const float *a;
    int64_t a_rs;
    const float *b;
    int64_t b_cs;
    int64_t runs; // 0: one, and the three are not read
    const int64_t *a_runs, *b_runs, *cols;
    float *c;
    int64_t c_rs, c_cs;
    bool add;
    int act;
    const float *bias;
    int64_t bias_rs, bias_cs;
} gni_gemm_dots;

// y (m, runs, n) = a (m,k) times windows: n neighbours each, of row p and run r from b + rows[p] + starts[r * n] on.
typedef struct gni_gemm_views {
    int64_t m, n, k, runs;
    const float *a; // contiguous
    const float *b;
    const int64_t *rows, *starts;
    float *y;
    int64_t y_rs;
} gni_gemm_views;

// y (n) += s (k) b (k,n) with rows of b contiguous.
typedef struct gni_gemm_rows {
    int64_t n, k;
    const float *s;
    int64_t s_stride;
    const float *b;
    int64_t b_rs;
    float *y;
} gni_gemm_rows;

typedef struct gni_gemm_isa {
    const gni_gemm_family *f32, *f64, *i32, *i64;
    const gni_gemm_family *bf16; // packed in pairs along k; NULL where there is no such product
    gni_gemm_pack_fn pack_f32, pack_f16, pack_bf16, pack_64, pack_pairs;
    // w columns of k rows, that begin at s + rows[p] and are cols[i] further, packed as by pack_f32
    void (*gather)(float *d, int64_t dw, const float *s, const int64_t *rows, const int64_t *cols, int64_t w, int64_t k);
    // With bf16: takes the smallest (bits of |p[i]|) - 1 into *least for as many i as it returns.
    int64_t (*least)(const uint16_t *p, int64_t n, uint16_t *least);
    void (*dots)(const gni_gemm_dots *d);
    void (*views)(const gni_gemm_views *d);
    // c (rows,cols) = or += a b, element by element and summed over k and lines: a's (r,p) and b's p are `cols` neighbours,
    // two vectors
    void (*channels)(const gni_gemm_tile *t, int64_t rows);
    void (*add_rows)(const gni_gemm_rows *d);
    // s (rows,cols) with rows of `width` into c as (cols,rows): c[j * c_rs + i], bias along i
    void (*put_transposed)(const gni_gemm_tile *t, const float *s, int64_t rows, int64_t cols,
                       int64_t width);
    // n float32 numbers to float16 and bfloat16
    void (*narrow_f16)(uint16_t *d, const float *s, int64_t n);
    void (*narrow_bf16)(uint16_t *d, const float *s, int64_t n);
} gni_gemm_isa;

// ---- matrix decompositions

#define GNI_LA_LEAF 32 // triangles of this order are not cut further
typedef struct gni_la_isa {
    double (*dot)(const double *x, const double *y, int64_t n);
    void (*axpy)(double *y, double s, const double *x, int64_t n); // y += s x
    // y (m) = a (m,n) x
    void (*rows_dot)(double *y, const double *a, int64_t lda, const double *x, int64_t m,
                     int64_t n);
    // y (n) += x (m) a (m,n)
    void (*rows_add)(double *y, const double *a, int64_t lda, const double *x, int64_t m,
                     int64_t n);
    // y (n) += the product of x with the symmetric matrix that has rows 0 to m of the upper triangle of a (n,n),
    // their mirror image, and zeros
    void (*triangle)(double *y, const double *a, int64_t lda, const double *x, int64_t m,
                     int64_t n);
    // The lower triangle of a (n,n) becomes L with L L^T = a, n <= GNI_LA_LEAF. Returns the order of the leading
    // block that is not positive definite, 0 if all are.
    int64_t (*cholesky)(double *a, int64_t lda, int64_t n);
    // b (m,n) = b l^-T, n <= GNI_LA_LEAF
    void (*solve_right)(const double *l, int64_t ldl, int64_t n, double *b, int64_t ldb, int64_t m);
    // `count` rotations of neighbouring rows p and p + step, one after the other, `width` columns:
    // p, q = c p + s q, c q - s p. cs holds c and s of each.
    void (*rotate)(double *row, int64_t step, const double *cs, int64_t count, int64_t width);
    // Sums of square / (gap - t), and of the same with the divisor squared.
    void (*poles)(const double *gap, const double *square, double t, int64_t n, double *sum,
                  double *slope);
    // Distances of poles from the number that is t beyond `at`, or with `squares` of their squares from at^2 + t:
    // y = those, and y *= those over the same from `other`.
    void (*gaps)(double *y, const double *pole, double at, double t, bool squares, int64_t n);
    void (*ratios)(double *y, const double *pole, double at, double t, double other, bool squares,
                   int64_t n);
    double (*quotients)(double *y, const double *x, int64_t n); // y = x / y; the sum of squares
} gni_la_isa;

// ---- Fourier transforms

#define GNI_FT_MAX_PASSES 40
#define GNI_FT_MAX_PRIME 61  // larger prime factors are convolved
#define GNI_FT_MAX_TINY 16   // many transforms of these lengths stay in registers; each is text, and the rest is rare
#define GNI_FT_IS_TINY(n) ((n) == GNI_FT_MAX_TINY || ((n) >= 2 && (n) <= 12 && (n) != 11))
#define GNI_FT_MAX_DIRECT 64 // a lone transform up to this length may be a sum for each frequency

typedef struct gni_ft_pass {
    int radix;
    int64_t s, m;     // product of the radices before and after
    const void *twiddle; // (m, radix - 1) complex factors
    const void *circle; // of a prime radix from 7 on: cosines and sines
} gni_ft_pass;

// A transform of n points on rows.
typedef struct gni_ft_lane {
    int64_t n;
    int count;
    gni_ft_pass pass[GNI_FT_MAX_PASSES];
    void *table;
} gni_ft_lane;

// What one instruction set offers in one precision; said in room `fft passes`. `whole`, `head` and `tiny` may be NULL.
typedef struct gni_ft_isa {
    int lanes, max_radix;
    void *(*columns_in)(const gni_ft_lane *f, const void *src, int64_t ld, bool swap, void *work);
    void (*columns_out)(const gni_ft_lane *f, void *rows, void *dst, int64_t ld, double scale,
                        bool swap, void *work);
    void (*columns)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst,
                    int64_t dst_ld, double scale, bool swap, void *work);
    void (*batch)(const gni_ft_lane *f, const void *src, int64_t src_ld, void *dst, int64_t dst_ld,
                  int count, double scale, bool swap, void *work);
    void (*whole)(const void *src, int64_t src_ld, void *dst, int64_t dst_ld, int b, int64_t count,
                  const void *table, double scale, bool swap);
    void (*twist)(const void *columns, int64_t a, int64_t b, int64_t j, const void *table,
                  const void *factors, void *dst);
    void (*head)(const void *src, int64_t b, int64_t j, const void *table, bool swap, void *dst);
    void (*product)(void *dst, const void *src, const void *factors, int64_t n, double scale,
                    bool swap_in, bool swap_out);
    void (*fold)(void *dst, const void *src, const void *factors, int64_t from, int64_t to,
                 int64_t h, double cr, double ci, bool back, bool conj);
    void (*direct)(const void *src, void *dst, int n, const void *table, double scale, bool swap);
    void (*tiny)(const void *src, int64_t src_ld, void *dst, int64_t dst_ld, int n, int64_t count,
                 double scale, bool back);
} gni_ft_isa;

// Constants of the butterflies: cosines and sines of 2 pi i / p.
#define GNI_FT_S5_1 0.9510565162951535721164
#define GNI_FT_S5_2 0.5877852522924731291687
#define GNI_FT_C9_1 0.7660444431189780352024
#define GNI_FT_S9_1 0.6427876096865393263226
#define GNI_FT_C9_2 0.1736481776669303488517
#define GNI_FT_S9_2 0.9848077530122080593667
#define GNI_FT_C9_4 -0.9396926207859083840541
#define GNI_FT_S9_4 0.3420201433256687330441
#define GNI_FT_S3 0.8660254037844386467637
#define GNI_FT_SQRT5_4 0.5590169943749474241023
#define GNI_FT_SQRT1_2 0.7071067811865475244008
#define GNI_FT_C16 0.9238795325112867561282
#define GNI_FT_S16 0.3826834323650897717285

#ifdef GNI_GNU
#define GNI_FT_INLINE GNI_INLINE
#define GNI_FT_PREFETCH(p) __builtin_prefetch(p)
#define GNI_FT_PREFETCH_2(p) __builtin_prefetch(p, 0, 1) // to the second-level cache only
#if defined(__clang__) || __GNUC__ < 8
#define GNI_FT_UNROLL
#else
#define GNI_FT_UNROLL _Pragma("GCC unroll 16")
#endif
#define GNI_FT_KEPT __asm__ volatile("") // gcc drops loops that only prefetch
#else
#define GNI_FT_INLINE static inline
#define GNI_FT_PREFETCH(p) GNI_UNUSED(p)
#define GNI_FT_PREFETCH_2(p) GNI_UNUSED(p)
#define GNI_FT_KEPT (void)0
#define GNI_FT_UNROLL
#endif

// cos and sin of 2 pi i / n, 0 < i < n, n = 7, 11 or 13: written so that compilers fold them.
GNI_FT_INLINE double gni_ft_cos(const int n, const int i) {
    static const double of_7[] = {0.623489801858733530525, -0.2225209339563144042889, -0.9009688679024191262361};
    static const double of_11[] = {0.8412535328311811688618, 0.4154150130018864255293, -0.1423148382732851404438,
                                   -0.6548607339452850640569, -0.9594929736144973898904};
    static const double of_13[] = {0.8854560256532098959004, 0.5680647467311558025118, 0.1205366802553230533491,
                                   -0.3546048870425356259696, -0.7485107481711010986346, -0.970941817426052027157};
    const int at = (2 * i > n ? n - i : i) - 1;
    return n == 7 ? of_7[at] : n == 11 ? of_11[at] : of_13[at];
}
GNI_FT_INLINE double gni_ft_sin(const int n, const int i) {
    static const double of_7[] = {0.7818314824680298087084, 0.9749279121818236070181, 0.4338837391175581204758};
    static const double of_11[] = {0.5406408174555975821076, 0.9096319953545183714117, 0.9898214418809327323761,
                                   0.755749574354258283774, 0.2817325568414296977114};
    static const double of_13[] = {0.464723172043768545656, 0.8229838658936563945796, 0.9927088740980539928008,
                                   0.9350162426854148234398, 0.6631226582407952023768, 0.2393156642875577671488};
    const int at = (2 * i > n ? n - i : i) - 1;
    return (2 * i > n ? -1 : 1) * (n == 7 ? of_7[at] : n == 11 ? of_11[at] : of_13[at]);
}

// ---- the tables of each pass

// Parts of the implementation in files of their own see each other's tables; otherwise nobody does.
#ifndef GPUNUM_PART
#define GNI_TABLE static const
#elif defined(GNI_GNU) && !defined(_WIN32)
#define GNI_TABLE __attribute__((visibility("hidden"))) const
#else
#define GNI_TABLE const
#endif
#ifdef GPUNUM_PART
#ifdef __cplusplus
extern "C" {
#endif
#define GNI_TABLES(pass)                                                                           \
    extern GNI_TABLE gni_cpu_isa gni_isa_table_##pass;                                             \
    extern GNI_TABLE gni_softmax_fns gni_softmax_table_##pass, gni_wide_softmax_table_##pass;      \
    extern GNI_TABLE gni_math_isa gni_math_table_##pass;                                           \
    extern GNI_TABLE gni_attend_isa gni_attend_table_##pass;                                       \
    extern GNI_TABLE gni_random_isa gni_random_table_##pass;                                       \
    extern GNI_TABLE gni_gemm_isa gni_gemm_isa_##pass;                                             \
    extern GNI_TABLE gni_la_isa gni_la_isa_##pass;                                                 \
    extern GNI_TABLE gni_ft_isa gni_ft_table_f32_##pass, gni_ft_table_f64_##pass;
#ifndef GNI_NO_PLAIN
GNI_TABLES(plain)
#endif
#ifdef GNI_SIMD
GNI_TABLES(base)
#endif
#ifdef GNI_X86
GNI_TABLES(avx2)
#ifdef GNI_AVX512
GNI_TABLES(avx512)
#endif
#endif
#undef GNI_TABLES
#ifdef __cplusplus
}
#endif
#endif

// The address of NAME_PASS for the SIMD pass that `isa` says, of those that were compiled.
#if defined(GNI_AVX512)
#define GNI_OF_ISA(isa, NAME)                                                                      \
    ((isa) >= GNI_ISA_AVX512 ? &NAME##_avx512 : (isa) >= GNI_ISA_AVX2 ? &NAME##_avx2 : &NAME##_base)
#elif defined(GNI_X86)
#define GNI_OF_ISA(isa, NAME) ((isa) >= GNI_ISA_AVX2 ? &NAME##_avx2 : &NAME##_base)
#elif defined(GNI_NO_PLAIN)
#define GNI_OF_ISA(isa, NAME) (GNI_UNUSED(isa), &NAME##_base)
#elif defined(GNI_SIMD)
#define GNI_OF_ISA(isa, NAME) ((isa) >= GNI_ISA_BASE ? &NAME##_base : &NAME##_plain)
#else
#define GNI_OF_ISA(isa, NAME) (GNI_UNUSED(isa), &NAME##_plain)
#endif
