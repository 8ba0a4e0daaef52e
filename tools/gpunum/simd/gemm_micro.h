// >>gemm_micro
// Register tiles, dot products and panel packing of the matrix product, once per instruction set.
// From outside: the table GNI_FN(gni_gemm_isa).

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/tables.h"
#include "../core/half.h"
#include "../simd/simd.h"
#endif

#ifndef GNI_GEMM_SHARED // by all passes
#define GNI_GEMM_SHARED


// Tiles are written out by macros, so that every accumulator is a variable of its own: compilers keep
// those in registers at any level of optimisation.
// X(F, row, group, row in group); groups of four rows share a pointer. F is the family.
#define GNI_GM_R1(X, F) X(F, 0, 0, 0)
#define GNI_GM_R2(X, F) GNI_GM_R1(X, F) X(F, 1, 0, 1)
#define GNI_GM_R3(X, F) GNI_GM_R2(X, F) X(F, 2, 0, 2)
#define GNI_GM_R4(X, F) GNI_GM_R3(X, F) X(F, 3, 0, 3)
#define GNI_GM_R5(X, F) GNI_GM_R4(X, F) X(F, 4, 1, 0)
#define GNI_GM_R6(X, F) GNI_GM_R5(X, F) X(F, 5, 1, 1)
#define GNI_GM_R7(X, F) GNI_GM_R6(X, F) X(F, 6, 1, 2)
#define GNI_GM_R8(X, F) GNI_GM_R7(X, F) X(F, 7, 1, 3)
#define GNI_GM_R9(X, F) GNI_GM_R8(X, F) X(F, 8, 2, 0)
#define GNI_GM_R10(X, F) GNI_GM_R9(X, F) X(F, 9, 2, 1)
#define GNI_GM_R11(X, F) GNI_GM_R10(X, F) X(F, 10, 2, 2)
#define GNI_GM_R12(X, F) GNI_GM_R11(X, F) X(F, 11, 2, 3)
#define GNI_GM_R13(X, F) GNI_GM_R12(X, F) X(F, 12, 3, 0)
#define GNI_GM_R14(X, F) GNI_GM_R13(X, F) X(F, 13, 3, 1)
#define GNI_GM_G1(X, F) X(F, 0)
#define GNI_GM_G2(X, F) X(F, 0)
#define GNI_GM_G3(X, F) X(F, 0)
#define GNI_GM_G4(X, F) X(F, 0)
#define GNI_GM_G5(X, F) X(F, 0) X(F, 1)
#define GNI_GM_G6(X, F) GNI_GM_G5(X, F)
#define GNI_GM_G7(X, F) GNI_GM_G5(X, F)
#define GNI_GM_G8(X, F) GNI_GM_G5(X, F)
#define GNI_GM_G9(X, F) GNI_GM_G5(X, F) X(F, 2)
#define GNI_GM_G10(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G11(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G12(X, F) GNI_GM_G9(X, F)
#define GNI_GM_G13(X, F) GNI_GM_G9(X, F) X(F, 3)
#define GNI_GM_G14(X, F) GNI_GM_G13(X, F)

// What a family F gives: A_F the type of operands, T_F that of c, V_F a vector of it, LANES_F; SET_F,
// FMA_F, STORE_F; GET_F and PUT_F of part i of a row; BEGIN_F, SUM_F, EDGE_F, EPILOGUE_F and END_F, of
// which a tile is made.
#define GNI_GM_POINTER(F, q) const GNI_GM_A_##F *a##q = (const GNI_GM_A_##F *)t->a + 4 * q * a_rs;
#define GNI_GM_ADVANCE(F, q) a##q += a_cs;
#define GNI_GM_JUMP(F, q) a##q += t->a_jump;
// Lines of c would otherwise be waited for at the end of the tile.
#define GNI_GM_FETCH1(F, r, q, s)                                                                  \
    __builtin_prefetch(w, 1);                                                                      \
    w += c_rs;
#define GNI_GM_FETCH2(F, r, q, s)                                                                  \
    __builtin_prefetch(w, 1);                                                                      \
    __builtin_prefetch(w + GNI_GM_LANES_##F, 1);                                                   \
    w += c_rs;
#define GNI_GM_ZERO1(F, r, q, s) GNI_GM_V_##F c##r##_0 = GNI_GM_ZERO_##F;
#define GNI_GM_ZERO2(F, r, q, s)                                                                   \
    GNI_GM_V_##F c##r##_0 = GNI_GM_ZERO_##F, c##r##_1 = GNI_GM_ZERO_##F;
#define GNI_GM_STEP1(F, r, q, s)                                                                   \
    x = GNI_GM_SET_##F(a##q[s * a_rs]);                                                            \
    c##r##_0 = GNI_GM_FMA_##F(x, b0, c##r##_0);
#define GNI_GM_STEP2(F, r, q, s)                                                                   \
    x = GNI_GM_SET_##F(a##q[s * a_rs]);                                                            \
    c##r##_0 = GNI_GM_FMA_##F(x, b0, c##r##_0);                                                    \
    c##r##_1 = GNI_GM_FMA_##F(x, b1, c##r##_1);
#define GNI_GM_ADD1(F, r, q, s)                                                                    \
    c##r##_0 = GNI_GM_GET_##F(w, 0) + c##r##_0;                                                    \
    w += c_rs;
#define GNI_GM_ADD2(F, r, q, s)                                                                    \
    c##r##_0 = GNI_GM_GET_##F(w, 0) + c##r##_0;                                                    \
    c##r##_1 = GNI_GM_GET_##F(w, 1) + c##r##_1;                                                    \
    w += c_rs;
#define GNI_GM_BIAS1(F, r, q, s) c##r##_0 = c##r##_0 + bias0;
#define GNI_GM_BIAS2(F, r, q, s)                                                                   \
    c##r##_0 = c##r##_0 + bias0;                                                                   \
    c##r##_1 = c##r##_1 + bias1;
#define GNI_GM_ACT1(F, r, q, s) c##r##_0 = GNI_GM_RELU_##F(c##r##_0);
#define GNI_GM_ACT2(F, r, q, s)                                                                    \
    c##r##_0 = GNI_GM_RELU_##F(c##r##_0);                                                          \
    c##r##_1 = GNI_GM_RELU_##F(c##r##_1);
#define GNI_GM_PUT1(F, r, q, s)                                                                    \
    GNI_GM_PUT_##F(w, 0, c##r##_0);                                                                \
    w += c_rs;
#define GNI_GM_PUT2(F, r, q, s)                                                                    \
    GNI_GM_PUT_##F(w, 0, c##r##_0);                                                                \
    GNI_GM_PUT_##F(w, 1, c##r##_1);                                                                \
    w += c_rs;
#define GNI_GM_WHOLE1(F, r, q, s)                                                                  \
    GNI_GM_STORE_##F(w, c##r##_0);                                                                 \
    w += c_rs;
#define GNI_GM_WHOLE2(F, r, q, s)                                                                  \
    GNI_GM_STORE_##F(w, c##r##_0);                                                                 \
    GNI_GM_STORE_##F(w + GNI_GM_LANES_##F, c##r##_1);                                              \
    w += c_rs;
#define GNI_GM_SPILL1(F, r, q, s) GNI_GM_STORE_##F(spill + r * GNI_GM_LANES_##F, c##r##_0);
#define GNI_GM_SPILL2(F, r, q, s)                                                                  \
    GNI_GM_STORE_##F(spill + 2 * r * GNI_GM_LANES_##F, c##r##_0);                                  \
    GNI_GM_STORE_##F(spill + (2 * r + 1) * GNI_GM_LANES_##F, c##r##_1);
#define GNI_GM_B1(TAKE) b0 = TAKE(b, 0)
#define GNI_GM_B2(TAKE) b0 = TAKE(b, 0), b1 = TAKE(b, 1)
#define GNI_GM_BIASES1(F) bias0 = GNI_GM_GET_##F(t->bias, 0)
#define GNI_GM_BIASES2(F) bias0 = GNI_GM_GET_##F(t->bias, 0), bias1 = GNI_GM_GET_##F(t->bias, 1)
// The compiler is not to know that it has seen c's rows before: it would keep the address of each in
// memory from one use to the next.
#define GNI_GM_FORGET(pointer) __asm__("" : "+r"(pointer))

#define GNI_GM_SUM(F, R, N, TAKE)                                                                  \
    for (int64_t p = t->k; p > 0; p--) {                                                           \
        GNI_GM_V_##F x, GNI_GM_B##N(TAKE);                                                         \
        b += b_rs;                                                                                 \
        GNI_GM_R##R(GNI_GM_STEP##N, F);                                                            \
        GNI_GM_G##R(GNI_GM_ADVANCE, F);                                                            \
    }

// Of several lines of a, for tiles of many rows: of a few, the caller goes from line to line.
#define GNI_GM_LINES(F, R, N, TAKE)                                                                \
    for (int64_t line = t->lines;;) {                                                              \
        GNI_GM_SUM(F, R, N, TAKE)                                                                  \
        if (R < GNI_GM_LINED_##F || --line <= 0) break;                                            \
        b += t->b_jump;                                                                            \
        GNI_GM_G##R(GNI_GM_JUMP, F);                                                               \
    }

// The tile of R rows and N vectors. Every element is one chain of multiply-adds in the order of k, so
// that its bits do not depend on the tile it falls into.
#define GNI_GM_VECTOR_TILE(F, R, N)                                                                \
    static void GNI_FN(gni_gm_##F##_##R##_##N)(const gni_gemm_tile *t) {                           \
        const int64_t a_rs = t->a_rs, a_cs = t->a_cs, b_rs = t->b_rs, c_rs = t->c_rs;              \
        const GNI_GM_A_##F *b = (const GNI_GM_A_##F *)t->b;                                        \
        GNI_GM_T_##F *w = (GNI_GM_T_##F *)t->c;                                                    \
        GNI_GM_BEGIN_##F(F, R, N);                                                                 \
        if (t->fetch) {                                                                            \
            GNI_GM_R##R(GNI_GM_FETCH##N, F);                                                       \
        }                                                                                          \
        GNI_GM_G##R(GNI_GM_POINTER, F);                                                            \
        GNI_GM_R##R(GNI_GM_ZERO##N, F);                                                            \
        GNI_GM_SUM_##F(F, R, N);                                                                   \
        GNI_GM_EDGE_##F(F, R, N);                                                                  \
        if (t->add) {                                                                              \
            w = (GNI_GM_T_##F *)t->c;                                                              \
            GNI_GM_FORGET(w);                                                                      \
            GNI_GM_R##R(GNI_GM_ADD##N, F);                                                         \
        }                                                                                          \
        GNI_GM_EPILOGUE_##F(F, R, N);                                                              \
        w = (GNI_GM_T_##F *)t->c;                                                                  \
        GNI_GM_FORGET(w);                                                                          \
        GNI_GM_END_##F(F, R, N);                                                                   \
    }

// The same in plain C, in the form that compilers vectorise where they can.
#define GNI_GM_PLAIN_TILE(F, R, N)                                                                 \
    static void GNI_FN(gni_gm_##F##_##R##_##N)(const gni_gemm_tile *t) {                           \
        GNI_GM_T_##F sum[R * N * 4] = {0};                                                         \
        const GNI_GM_T_##F *a = (const GNI_GM_T_##F *)t->a, *b = (const GNI_GM_T_##F *)t->b;       \
        for (int64_t line = 0; line == 0 || line < t->lines; line++, a += t->a_jump, b += t->b_jump) \
            for (int64_t p = 0; p < t->k; p++, a += t->a_cs, b += t->b_rs) {                       \
                for (int i = 0; i < R; i++) {                                                      \
                    GNI_GM_T_##F x = a[i * t->a_rs];                                               \
                    for (int j = 0; j < N * 4; j++) sum[i * N * 4 + j] += x * b[j];                \
                }                                                                                  \
            }                                                                                      \
        gni_gm_put_##F(t, sum, R, N * 4);                                                          \
    }

// What families put at the end of a tile.
#define GNI_GM_SPILL_EDGE(F, R, N)                                                                 \
    if (t->cols != N * GNI_GM_LANES_##F) {                                                         \
        GNI_GM_T_##F spill[R * N * GNI_GM_LANES_##F];                                              \
        GNI_GM_R##R(GNI_GM_SPILL##N, F);                                                           \
        gni_gm_put_##F(t, spill, R, N *GNI_GM_LANES_##F);                                          \
        return;                                                                                    \
    }
#define GNI_GM_NOTHING(F, R, N) (void)0
#define GNI_GM_STORE_ALL(F, R, N) GNI_GM_R##R(GNI_GM_WHOLE##N, F)
// Masks cost something, in the sum above all; but stores to memory far away are faster with them.
#define GNI_GM_SUM_PARTS(F, R, N)                                                                  \
    if (t->cols == N * GNI_GM_LANES_##F) {                                                         \
        GNI_GM_LINES(F, R, N, GNI_GM_TAKE_##F)                                                     \
    } else {                                                                                       \
        GNI_GM_SUM(F, R, N, GNI_GM_GET_##F)                                                        \
    }
#define GNI_GM_STORE_PARTS(F, R, N)                                                                \
    if (t->cols == N * GNI_GM_LANES_##F && !t->fetch) {                                            \
        GNI_GM_R##R(GNI_GM_WHOLE##N, F);                                                           \
        return;                                                                                    \
    }                                                                                              \
    GNI_GM_R##R(GNI_GM_PUT##N, F)
#define GNI_GM_BIAS_ACT(F, R, N)                                                                   \
    if (t->bias != NULL) {                                                                         \
        GNI_GM_V_##F GNI_GM_BIASES##N(F);                                                          \
        GNI_GM_R##R(GNI_GM_BIAS##N, F);                                                            \
    }                                                                                              \
    if (t->act == 1) {                                                                             \
        GNI_GM_R##R(GNI_GM_ACT##N, F);                                                             \
    }

// Defines the tiles of a family of at most `rows` rows, by N vectors.
#define GNI_GM_MAKE4(KIND, F, N)                                                                   \
    GNI_GM_##KIND##_TILE(F, 1, N) GNI_GM_##KIND##_TILE(F, 2, N) GNI_GM_##KIND##_TILE(F, 4, N)
#define GNI_GM_MAKE6(KIND, F, N)                                                                   \
    GNI_GM_MAKE4(KIND, F, N)                                                                       \
    GNI_GM_##KIND##_TILE(F, 3, N) GNI_GM_##KIND##_TILE(F, 5, N) GNI_GM_##KIND##_TILE(F, 6, N)
#define GNI_GM_MAKE8(KIND, F, N) GNI_GM_MAKE4(KIND, F, N) GNI_GM_##KIND##_TILE(F, 8, N)
#define GNI_GM_MAKE14(KIND, F, N)                                                                  \
    GNI_GM_MAKE6(KIND, F, N)                                                                       \
    GNI_GM_##KIND##_TILE(F, 7, N) GNI_GM_##KIND##_TILE(F, 8, N) GNI_GM_##KIND##_TILE(F, 10, N)     \
        GNI_GM_##KIND##_TILE(F, 12, N) GNI_GM_##KIND##_TILE(F, 14, N)
// Their table by rows.
#define GNI_GM_TILES4(F, N)                                                                        \
    {                                                                                              \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), NULL,                        \
            GNI_FN(gni_gm_##F##_4_##N)                                                             \
    }
#define GNI_GM_TILES6(F, N)                                                                        \
    {                                                                                              \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), GNI_FN(gni_gm_##F##_3_##N),  \
            GNI_FN(gni_gm_##F##_4_##N), GNI_FN(gni_gm_##F##_5_##N), GNI_FN(gni_gm_##F##_6_##N)     \
    }
#define GNI_GM_TILES8(F, N)                                                                        \
    {                                                                                              \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), NULL,                        \
            GNI_FN(gni_gm_##F##_4_##N), NULL, NULL, NULL, GNI_FN(gni_gm_##F##_8_##N)               \
    }
#define GNI_GM_TILES14(F, N)                                                                       \
    {                                                                                              \
        NULL, GNI_FN(gni_gm_##F##_1_##N), GNI_FN(gni_gm_##F##_2_##N), GNI_FN(gni_gm_##F##_3_##N),  \
            GNI_FN(gni_gm_##F##_4_##N), GNI_FN(gni_gm_##F##_5_##N), GNI_FN(gni_gm_##F##_6_##N),    \
            GNI_FN(gni_gm_##F##_7_##N), GNI_FN(gni_gm_##F##_8_##N), NULL,                          \
            GNI_FN(gni_gm_##F##_10_##N), NULL, GNI_FN(gni_gm_##F##_12_##N), NULL,                  \
            GNI_FN(gni_gm_##F##_14_##N)                                                            \
    }
#define GNI_GM_JOIN_(a, b) a##b
#define GNI_GM_JOIN(a, b) GNI_GM_JOIN_(a, b)
// A family's narrow and wide tiles, and the table NAME of it.
#define GNI_GM_FAMILY(NAME, KIND, F, most, lanes)                                                  \
    GNI_GM_JOIN(GNI_GM_MAKE, most)                                                                 \
    (KIND, F, 1) GNI_GM_JOIN(GNI_GM_MAKE, most)(KIND, F, 2) static const gni_gemm_family NAME = {  \
        most,                                                                                      \
        lanes,                                                                                     \
        4,                                                                                         \
        false,                                                                                     \
        {GNI_GM_JOIN(GNI_GM_TILES, most)(F, 1), GNI_GM_JOIN(GNI_GM_TILES, most)(F, 2), {NULL}}};

// float32
#define GNI_GM_A_f32 float
#define GNI_GM_T_f32 float
#define GNI_GM_V_f32 gni_vf
#define GNI_GM_LANES_f32 GNI_VW
#define GNI_GM_LINED_f32 4
#define GNI_GM_ZERO_f32 gni_vset(0)
#define GNI_GM_SET_f32(x) gni_vset(x)
#define GNI_GM_FMA_f32(a, b, c) gni_vfma(a, b, c)
#define GNI_GM_STORE_f32(p, v) gni_vstore(p, v)
#define GNI_GM_GET_f32(p, i) gni_vload((p) + i * GNI_VW)
#define GNI_GM_SUM_f32(F, R, N) GNI_GM_LINES(F, R, N, GNI_GM_GET_f32)
#define GNI_GM_RELU_f32(v) GNI_FN(gni_gm_relu)(v)
#define GNI_GM_BEGIN_f32(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_f32(F, R, N) GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_f32(F, R, N) GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_f32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float32 whose edges are masked
#define GNI_GM_A_m32 float
#define GNI_GM_T_m32 float
#define GNI_GM_V_m32 __m512
#define GNI_GM_LANES_m32 16
#define GNI_GM_LINED_m32 7
#define GNI_GM_ZERO_m32 _mm512_setzero_ps()
#define GNI_GM_SET_m32(x) _mm512_set1_ps(x)
#define GNI_GM_FMA_m32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define GNI_GM_STORE_m32(p, v) _mm512_storeu_ps(p, v)
#define GNI_GM_TAKE_m32(p, i) _mm512_loadu_ps((p) + i * 16)
#define GNI_GM_SUM_m32(F, R, N) GNI_GM_SUM_PARTS(F, R, N)
#define GNI_GM_GET_m32(p, i) _mm512_maskz_loadu_ps(mask##i, (p) + i * 16)
#define GNI_GM_PUT_m32(p, i, v) _mm512_mask_storeu_ps((p) + i * 16, mask##i, v)
#define GNI_GM_RELU_m32(v) _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), v) // keeps NaN
#define GNI_GM_MASKS1 mask0 = GNI_FN(gni_gm_mask)(t->cols)
#define GNI_GM_MASKS2 GNI_GM_MASKS1, mask1 = GNI_FN(gni_gm_mask)(t->cols - 16)
#define GNI_GM_BEGIN_m32(F, R, N) const __mmask16 GNI_GM_MASKS##N
#define GNI_GM_EDGE_m32(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_m32(F, R, N) GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_m32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float32, 8 columns or less: half the cost on CPUs that take 512 bits in two steps
#define GNI_GM_A_h32 float
#define GNI_GM_T_h32 float
#define GNI_GM_V_h32 __m256
#define GNI_GM_LANES_h32 8
#define GNI_GM_LINED_h32 99 // none
#define GNI_GM_ZERO_h32 _mm256_setzero_ps()
#define GNI_GM_SET_h32(x) _mm256_set1_ps(x)
#define GNI_GM_FMA_h32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define GNI_GM_STORE_h32(p, v) _mm256_storeu_ps(p, v)
#define GNI_GM_TAKE_h32(p, i) _mm256_loadu_ps(p)
#define GNI_GM_SUM_h32(F, R, N) GNI_GM_SUM_PARTS(F, R, N)
#define GNI_GM_GET_h32(p, i) _mm256_maskz_loadu_ps(mask, p)
#define GNI_GM_PUT_h32(p, i, v) _mm256_mask_storeu_ps(p, mask, v)
#define GNI_GM_RELU_h32(v) _mm256_max_ps(_mm256_setzero_ps(), v)
#define GNI_GM_BEGIN_h32(F, R, N) const __mmask8 mask = (__mmask8)GNI_FN(gni_gm_mask)(t->cols)
#define GNI_GM_EDGE_h32(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_h32(F, R, N) GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_h32(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// bfloat16 in pairs, summed in float32
#define GNI_GM_A_b16 uint32_t
#define GNI_GM_T_b16 float
#define GNI_GM_V_b16 __m512
#define GNI_GM_LANES_b16 16
#define GNI_GM_ZERO_b16 _mm512_setzero_ps()
#define GNI_GM_SET_b16(x) _mm512_castsi512_ps(_mm512_set1_epi32((int)(x)))
#define GNI_GM_FMA_b16(a, b, c) GNI_FN(gni_gm_pairs)(a, b, c)
#define GNI_GM_STORE_b16(p, v) _mm512_storeu_ps(p, v)
#define GNI_GM_TAKE_b16(p, i) _mm512_loadu_ps((p) + i * 16)
#define GNI_GM_SUM_b16(F, R, N) GNI_GM_SUM(F, R, N, GNI_GM_TAKE_b16)
#define GNI_GM_GET_b16(p, i) GNI_GM_GET_m32(p, i)
#define GNI_GM_PUT_b16(p, i, v) GNI_GM_PUT_m32(p, i, v)
#define GNI_GM_RELU_b16(v) GNI_GM_RELU_m32(v)
#define GNI_GM_BEGIN_b16(F, R, N) GNI_GM_BEGIN_m32(F, R, N)
#define GNI_GM_EDGE_b16(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_END_b16(F, R, N) GNI_GM_STORE_PARTS(F, R, N)
#define GNI_GM_EPILOGUE_b16(F, R, N) GNI_GM_BIAS_ACT(F, R, N)

// float64
#define GNI_GM_A_f64 double
#define GNI_GM_T_f64 double
#define GNI_GM_V_f64 GNI_FN(gni_gm_vd)
#define GNI_GM_LANES_f64 (GNI_VW / 2)
#define GNI_GM_ZERO_f64 GNI_FN(gni_gm_setd)(0)
#define GNI_GM_SET_f64(x) GNI_FN(gni_gm_setd)(x)
#define GNI_GM_FMA_f64(a, b, c) GNI_FN(gni_gm_fmad)(a, b, c)
#define GNI_GM_LOAD_f64(p) GNI_FN(gni_gm_loadd)(p)
#define GNI_GM_STORE_f64(p, v) memcpy(p, &(v), sizeof(v))
#define GNI_GM_GET_f64(p, i) GNI_GM_LOAD_f64((p) + i * GNI_GM_LANES_f64)
#define GNI_GM_SUM_f64(F, R, N) GNI_GM_SUM(F, R, N, GNI_GM_GET_f64)
#define GNI_GM_BEGIN_f64(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_f64(F, R, N) GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_f64(F, R, N) GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_f64(F, R, N) GNI_GM_NOTHING(F, R, N)

// int32 and int64, unsigned so that they wrap
#define GNI_GM_A_i32 uint32_t
#define GNI_GM_T_i32 uint32_t
#define GNI_GM_V_i32 gni_vu
#define GNI_GM_LANES_i32 GNI_VW
#define GNI_GM_ZERO_i32 gni_vsetu(0)
#define GNI_GM_SET_i32(x) gni_vsetu(x)
#define GNI_GM_FMA_i32(a, b, c) ((a) * (b) + (c))
#define GNI_GM_STORE_i32(p, v) gni_vstoreu(p, v)
#define GNI_GM_GET_i32(p, i) gni_vloadu((p) + i * GNI_VW)
#define GNI_GM_SUM_i32(F, R, N) GNI_GM_SUM(F, R, N, GNI_GM_GET_i32)
#define GNI_GM_BEGIN_i32(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_i32(F, R, N) GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_i32(F, R, N) GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_i32(F, R, N) GNI_GM_NOTHING(F, R, N)

#define GNI_GM_A_i64 uint64_t
#define GNI_GM_T_i64 uint64_t
#define GNI_GM_V_i64 GNI_FN(gni_gm_vl)
#define GNI_GM_LANES_i64 (GNI_VW / 2)
#define GNI_GM_ZERO_i64 GNI_FN(gni_gm_setl)(0)
#define GNI_GM_SET_i64(x) GNI_FN(gni_gm_setl)(x)
#define GNI_GM_FMA_i64(a, b, c) ((a) * (b) + (c))
#define GNI_GM_LOAD_i64(p) GNI_FN(gni_gm_loadl)(p)
#define GNI_GM_STORE_i64(p, v) memcpy(p, &(v), sizeof(v))
#define GNI_GM_GET_i64(p, i) GNI_GM_LOAD_i64((p) + i * GNI_GM_LANES_i64)
#define GNI_GM_SUM_i64(F, R, N) GNI_GM_SUM(F, R, N, GNI_GM_GET_i64)
#define GNI_GM_BEGIN_i64(F, R, N) GNI_GM_NOTHING(F, R, N)
#define GNI_GM_EDGE_i64(F, R, N) GNI_GM_SPILL_EDGE(F, R, N)
#define GNI_GM_END_i64(F, R, N) GNI_GM_STORE_ALL(F, R, N)
#define GNI_GM_EPILOGUE_i64(F, R, N) GNI_GM_NOTHING(F, R, N)

// Stores `spill` (rows,width) where t says, clipped to its columns.
GNI_MAYBE_UNUSED GNI_NOINLINE static void gni_gm_put_f32(const gni_gemm_tile *t, const float *spill, int rows, int width) {
    float *c = (float *)t->c;
    for (int i = 0; i < rows; i++, c += t->c_rs, spill += width) {
        for (int j = 0; j < t->cols; j++) {
            float v = t->add ? c[j] + spill[j] : spill[j];
            if (t->bias != NULL) v += t->bias[j];
            c[j] = t->act == 1 && v < 0 ? 0 : v;
        }
    }
}

#define GNI_GM_DEFINE_PUT(F)                                                                       \
    GNI_NOINLINE static void gni_gm_put_##F(const gni_gemm_tile *t, const GNI_GM_T_##F *spill,     \
                                            int rows, int width) {                                 \
        GNI_GM_T_##F *c = (GNI_GM_T_##F *)t->c;                                                    \
        for (int i = 0; i < rows; i++, c += t->c_rs, spill += width) {                             \
            for (int j = 0; j < t->cols; j++) c[j] = t->add ? c[j] + spill[j] : spill[j];          \
        }                                                                                          \
    }
GNI_GM_DEFINE_PUT(f64)
GNI_GM_DEFINE_PUT(i32)
GNI_GM_DEFINE_PUT(i64)

GNI_MAYBE_UNUSED static void gni_gm_put_transposed_any(const gni_gemm_tile *t, const float *s, int64_t rows,
                                  int64_t cols, int64_t width) {
    float *c = (float *)t->c;
    for (int64_t j = 0; j < cols; j++, c += t->c_rs) {
        for (int64_t i = 0; i < rows; i++) {
            float v = s[i * width + j];
            if (t->add) v = c[i] + v;
            if (t->bias != NULL) v += t->bias[i];
            c[i] = t->act == 1 && v < 0 ? 0 : v;
        }
    }
}

// Four columns of row i from j, or as many as there are.
static void gni_gm_put_dots(const gni_gemm_dots *d, int64_t i, int64_t j, const float *total) {
    float *c = d->c + i * d->c_rs + j * d->c_cs;
    const int64_t n = GNI_MIN(d->n - j, 4);
    for (int64_t q = 0; q < n; q++, c += d->c_cs) {
        float v = d->add ? *c + total[q] : total[q];
        if (d->bias != NULL) v += d->bias[i * d->bias_rs + (j + q) * d->bias_cs];
        *c = d->act == 1 && v < 0 ? 0 : v;
    }
}

static int64_t gni_gm_dots_column(const gni_gemm_dots *d, int64_t j) { return d->runs > 0 ? d->cols[j] : j * d->b_cs; }

// Packing for any strides.
#define GNI_GM_DEFINE_PACK(TYPE, D, S, CONVERT)                                                    \
    static void gni_gm_pack_any_##TYPE(void *dst, int64_t dw, const void *src, int64_t is,         \
                                       int64_t ps, int64_t w, int64_t k) {                         \
        D *d = (D *)dst;                                                                           \
        const S *s = (const S *)src;                                                               \
        for (int64_t p = 0; p < k; p++, d += dw, s += ps) {                                        \
            for (int64_t i = 0; i < w; i++) d[i] = CONVERT(s[i * is]);                             \
            for (int64_t i = w; i < dw; i++) d[i] = 0;                                             \
        }                                                                                          \
    }
#define GNI_GM_SAME(x) (x)
GNI_GM_DEFINE_PACK(f32, float, float, GNI_GM_SAME)
GNI_GM_DEFINE_PACK(f16, float, uint16_t, gni_f16_to_f32)
GNI_GM_DEFINE_PACK(bf16, float, uint16_t, gni_bf16_to_f32)
GNI_GM_DEFINE_PACK(some_64, uint64_t, uint64_t, GNI_GM_SAME)

GNI_MAYBE_UNUSED static void gni_gm_gather_any(float *d, int64_t dw, const float *s, const int64_t *rows,
                                               const int64_t *cols, int64_t w, int64_t k) {
    for (int64_t p = 0; p < k; p++, d += dw) {
        for (int64_t i = 0; i < w; i++) d[i] = s[rows[p] + cols[i]];
        for (int64_t i = w; i < dw; i++) d[i] = 0;
    }
}

static void gni_gm_pack_any_64(void *dst, int64_t dw, const void *src, int64_t is, int64_t ps,
                               int64_t w, int64_t k) {
    if (is != 1 || w != dw) {
        gni_gm_pack_any_some_64(dst, dw, src, is, ps, w, k);
        return;
    }
    for (int64_t p = 0; p < k; p++)
        memcpy((uint64_t *)dst + p * dw, (const uint64_t *)src + p * ps, (size_t)w * 8);
}

#endif // GNI_GEMM_SHARED

#if defined(GNI_PASS_PLAIN)

GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), PLAIN, f32, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), PLAIN, f64, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i32), PLAIN, i32, 4, 4)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i64), PLAIN, i64, 4, 4)

static void GNI_FN(gni_gm_dots)(const gni_gemm_dots *d) {
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j += 4) {
            float total[4] = {0};
            for (int64_t q = 0; q < GNI_MIN(d->n - j, 4); q++) {
                float sum[8] = {0};
                for (int64_t r = 0; r == 0 || r < d->runs; r++) {
                    const float *a = d->a + i * d->a_rs + (d->runs > 0 ? d->a_runs[r] : 0);
                    const float *b = d->b + gni_gm_dots_column(d, j + q) + (d->runs > 0 ? d->b_runs[r] : 0);
                    int64_t p = 0;
                    for (; p + 8 <= d->k; p += 8) {
                        for (int l = 0; l < 8; l++) sum[l] += a[p + l] * b[p + l];
                    }
                    for (; p < d->k; p++) sum[p & 7] += a[p] * b[p];
                }
                for (int l = 0; l < 4; l++) sum[l] += sum[l + 4];
                total[q] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
            }
            gni_gm_put_dots(d, i, j, total);
        }
    }
}

static void GNI_FN(gni_gm_views)(const gni_gemm_views *d) {
    for (int64_t i = 0; i < d->m; i++)
        for (int64_t j = 0; j < d->runs * d->n; j++) {
            const float *b = d->b + d->starts[j / d->n * d->n] + j % d->n;
            float sum = 0;
            for (int64_t p = 0; p < d->k; p++) sum += d->a[i * d->k + p] * b[d->rows[p]];
            d->y[i * d->y_rs + j] = sum;
        }
}

static void GNI_FN(gni_gm_channels)(const gni_gemm_tile *t, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) {
        float *c = (float *)t->c + r * t->c_rs;
        const float *a = (const float *)t->a + r * t->a_rs, *b = (const float *)t->b;
        for (int i = 0; i < t->cols && !t->add; i++) c[i] = 0;
        for (int64_t line = 0; line == 0 || line < t->lines; line++, a += t->a_jump)
            for (int64_t p = 0; p < t->k; p++, a += t->a_cs, b += t->b_rs)
                for (int i = 0; i < t->cols; i++) c[i] += a[i] * b[i];
    }
}

static void GNI_FN(gni_gm_add_rows)(const gni_gemm_rows *d) {
    for (int64_t p = 0; p < d->k; p++) {
        const float x = d->s[p * d->s_stride], *b = d->b + p * d->b_rs;
        for (int64_t j = 0; j < d->n; j++) d->y[j] += x * b[j];
    }
}

#else // a pass with vectors

// Vectors of double (vd) and of uint64 (vl).
typedef double GNI_FN(gni_gm_vd) __attribute__((vector_size(GNI_VW * 4)));
typedef uint64_t GNI_FN(gni_gm_vl) __attribute__((vector_size(GNI_VW * 4)));

GNI_INLINE GNI_FN(gni_gm_vd) GNI_FN(gni_gm_loadd)(const double *p) {
    GNI_FN(gni_gm_vd) v;
    memcpy(&v, p, sizeof v);
    return v;
}
GNI_INLINE GNI_FN(gni_gm_vl) GNI_FN(gni_gm_loadl)(const uint64_t *p) {
    GNI_FN(gni_gm_vl) v;
    memcpy(&v, p, sizeof v);
    return v;
}
GNI_INLINE GNI_FN(gni_gm_vd) GNI_FN(gni_gm_setd)(double x) {
#if defined(GNI_PASS_AVX512)
    return (GNI_FN(gni_gm_vd))_mm512_set1_pd(x);
#elif GNI_VW == 8
    GNI_FN(gni_gm_vd) v = {x, x, x, x};
    return v;
#else
    GNI_FN(gni_gm_vd) v = {x, x};
    return v;
#endif
}
GNI_INLINE GNI_FN(gni_gm_vl) GNI_FN(gni_gm_setl)(uint64_t x) {
    GNI_FN(gni_gm_vl) v = {0};
    return v + x;
}
GNI_INLINE GNI_FN(gni_gm_vd)
    GNI_FN(gni_gm_fmad)(GNI_FN(gni_gm_vd) a, GNI_FN(gni_gm_vd) b, GNI_FN(gni_gm_vd) c) {
#if defined(GNI_PASS_AVX512)
    return (GNI_FN(gni_gm_vd))_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(GNI_PASS_AVX2)
    return (GNI_FN(gni_gm_vd))_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif GNI_V_NEON
    return (GNI_FN(gni_gm_vd))vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif GNI_V_WASM && defined(__wasm_relaxed_simd__)
    return (GNI_FN(gni_gm_vd))wasm_f64x2_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
    return a * b + c;
#endif
}
// NaN stays.
GNI_INLINE gni_vf GNI_FN(gni_gm_relu)(gni_vf v) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)GNI_GM_RELU_m32((__m512)v);
#elif defined(GNI_PASS_AVX2)
    return (gni_vf)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
#else
    return gni_vi_float(gni_vf_bits(v) & ~(gni_vi)(v < 0));
#endif
}

#if defined(GNI_PASS_AVX512)
GNI_INLINE __mmask16 GNI_FN(gni_gm_mask)(int64_t n) {
    return (__mmask16)(n >= 16 ? 0xFFFF : n <= 0 ? 0 : (1 << n) - 1);
}
GNI_INLINE __mmask32 GNI_FN(gni_gm_mask_32)(int64_t n) {
    return n >= 32 ? 0xFFFFFFFFu : n <= 0 ? 0 : (1u << n) - 1u;
}

// c + a * b for the upper half of each pair, then for the lower one, each rounded once. Written so
// because not every compiler that makes AVX-512 has a name for it.
GNI_INLINE __m512 GNI_FN(gni_gm_pairs)(__m512 a, __m512 b, __m512 c) {
    __asm__("{vdpbf16ps %2, %1, %0|vdpbf16ps %0, %1, %2}" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

GNI_GM_MAKE14(VECTOR, m32, 1)
GNI_GM_MAKE14(VECTOR, m32, 2)
GNI_GM_MAKE14(VECTOR, h32, 1)
static const gni_gemm_family GNI_FN(gni_gm_family_f32) = {
    14, 16, GNI_GM_LINED_m32, true, {GNI_GM_TILES14(m32, 1), GNI_GM_TILES14(m32, 2), GNI_GM_TILES14(h32, 1)}};
GNI_GM_FAMILY(GNI_FN(gni_gm_family_bf16), VECTOR, b16, 8, 16)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), VECTOR, f64, 14, 8)
#define GNI_GM_MOST 8
#elif defined(__aarch64__)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), VECTOR, f32, 8, GNI_VW)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), VECTOR, f64, 8, (GNI_VW / 2))
#define GNI_GM_MOST 8
#else
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f32), VECTOR, f32, 6, GNI_VW)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_f64), VECTOR, f64, 6, (GNI_VW / 2))
#define GNI_GM_MOST 4
#endif
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i32), VECTOR, i32, GNI_GM_MOST, GNI_VW)
GNI_GM_FAMILY(GNI_FN(gni_gm_family_i64), VECTOR, i64, GNI_GM_MOST, (GNI_VW / 2))
#undef GNI_GM_MOST

#if !defined(GNI_PASS_AVX512) && !defined(GNI_PASS_AVX2)
GNI_NOINLINE static gni_vf GNI_FN(gni_gm_few)(const float *p, int64_t n) {
    float part[GNI_VW] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = p[i];
    return gni_vload(part);
}
#endif
#if !defined(GNI_PASS_AVX512)
GNI_NOINLINE static void GNI_FN(gni_gm_put_few)(float *p, gni_vf v, int64_t n) {
    float part[GNI_VW];
    gni_vstore(part, v);
    for (int64_t i = 0; i < n; i++) p[i] = part[i];
}
#endif
// n lanes from p, zero in the others; reads nothing past them.
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f32)(const float *p, int64_t n) {
#if defined(GNI_PASS_AVX512)
    return (gni_vf)_mm512_maskz_loadu_ps(GNI_FN(gni_gm_mask)(n), p);
#else
    if (n >= GNI_VW) return gni_vload(p);
#if defined(GNI_PASS_AVX2)
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (gni_vf)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes));
#else
    return GNI_FN(gni_gm_few)(p, n);
#endif
#endif
}
GNI_INLINE void GNI_FN(gni_gm_put_part)(float *p, gni_vf v, int64_t n) {
#if defined(GNI_PASS_AVX512)
    _mm512_mask_storeu_ps(p, GNI_FN(gni_gm_mask)(n), (__m512)v);
#else
    if (n >= GNI_VW)
        gni_vstore(p, v);
    else
        GNI_FN(gni_gm_put_few)(p, v, n);
#endif
}
#if defined(GNI_PASS_AVX512)
// The same with the mask made beforehand, for many rows of one width. Masked forms: the plain ones make gcc 12 warn in C++
// about its own header.
#define GNI_GM_MASK __mmask32
#define GNI_GM_MASK_OF(n) GNI_FN(gni_gm_mask_32)(n)
#define GNI_GM_MASKED(TYPE) GNI_FN(gni_gm_masked_##TYPE)
GNI_INLINE gni_vf GNI_FN(gni_gm_masked_f32)(const float *p, __mmask32 mask) {
    return (gni_vf)_mm512_maskz_loadu_ps((__mmask16)mask, p);
}
GNI_INLINE gni_vf GNI_FN(gni_gm_masked_f16)(const uint16_t *p, __mmask32 mask) {
    return (gni_vf)_mm512_maskz_cvtph_ps(0xFFFF, _mm256_maskz_loadu_epi16((__mmask16)mask, p));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_masked_bf16)(const uint16_t *p, __mmask32 mask) {
    __m256i h = _mm256_maskz_loadu_epi16((__mmask16)mask, p);
    __m512i u = _mm512_maskz_cvtepu16_epi32(0xFFFF, h);
    return (gni_vf)_mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, u, 16));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f16)(const uint16_t *p, int64_t n) {
    return GNI_FN(gni_gm_masked_f16)(p, GNI_FN(gni_gm_mask)(n));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_bf16)(const uint16_t *p, int64_t n) {
    return GNI_FN(gni_gm_masked_bf16)(p, GNI_FN(gni_gm_mask)(n));
}
#elif defined(GNI_PASS_AVX2)
#define GNI_GM_MASK int64_t
#define GNI_GM_MASK_OF(n) (n)
#define GNI_GM_MASKED(TYPE) GNI_FN(gni_gm_part_##TYPE)
GNI_INLINE __m128i GNI_FN(gni_gm_part_16)(const uint16_t *p, int64_t n) {
    uint16_t part[8] = {0};
    if (n < 8) {
        for (int64_t i = 0; i < n; i++) part[i] = p[i];
        p = part;
    }
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_f16)(const uint16_t *p, int64_t n) {
    return (gni_vf)_mm256_cvtph_ps(GNI_FN(gni_gm_part_16)(p, n));
}
GNI_INLINE gni_vf GNI_FN(gni_gm_part_bf16)(const uint16_t *p, int64_t n) {
    __m256i u = _mm256_cvtepu16_epi32(GNI_FN(gni_gm_part_16)(p, n));
    return (gni_vf)_mm256_castsi256_ps(_mm256_slli_epi32(u, 16));
}
#endif

// The totals of four vectors.
GNI_INLINE void GNI_FN(gni_gm_totals)(float *to, gni_vf v0, gni_vf v1, gni_vf v2, gni_vf v3) {
#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2)
#if defined(GNI_PASS_AVX512)
#define GNI_GM_FOLD(v)                                                                             \
    (_mm512_maskz_extractf32x8_ps(0xFF, (__m512)(v), 0) +                                          \
     _mm512_maskz_extractf32x8_ps(0xFF, (__m512)(v), 1))
#else
#define GNI_GM_FOLD(v) ((__m256)(v))
#endif
    __m256 h01 = _mm256_hadd_ps(GNI_GM_FOLD(v0), GNI_GM_FOLD(v1));
    __m256 h23 = _mm256_hadd_ps(GNI_GM_FOLD(v2), GNI_GM_FOLD(v3));
    h01 = _mm256_hadd_ps(h01, h23);
    _mm_storeu_ps(to, _mm256_extractf128_ps(h01, 0) + _mm256_extractf128_ps(h01, 1));
#undef GNI_GM_FOLD
#else
    float part[4][GNI_VW];
    gni_vstore(part[0], v0);
    gni_vstore(part[1], v1);
    gni_vstore(part[2], v2);
    gni_vstore(part[3], v3);
    for (int i = 0; i < 4; i++) to[i] = (part[i][0] + part[i][1]) + (part[i][2] + part[i][3]);
#endif
}

// R rows of a against four columns of b (the last one again where there are fewer).
#define GNI_GM_DOT_ZERO(F, r, q, s)                                                                \
    gni_vf c##r##_0 = gni_vset(0), c##r##_1 = c##r##_0, c##r##_2 = c##r##_0, c##r##_3 = c##r##_0;
#define GNI_GM_DOT_STEP(LOAD, r, q, s)                                                             \
    x = LOAD(a + r * a_rs + p, k - p);                                                             \
    c##r##_0 = gni_vfma(x, y0, c##r##_0);                                                          \
    c##r##_1 = gni_vfma(x, y1, c##r##_1);                                                          \
    c##r##_2 = gni_vfma(x, y2, c##r##_2);                                                          \
    c##r##_3 = gni_vfma(x, y3, c##r##_3);
#define GNI_GM_DOT_STEPS(LOAD, R)                                                                  \
    y0 = LOAD(b0 + p, k - p), y1 = LOAD(b1 + p, k - p);                                            \
    y2 = LOAD(b2 + p, k - p), y3 = LOAD(b3 + p, k - p);                                            \
    GNI_GM_R##R(GNI_GM_DOT_STEP, LOAD);
#define GNI_GM_DOT_TOTAL(F, r, q, s) GNI_FN(gni_gm_totals)(total + 4 * r, c##r##_0, c##r##_1, c##r##_2, c##r##_3);
#define GNI_GM_DOT_PUT(F, r, q, s) gni_gm_put_dots(d, i + r, j, total + 4 * r);
#if defined(GNI_PASS_AVX2) || defined(GNI_PASS_AVX512)
#define GNI_GM_CLEAR _mm256_zeroupper() // what puts the totals away may be code of SSE2
#else
#define GNI_GM_CLEAR (void)0
#endif
#define GNI_GM_WHOLE(p, n) gni_vload(p)
#define GNI_GM_DOT(R)                                                                              \
    static void GNI_FN(gni_gm_dot_##R)(const gni_gemm_dots *d, int64_t i, int64_t j) {             \
        const int64_t k = d->k, a_rs = d->a_rs, last = d->n - 1;                                   \
        const float *a = d->a + i * a_rs, *b0 = d->b + gni_gm_dots_column(d, j);                   \
        const float *b1 = d->b + gni_gm_dots_column(d, GNI_MIN(j + 1, last));                      \
        const float *b2 = d->b + gni_gm_dots_column(d, GNI_MIN(j + 2, last));                      \
        const float *b3 = d->b + gni_gm_dots_column(d, GNI_MIN(j + 3, last));                      \
        gni_vf x, y0, y1, y2, y3;                                                                  \
        GNI_GM_R##R(GNI_GM_DOT_ZERO, f32);                                                         \
        for (int64_t run = 0; run == 0 || run < d->runs; run++) {                                  \
            if (d->runs > 0) { /* the rest of the way from the run before */                       \
                const int64_t step = d->b_runs[run] - (run > 0 ? d->b_runs[run - 1] : 0);          \
                a += d->a_runs[run] - (run > 0 ? d->a_runs[run - 1] : 0);                          \
                b0 += step, b1 += step, b2 += step, b3 += step;                                    \
            }                                                                                      \
            int64_t p = 0;                                                                         \
            for (; p + GNI_VW <= k; p += GNI_VW) {                                                 \
                GNI_GM_DOT_STEPS(GNI_GM_WHOLE, R)                                                  \
            }                                                                                      \
            if (p < k) {                                                                           \
                GNI_GM_DOT_STEPS(GNI_FN(gni_gm_part_f32), R)                                       \
            }                                                                                      \
        }                                                                                          \
        float total[4 * R];                                                                        \
        GNI_GM_R##R(GNI_GM_DOT_TOTAL, f32);                                                        \
        GNI_GM_CLEAR;                                                                              \
        GNI_GM_R##R(GNI_GM_DOT_PUT, f32);                                                          \
    }
GNI_GM_DOT(1)
GNI_GM_DOT(2)
GNI_GM_DOT(4)
#undef GNI_GM_DOT
#undef GNI_GM_DOT_ZERO
#undef GNI_GM_DOT_STEP
#undef GNI_GM_DOT_STEPS
#undef GNI_GM_DOT_TOTAL
#undef GNI_GM_DOT_PUT
#undef GNI_GM_CLEAR
#undef GNI_GM_WHOLE

static void GNI_FN(gni_gm_dots)(const gni_gemm_dots *d) {
    for (int64_t j = 0; j < d->n; j += 4) {
        int64_t i = 0;
        for (; i + 4 <= d->m; i += 4) GNI_FN(gni_gm_dot_4)(d, i, j);
        for (; i + 2 <= d->m; i += 2) GNI_FN(gni_gm_dot_2)(d, i, j);
        for (; i < d->m; i++) GNI_FN(gni_gm_dot_1)(d, i, j);
    }
}

// R rows of a run against n columns, up to two vectors: the second one's may be the first one's too.
#define GNI_GM_VIEW_ZERO(F, r, q, s) gni_vf c##r##_0 = gni_vset(0), c##r##_1 = c##r##_0;
#define GNI_GM_VIEW_STEP1(F, r, q, s) c##r##_0 = gni_vfma(gni_vset(a[r * k]), b0, c##r##_0);
#define GNI_GM_VIEW_STEP2(F, r, q, s)                                                              \
    x = gni_vset(a[r * k]);                                                                        \
    c##r##_0 = gni_vfma(x, b0, c##r##_0);                                                          \
    c##r##_1 = gni_vfma(x, b1, c##r##_1);
#define GNI_GM_VIEW_PUT1(F, r, q, s) GNI_FN(gni_gm_put_part)(y + r * y_rs, c##r##_0, n);
#define GNI_GM_VIEW_PUT2(F, r, q, s)                                                               \
    gni_vstore(y + r * y_rs, c##r##_0);                                                            \
    gni_vstore(y + r * y_rs + second, c##r##_1);
#define GNI_GM_VIEW(R)                                                                             \
    static void GNI_FN(gni_gm_view_##R)(const gni_gemm_views *d, int64_t i, const float *b,        \
                                        float *y, int64_t n) {                                     \
        const int64_t k = d->k, y_rs = d->y_rs, second = n - GNI_VW;                               \
        const int64_t *rows = d->rows;                                                             \
        const float *a = d->a + i * k;                                                             \
        gni_vf x, b0, b1;                                                                          \
        GNI_GM_R##R(GNI_GM_VIEW_ZERO, f32);                                                        \
        y += i * y_rs;                                                                             \
        if (n <= GNI_VW) {                                                                         \
            for (int64_t p = 0; p < k; p++, a++) {                                                 \
                b0 = GNI_FN(gni_gm_part_f32)(b + rows[p], n);                                      \
                GNI_GM_R##R(GNI_GM_VIEW_STEP1, f32);                                               \
            }                                                                                      \
            GNI_GM_R##R(GNI_GM_VIEW_PUT1, f32);                                                    \
            return;                                                                                \
        }                                                                                          \
        for (int64_t p = 0; p < k; p++, a++) {                                                     \
            b0 = gni_vload(b + rows[p]), b1 = gni_vload(b + rows[p] + second);                     \
            GNI_GM_R##R(GNI_GM_VIEW_STEP2, f32);                                                   \
        }                                                                                          \
        GNI_GM_R##R(GNI_GM_VIEW_PUT2, f32);                                                        \
    }
GNI_GM_VIEW(1)
GNI_GM_VIEW(2)
GNI_GM_VIEW(4)
GNI_GM_VIEW(6)
#undef GNI_GM_VIEW
#undef GNI_GM_VIEW_ZERO
#undef GNI_GM_VIEW_STEP1
#undef GNI_GM_VIEW_STEP2
#undef GNI_GM_VIEW_PUT1
#undef GNI_GM_VIEW_PUT2

// Each element is one chain of multiply-adds in the order of k.
static void GNI_FN(gni_gm_views)(const gni_gemm_views *d) {
    for (int64_t r = 0; r < d->runs; r++)
        for (int64_t j = 0; j < d->n; j += 2 * GNI_VW) {
            const int64_t n = GNI_MIN(d->n - j, 2 * GNI_VW);
            const float *b = d->b + d->starts[r * d->n] + j;
            float *y = d->y + r * d->n + j;
            int64_t i = 0;
            for (; i + 6 <= d->m; i += 6) GNI_FN(gni_gm_view_6)(d, i, b, y, n);
            for (; i + 4 <= d->m; i += 4) GNI_FN(gni_gm_view_4)(d, i, b, y, n);
            for (; i + 2 <= d->m; i += 2) GNI_FN(gni_gm_view_2)(d, i, b, y, n);
            for (; i < d->m; i++) GNI_FN(gni_gm_view_1)(d, i, b, y, n);
        }
}

// Four rows at a time, two vectors wide; of fewer the last one again, which is stored once.
#define GNI_GM_CHANNEL_ZERO(F, r, q, s) gni_vf c##r##_0 = gni_vset(0), c##r##_1 = c##r##_0;
#define GNI_GM_CHANNEL_AT(F, r, q, s) const int64_t at##r = GNI_MIN(r, rows - 1) * t->a_rs;
#define GNI_GM_CHANNEL_STEP(F, r, q, s)                                                            \
    c##r##_0 = gni_vfma(gni_vload(p + at##r), b0, c##r##_0);                                       \
    c##r##_1 = gni_vfma(gni_vload(p + at##r + GNI_VW), b1, c##r##_1);
#define GNI_GM_CHANNEL_PUT(F, r, q, s)                                                             \
    if (r < rows) {                                                                                \
        gni_vstore(c, t->add ? gni_vload(c) + c##r##_0 : c##r##_0);                                \
        gni_vstore(c + GNI_VW, t->add ? gni_vload(c + GNI_VW) + c##r##_1 : c##r##_1);              \
        c += t->c_rs;                                                                              \
    }
static void GNI_FN(gni_gm_channels)(const gni_gemm_tile *t, int64_t rows) {
    const float *a = (const float *)t->a;
    float *c = (float *)t->c;
    for (; rows > 0; rows -= 4, a += 4 * t->a_rs) {
        const float *p = a, *b = (const float *)t->b;
        GNI_GM_R4(GNI_GM_CHANNEL_ZERO, f32);
        GNI_GM_R4(GNI_GM_CHANNEL_AT, f32);
        for (int64_t line = t->lines;; p += t->a_jump) {
            for (int64_t k = t->k; k > 0; k--, p += t->a_cs, b += t->b_rs) {
                const gni_vf b0 = gni_vload(b), b1 = gni_vload(b + GNI_VW);
                GNI_GM_R4(GNI_GM_CHANNEL_STEP, f32);
            }
            if (--line <= 0) break;
        }
        GNI_GM_R4(GNI_GM_CHANNEL_PUT, f32);
    }
}
#undef GNI_GM_CHANNEL_ZERO
#undef GNI_GM_CHANNEL_AT
#undef GNI_GM_CHANNEL_STEP
#undef GNI_GM_CHANNEL_PUT

// y (n) += x (8) b (8,n).
static void GNI_FN(gni_gm_add_8_rows)(float *y, const float *s, int64_t s_stride, const float *b,
                                      int64_t rs, int64_t n) {
    gni_vf x[8];
    for (int i = 0; i < 8; i++) x[i] = gni_vset(s[i * s_stride]);
    int64_t j = 0;
    for (; j + GNI_VW <= n; j += GNI_VW, b += GNI_VW) {
        gni_vf v = gni_vload(y + j);
        v = gni_vfma(x[0], gni_vload(b), v);
        v = gni_vfma(x[1], gni_vload(b + rs), v);
        v = gni_vfma(x[2], gni_vload(b + 2 * rs), v);
        v = gni_vfma(x[3], gni_vload(b + 3 * rs), v);
        v = gni_vfma(x[4], gni_vload(b + 4 * rs), v);
        v = gni_vfma(x[5], gni_vload(b + 5 * rs), v);
        v = gni_vfma(x[6], gni_vload(b + 6 * rs), v);
        v = gni_vfma(x[7], gni_vload(b + 7 * rs), v);
        gni_vstore(y + j, v);
    }
    if (j == n) return;
    gni_vf v = GNI_FN(gni_gm_part_f32)(y + j, n - j);
    for (int i = 0; i < 8; i++) v = gni_vfma(x[i], GNI_FN(gni_gm_part_f32)(b + i * rs, n - j), v);
    GNI_FN(gni_gm_put_part)(y + j, v, n - j);
}

// Over pieces of y that stay in the first cache.
static void GNI_FN(gni_gm_add_rows)(const gni_gemm_rows *d) {
    const int64_t piece = 2048;
    for (int64_t j0 = 0; j0 < d->n; j0 += piece) {
        const int64_t n = GNI_MIN(d->n - j0, piece);
        float *y = d->y + j0;
        const float *b = d->b + j0, *s = d->s;
        int64_t p = 0;
        for (; p + 8 <= d->k; p += 8, b += 8 * d->b_rs, s += 8 * d->s_stride)
            GNI_FN(gni_gm_add_8_rows)(y, s, d->s_stride, b, d->b_rs, n);
        for (; p < d->k; p++, b += d->b_rs, s += d->s_stride) {
            const gni_vf x = gni_vset(*s);
            for (int64_t j = 0; j < n; j += GNI_VW) {
                gni_vf v = GNI_FN(gni_gm_part_f32)(y + j, n - j);
                v = gni_vfma(x, GNI_FN(gni_gm_part_f32)(b + j, n - j), v);
                GNI_FN(gni_gm_put_part)(y + j, v, n - j);
            }
        }
    }
}
#endif // GNI_PASS_PLAIN

#define GNI_GM_DEFINE_NARROW(TYPE, STORE, CONVERT)                                                 \
    static void GNI_FN(gni_gm_narrow_##TYPE)(uint16_t * d, const float *s, int64_t n) {            \
        int64_t i = 0;                                                                             \
        for (; i + GNI_VW <= n; i += GNI_VW) STORE(d + i, gni_vload(s + i));                       \
        for (; i < n; i++) d[i] = CONVERT(s[i]);                                                   \
    }
GNI_GM_DEFINE_NARROW(f16, gni_vstore_f16, gni_f32_to_f16)
GNI_GM_DEFINE_NARROW(bf16, gni_vstore_bf16, gni_f32_to_bf16)
#undef GNI_GM_DEFINE_NARROW

#if defined(GNI_PASS_AVX512) || defined(GNI_PASS_AVX2)
// A square of r[0] to r[GNI_VW - 1], transposed.
#if defined(GNI_PASS_AVX512)
GNI_INLINE void GNI_FN(gni_gm_turn)(gni_vf *v) {
    __m512 t[16], r[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_maskz_unpacklo_ps(0xFFFF, (__m512)v[i], (__m512)v[i + 1]);
        t[i + 1] = _mm512_maskz_unpackhi_ps(0xFFFF, (__m512)v[i], (__m512)v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(t[i]), b = _mm512_castps_pd(t[i + 1]);
        __m512d c = _mm512_castps_pd(t[i + 2]), e = _mm512_castps_pd(t[i + 3]);
        r[i] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xFF, a, c));
        r[i + 1] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xFF, a, c));
        r[i + 2] = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xFF, b, e));
        r[i + 3] = _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xFF, b, e));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_maskz_shuffle_f32x4(0xFFFF, r[i + 8], r[i + 12], 0xDD);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i], t[i + 8], 0x88);
        v[i + 4] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i + 4], t[i + 12], 0x88);
        v[i + 8] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i], t[i + 8], 0xDD);
        v[i + 12] = (gni_vf)_mm512_maskz_shuffle_f32x4(0xFFFF, t[i + 4], t[i + 12], 0xDD);
    }
}
#else
GNI_INLINE void GNI_FN(gni_gm_turn)(gni_vf *v) {
    __m256 t[8], u[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = (gni_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        v[i + 4] = (gni_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
#endif

// Loads a square of rows i0 and on from column p, transposes it and stores it in d.
#define GNI_GM_TRANSPOSE_SQUARE(TYPE)                                                              \
    gni_vf r[GNI_VW];                                                                              \
    const GNI_GM_MASK mask = GNI_GM_MASK_OF(k - p);                                                \
    _Pragma("GCC unroll 16") for (int i = 0; i < GNI_VW; i++) r[i] =                               \
        i0 + i < w ? GNI_GM_MASKED(TYPE)(s + (i0 + i) * is + p, mask) : gni_vset(0);               \
    GNI_FN(gni_gm_turn)(r);

#define GNI_GM_VECTOR_PACK(TYPE, S)                                                                \
    static void GNI_FN(gni_gm_turn_##TYPE)(float *d, int64_t dw, const S *s, int64_t is,           \
                                           int64_t w, int64_t k) {                                 \
        for (int64_t i0 = 0; i0 < dw; i0 += GNI_VW) {                                              \
            const int64_t width = i0 == 0 ? GNI_VW : dw - i0;                                      \
            for (int64_t p = 0; p < k; p += GNI_VW) {                                              \
                GNI_GM_TRANSPOSE_SQUARE(TYPE)                                                      \
                float *to = d + p * dw + i0;                                                       \
                for (int i = 0; i < GNI_VW && i < k - p; i++)                                      \
                    GNI_FN(gni_gm_put_part)(to + i * dw, r[i], width);                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void GNI_FN(gni_gm_pack_##TYPE)(void *dst, int64_t dw, const void *src, int64_t is,     \
                                           int64_t ps, int64_t w, int64_t k) {                     \
        float *d = (float *)dst;                                                                   \
        const S *s = (const S *)src;                                                               \
        if (is == 1) {                                                                             \
            for (int64_t p = 0; p < k; p++, d += dw, s += ps) {                                    \
                gni_vstore(d, GNI_FN(gni_gm_part_##TYPE)(s, w));                                   \
                for (int64_t i = GNI_VW; i < dw; i += GNI_VW) GNI_FN(gni_gm_put_part)              \
                (d + i, GNI_FN(gni_gm_part_##TYPE)(s + i, w - i), dw - i);                         \
            }                                                                                      \
        } else if (ps == 1) {                                                                      \
            GNI_FN(gni_gm_turn_##TYPE)(d, dw, s, is, w, k);                                        \
        } else {                                                                                   \
            gni_gm_pack_any_##TYPE(dst, dw, src, is, ps, w, k);                                    \
        }                                                                                          \
    }
GNI_GM_VECTOR_PACK(f32, float)
GNI_GM_VECTOR_PACK(f16, uint16_t)
GNI_GM_VECTOR_PACK(bf16, uint16_t)

static void GNI_FN(gni_gm_put_transposed)(const gni_gemm_tile *t, const float *s, int64_t rows,
                                      int64_t cols, int64_t width) {
    for (int64_t p = 0; p < cols; p += GNI_VW) { // along c's rows
        for (int64_t i0 = 0; i0 < rows; i0 += GNI_VW) {
            const gni_vf bias =
                t->bias == NULL ? gni_vset(-0.0f) : GNI_FN(gni_gm_part_f32)(t->bias + i0, rows - i0);
            const int64_t w = rows, is = width, k = cols;
            GNI_GM_TRANSPOSE_SQUARE(f32)
            float *c = (float *)t->c + p * t->c_rs + i0;
            for (int q = 0; q < GNI_VW && p + q < cols; q++, c += t->c_rs) {
                gni_vf v = r[q];
                if (t->add) v = GNI_FN(gni_gm_part_f32)(c, rows - i0) + v;
                v = v + bias;
                if (t->act == 1) v = GNI_FN(gni_gm_relu)(v);
                GNI_FN(gni_gm_put_part)(c, v, rows - i0);
            }
        }
    }
}
#define GNI_GM_PACK(TYPE) GNI_FN(gni_gm_pack_##TYPE)

// Columns that follow each other are loaded as vectors.
static void GNI_FN(gni_gm_gather)(float *d, int64_t dw, const float *s, const int64_t *rows, const int64_t *cols, int64_t w,
                                  int64_t k) {
    int64_t first[2 * GNI_VW], n[2 * GNI_VW];
    int runs = 0;
    for (int64_t i = 0; i < w; i++) {
        const bool starts = i == 0 || cols[i] != cols[i - 1] + 1 || n[runs - 1] == GNI_VW;
        if (starts) first[runs] = i, n[runs++] = 0;
        n[runs - 1]++;
    }
    if (4 * runs > w) {
        for (int64_t p = 0; p < k; p++, d += dw) {
            const float *from = s + rows[p];
            for (int64_t i = 0; i < w; i++) d[i] = from[cols[i]];
            for (int64_t i = w; i < dw; i++) d[i] = 0;
        }
        return;
    }
    for (int64_t p = 0; p < k; p++, d += dw) {
        const float *from = s + rows[p];
        for (int64_t i = w / GNI_VW * GNI_VW; i < dw; i += GNI_VW) GNI_FN(gni_gm_put_part)(d + i, gni_vset(0), dw - i);
        for (int r = 0; r < runs; r++)
            GNI_FN(gni_gm_put_part)(d + first[r], GNI_FN(gni_gm_part_f32)(from + cols[first[r]], n[r]), n[r]);
    }
}
#define GNI_GM_GATHER GNI_FN(gni_gm_gather)
#define GNI_GM_PUT_TRANSPOSED GNI_FN(gni_gm_put_transposed)
#else
#define GNI_GM_PACK(TYPE) gni_gm_pack_any_##TYPE
#define GNI_GM_GATHER gni_gm_gather_any
#define GNI_GM_PUT_TRANSPOSED gni_gm_put_transposed_any
#endif

#if defined(GNI_PASS_AVX512)
// Pairs of neighbours along p, the first in the upper half (it is the one multiplied first); an odd last one is paired
// with zero.
GNI_INLINE gni_vf GNI_FN(gni_gm_masked_pairs)(const uint16_t *p, __mmask32 mask) {
    __m512i v = _mm512_maskz_loadu_epi16(mask, p);
    return (gni_vf)_mm512_castsi512_ps(_mm512_maskz_rol_epi32(0xFFFF, v, 16));
}

// Two rows as pairs.
GNI_INLINE gni_vf GNI_FN(gni_gm_zip_pairs)(const uint16_t *first, const uint16_t *second,
                                           int64_t n) {
    const __mmask16 mask = GNI_FN(gni_gm_mask)(n), next = second != NULL ? mask : 0;
    __m512i x = _mm512_maskz_cvtepu16_epi32(0xFFFF, _mm256_maskz_loadu_epi16(mask, first));
    __m512i y = _mm512_maskz_cvtepu16_epi32(
        0xFFFF, _mm256_maskz_loadu_epi16(next, next != 0 ? second : first));
    return (gni_vf)_mm512_castsi512_ps(_mm512_or_si512(_mm512_maskz_slli_epi32(0xFFFF, x, 16), y));
}

static void GNI_FN(gni_gm_pack_pairs)(void *dst, int64_t dw, const void *src, int64_t is,
                                      int64_t ps, int64_t w, int64_t k) {
    const uint16_t *s = (const uint16_t *)src;
    if (ps == 1 && is != 1) {
        for (int64_t i0 = 0; i0 < dw; i0 += 16) {
            float *to = (float *)dst + i0;
            for (int64_t p = 0; p < k; p += 32) {
                GNI_GM_TRANSPOSE_SQUARE(pairs)
                for (int i = 0; i < 16 && 2 * i < k - p; i++, to += dw)
                    GNI_FN(gni_gm_put_part)(to, r[i], i0 == 0 ? 16 : dw - i0);
            }
        }
        return;
    }
    for (int64_t p = 0; p < k; p += 2, s += 2 * ps) {
        float *to = (float *)dst + p / 2 * dw;
        const uint16_t *next = p + 1 < k ? s + ps : NULL;
        if (is == 1) {
            gni_vstore(to, GNI_FN(gni_gm_zip_pairs)(s, next, w));
            if (dw > 16) GNI_FN(gni_gm_put_part)
            (to + 16, GNI_FN(gni_gm_zip_pairs)(s + 16, next == NULL ? next : next + 16, w - 16),
             dw - 16);
            continue;
        }
        for (int64_t i = 0; i < dw; i++) {
            uint32_t pair = 0;
            if (i < w) pair = (uint32_t)s[i * is] << 16 | (next != NULL ? next[i * is] : 0u);
            memcpy(to + i, &pair, sizeof pair);
        }
    }
}
#define GNI_GM_PAIRS &GNI_FN(gni_gm_family_bf16)
#define GNI_GM_PACK_PAIRS GNI_FN(gni_gm_pack_pairs)

static int64_t GNI_FN(gni_gm_least)(const uint16_t *p, int64_t n, uint16_t *least) {
    const __m512i bits = _mm512_set1_epi16(0x7FFF), one = _mm512_set1_epi16(1);
    __m512i v = _mm512_set1_epi16((short)*least);
    uint16_t part[32];
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i x = _mm512_and_si512(_mm512_loadu_si512((const void *)(p + i)), bits);
        v = _mm512_min_epu16(v, _mm512_sub_epi16(x, one));
    }
    _mm512_storeu_si512((void *)part, v);
    for (int q = 0; q < 32; q++) *least = part[q] < *least ? part[q] : *least;
    return i;
}
#define GNI_GM_LEAST GNI_FN(gni_gm_least)
#else
#define GNI_GM_LEAST NULL
#define GNI_GM_PAIRS NULL
#define GNI_GM_PACK_PAIRS NULL
#endif

GNI_TABLE gni_gemm_isa GNI_FN(gni_gemm_isa) = {&GNI_FN(gni_gm_family_f32),
                                                  &GNI_FN(gni_gm_family_f64),
                                                  &GNI_FN(gni_gm_family_i32),
                                                  &GNI_FN(gni_gm_family_i64),
                                                  GNI_GM_PAIRS,
                                                  GNI_GM_PACK(f32),
                                                  GNI_GM_PACK(f16),
                                                  GNI_GM_PACK(bf16),
                                                  gni_gm_pack_any_64,
                                                  GNI_GM_PACK_PAIRS,
                                                  GNI_GM_GATHER,
                                                  GNI_GM_LEAST,
                                                  GNI_FN(gni_gm_dots),
                                                  GNI_FN(gni_gm_views),
                                                  GNI_FN(gni_gm_channels),
                                                  GNI_FN(gni_gm_add_rows),
                                                  GNI_GM_PUT_TRANSPOSED,
                                                  GNI_FN(gni_gm_narrow_f16),
                                                  GNI_FN(gni_gm_narrow_bf16)};
#undef GNI_GM_PAIRS
#undef GNI_GM_LEAST
#undef GNI_GM_PACK_PAIRS
#undef GNI_GM_GATHER
#undef GNI_GM_PACK
#undef GNI_GM_PUT_TRANSPOSED
#undef GNI_GM_TRANSPOSE_SQUARE
#undef GNI_GM_MASK
#undef GNI_GM_MASK_OF
#undef GNI_GM_MASKED
#undef GNI_GM_VECTOR_PACK
