// One pass of a Fourier transform as in fft_any.comp, for a length whose radices are specialisation constants:
// an invocation keeps its points in registers, and shared memory only exchanges them between stages.
//
// What costs time are instructions, a hundred for a point at most if memory is to be the limit. So addresses
// are one sum for an invocation and constants for its points wherever the configuration allows it.
// GN_FFT_RADICES leaves out radices with prime factors above it, which drivers compile for long.
// GN_FFT_SPLIT exchanges real and imaginary parts one after the other, in half the memory, GN_FFT_HALVES these in
// two halves. GN_FFT_DEEP has 32 points in an invocation: fewer stages, exchanges and addresses for each.
// GN_FFT_POWERS is how many turns of a twist there is memory for.
//! no-bindings
//! variant fft_two_64 -DGN_FFT_SHARED=1344 -DGN_FFT_THREADS=64 -DGN_FFT_RADICES=2
//! variant fft_two_128 -DGN_FFT_SHARED=2688 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=2
//! variant fft_two_128s -DGN_FFT_SHARED=2688 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT
//! variant fft_two_256 -DGN_FFT_SHARED=5376 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT
//! variant fft_two_256w -DGN_FFT_SHARED=4864 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=2
//! variant fft_two_512 -DGN_FFT_SHARED=10752 -DGN_FFT_THREADS=512 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT
//! variant fft_deep_128 -DGN_FFT_SHARED=4480 -DGN_FFT_THREADS=128 -DGN_FFT_POWERS=256 -DGN_FFT_RADICES=2 -DGN_FFT_DEEP -DGN_FFT_SPLIT
//! variant fft_deep_256 -DGN_FFT_SHARED=8960 -DGN_FFT_THREADS=256 -DGN_FFT_POWERS=512 -DGN_FFT_RADICES=2 -DGN_FFT_DEEP -DGN_FFT_SPLIT
//! variant fft_deep_512 -DGN_FFT_SHARED=8960 -DGN_FFT_THREADS=512 -DGN_FFT_RADICES=2 -DGN_FFT_DEEP -DGN_FFT_SPLIT -DGN_FFT_HALVES=2
//! variant fft_five_64 -DGN_FFT_SHARED=1280 -DGN_FFT_THREADS=64 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_five_96 -DGN_FFT_SHARED=2112 -DGN_FFT_THREADS=96 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_five_128 -DGN_FFT_SHARED=2560 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=5
//! variant fft_five_160 -DGN_FFT_SHARED=3424 -DGN_FFT_THREADS=160 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_five_256 -DGN_FFT_SHARED=5632 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_five_512 -DGN_FFT_SHARED=10752 -DGN_FFT_THREADS=512 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT
//! variant fft_two_128d -DGN_FFT_SHARED=2688 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT -DGN_FFT_DOUBLE
//! variant fft_two_256d -DGN_FFT_SHARED=5376 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=2 -DGN_FFT_SPLIT -DGN_FFT_DOUBLE
//! variant fft_five_128d -DGN_FFT_SHARED=2560 -DGN_FFT_THREADS=128 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT -DGN_FFT_DOUBLE
//! variant fft_five_256d -DGN_FFT_SHARED=5632 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=5 -DGN_FFT_SPLIT -DGN_FFT_DOUBLE
//! variant fft_all_256d -DGN_FFT_SHARED=5632 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_SPLIT -DGN_FFT_DOUBLE
//! variant fft_all_256 -DGN_FFT_SHARED=5632 -DGN_FFT_THREADS=256 -DGN_FFT_RADICES=13 -DGN_FFT_SPLIT
#version 450
#extension GL_GOOGLE_include_directive : require
#include "slots.glsl"
layout(local_size_x = GN_FFT_THREADS) in;
layout(constant_id = GNI_S_FFT_RADIX) const uint RADIX0 = 1;
layout(constant_id = GNI_S_FFT_RADIX + 1) const uint RADIX1 = 1;
layout(constant_id = GNI_S_FFT_RADIX + 2) const uint RADIX2 = 1;
layout(constant_id = GNI_S_FFT_RADIX + 3) const uint RADIX3 = 1;
layout(constant_id = GNI_S_FFT_LINES) const uint LINES = 1;
layout(constant_id = GNI_S_FFT_TEAM) const uint TEAM = 1;
layout(constant_id = GNI_S_FFT_FLAGS) const uint FLAGS = 0;
layout(constant_id = GNI_S_FFT_STEP_IN) const uint STEP_IN = 0;
layout(constant_id = GNI_S_FFT_STEP_OUT) const uint STEP_OUT = 0;
#ifndef GN_FFT_HALVES
#define GN_FFT_HALVES 1
#endif
#ifdef GN_FFT_DEEP
#define REGISTERS 32
#endif
const uint POINTS = RADIX0 * RADIX1 * RADIX2 * RADIX3;
#include "fft.glsl"

#ifdef GN_FFT_SPLIT
shared real points[GN_FFT_SHARED];
const uint BANKS = 128u >> (NUMBER_SHIFT - 1u);
#else
shared complex points[GN_FFT_SHARED];
const uint BANKS = 128u >> NUMBER_SHIFT;
#endif
#ifndef GN_FFT_POWERS
#define GN_FFT_POWERS GN_FFT_THREADS
#endif
shared complex powers[GN_FFT_POWERS]; // of a line's turn between two passes

#define S1 RADIX0
#define S2 (RADIX0 * RADIX1)
#define S3 (RADIX0 * RADIX1 * RADIX2)
#define T1 ((RADIX0 - 1u) * (POINTS / S1))
#define T2 (T1 + (RADIX1 - 1u) * (POINTS / S2))

// An invocation has butterflies number + i * TEAM of a stage.
uint slot, number;
void take_place(const bool across) {
    slot = across ? gl_LocalInvocationIndex % LINES : gl_LocalInvocationIndex / TEAM;
    number = across ? gl_LocalInvocationIndex / LINES : gl_LocalInvocationIndex % TEAM;
    if (slot >= LINES) number = POINTS; // nothing to do
    if (number >= TEAM) number = POINTS;
}

// ---- where points are between the stages
// Lines that are read and written across are woven: point p of a slot is p * LINES + slot, as if all were
// one line whose first stages are done. Others follow each other at PITCH. A stage of radix r after s
// leaves runs of STEP numbers that CELLS further on belong to the next invocation: padding AMOUNT for
// every UNIT puts neighbours into different banks. gni_fv_cells says the same.
const uint ACROSS = GNI_F_FFT_ACROSS_IN | GNI_F_FFT_ACROSS_OUT;
const bool ACROSS_BOTH = (FLAGS & ACROSS) == ACROSS;
const bool ACROSS_ONE = (FLAGS & ACROSS) % ACROSS != 0u;
const uint WEAVE = ACROSS_BOTH ? LINES : 1u;
const uint PART = POINTS / GN_FFT_HALVES * WEAVE; // that is there at a time
#define EXCHANGE(e, r, s)                                                                          \
    const uint STEP_##e = (s) * WEAVE, CELLS_##e = STEP_##e * (r);                                 \
    const uint UNIT_##e = CELLS_##e >= BANKS ? CELLS_##e : BANKS % CELLS_##e == 0u ? BANKS : CELLS_##e; \
    const uint RAISE_##e = (STEP_##e - CELLS_##e) & (BANKS - 1u);                                  \
    const uint AMOUNT_##e = STEP_##e >= BANKS               ? 0u                                   \
                            : UNIT_##e == BANKS             ? STEP_##e                             \
                            : STEP_##e == 1u                ? 1u - ((r) & 1u)                      \
                            : RAISE_##e * 4u > CELLS_##e ? 0u                                      \
                                                            : RAISE_##e;                           \
    const uint SIZE_##e = PART + (PART - 1u) / UNIT_##e * AMOUNT_##e;
EXCHANGE(1, RADIX0, 1u)
EXCHANGE(2, RADIX1, S1)
EXCHANGE(3, RADIX2, S2)
#define PAD(e, p) ((p) + AMOUNT_##e * ((p) / UNIT_##e))
const uint MORE_2 = RADIX2 != 1u ? SIZE_2 : 0u, LARGER_2 = MORE_2 > SIZE_1 ? MORE_2 : SIZE_1;
const uint MORE_3 = RADIX3 != 1u ? SIZE_3 : 0u, LARGER_3 = MORE_3 > LARGER_2 ? MORE_3 : LARGER_2;
const uint ROUND = (LARGER_3 + BANKS) / BANKS * BANKS;
const uint PITCH = ACROSS_ONE ? ROUND + (LINES >= BANKS ? 1u : BANKS / LINES) : TEAM < BANKS ? ROUND + TEAM : LARGER_3 | 1u;

// A fold of lines that lie one after the other: the second of an invocation's two butterflies of the last
// stage is the mirror image of the first, so that both numbers of each pair are in registers.
const uint LAST = RADIX1 == 1u ? RADIX0 : RADIX2 == 1u ? RADIX1 : RADIX3 == 1u ? RADIX2 : RADIX3;
const uint UNPAIRED = ((FLAGS & (GNI_F_FFT_FOLD_OUT | ACROSS)) ^ GNI_F_FFT_FOLD_OUT) | (STEP_OUT == 0u ? 1u : 0u) |
                      LAST % 2u | (2u * TEAM * LAST ^ POINTS);
const bool PAIRED = UNPAIRED == 0u;
#define OTHER (number == 0u ? TEAM : 2u * TEAM - number)
const bool ENDS_1 = PAIRED && RADIX2 == 1u, ENDS_2 = PAIRED && RADIX2 != 1u && RADIX3 == 1u;
const bool ENDS_3 = PAIRED && RADIX3 != 1u;

// What follows are macros, so that a driver sees constants before it has to inline anything.
// Butterflies of radix r of an invocation, and whether they are there.
#define COUNT(r) ((POINTS / (r) + TEAM - 1u) / TEAM)
#define AT_WORK (TEAM * LINES == GN_FFT_THREADS || number < TEAM)
#define THERE(r, i) (COUNT(r) * TEAM * (r) == POINTS || number + (i) * TEAM < POINTS / (r))

// Runs over what an invocation holds: x[z] is number WHICH of butterfly TURN.
#define EACH_POINT(r)                                                                              \
    if (AT_WORK) [[unroll]] for (uint z = 0u; z < COUNT(r) * (r); z++) if (THERE(r, z / (r)))
#define WHICH(r) (z % (r))
#define TURN(r) (z / (r))
#define BUTTERFLY(r) (number + TURN(r) * TEAM)
#define POINT(r) (BUTTERFLY(r) + WHICH(r) * (POINTS / (r)))

// Where results of radix r after s go, and where the operands of radix n come from after that.
#define LANE (ACROSS_BOTH ? gl_LocalInvocationIndex : number)
#define OWN (ACROSS_BOTH ? 0u : slot * PITCH)
const uint CREW = TEAM * WEAVE;
#define PUT(e, b) PAD(e, (b) % STEP_##e + CELLS_##e * ((b) / STEP_##e))
#define PUT_AT(e, r)                                                                               \
    ((CREW % STEP_##e + CREW * (r) % UNIT_##e == 0u ? OWN + PUT(e, LANE) + PAD(e, CREW * (r) * TURN(r)) \
                                                    : OWN + PUT(e, LANE + CREW * TURN(r))) +       \
     STEP_##e * WHICH(r))
#define APART(n) (POINTS / (n) * WEAVE)
#define GET_AT(e, n)                                                                               \
    (ENDS_##e && TURN(n) == 1u                                                                     \
         ? (APART(n) % UNIT_##e != 0u ? OWN + PAD(e, OTHER + APART(n) * WHICH(n))                  \
                                      : OWN + PAD(e, OTHER) + PAD(e, APART(n) * WHICH(n)))         \
     : APART(n) % UNIT_##e != 0u ? OWN + PAD(e, LANE + CREW * TURN(n) + APART(n) * WHICH(n))         \
     : CREW % UNIT_##e == 0u ? OWN + PAD(e, LANE) + PAD(e, CREW * TURN(n)) + PAD(e, APART(n) * WHICH(n)) \
                             : OWN + PAD(e, LANE + CREW * TURN(n)) + PAD(e, APART(n) * WHICH(n)))

// The butterflies of a stage: all that fit.
#define ONE(r, R, i, CALL)                                                                         \
    if ((r) == R && COUNT(r) > i) { CALL; }
#if GN_FFT_RADICES < 13
#define LARGE_BUTTERFLIES(r)
#else
#define LARGE_BUTTERFLIES(r)                                                                       \
    ONE(r, 7u, 0u, bf7(0))                                                                         \
    ONE(r, 7u, 1u, bf7(7))                                                                         \
    ONE(r, 11u, 0u, bf11(0))                                                                       \
    ONE(r, 13u, 0u, bf13(0))
#endif
#if GN_FFT_RADICES < 5
#define ODD_BUTTERFLIES(r)
#else
#define ODD_BUTTERFLIES(r)                                                                         \
    ONE(r, 3u, 0u, bf3(0, 1, 2))                                                                   \
    ONE(r, 3u, 1u, bf3(3, 4, 5))                                                                   \
    ONE(r, 3u, 2u, bf3(6, 7, 8))                                                                   \
    ONE(r, 3u, 3u, bf3(9, 10, 11))                                                                 \
    ONE(r, 3u, 4u, bf3(12, 13, 14))                                                                \
    ONE(r, 3u, 5u, bf3(15, 16, 17))                                                                \
    ONE(r, 5u, 0u, bf5(0, 1, 2, 3, 4))                                                             \
    ONE(r, 5u, 1u, bf5(5, 6, 7, 8, 9))                                                             \
    ONE(r, 5u, 2u, bf5(10, 11, 12, 13, 14))                                                        \
    ONE(r, 5u, 3u, bf5(15, 16, 17, 18, 19))                                                        \
    ONE(r, 6u, 0u, bf6(0))                                                                         \
    ONE(r, 6u, 1u, bf6(6))                                                                         \
    ONE(r, 6u, 2u, bf6(12))                                                                        \
    ONE(r, 9u, 0u, bf9(0))                                                                         \
    ONE(r, 9u, 1u, bf9(9))                                                                         \
    ONE(r, 10u, 0u, bf10(0))                                                                       \
    ONE(r, 10u, 1u, bf10(10))
#endif
#ifdef GN_FFT_DEEP
#define DEEP_BUTTERFLIES(r)                                                                        \
    ONE(r, 4u, 5u, bf4(20, 21, 22, 23))                                                            \
    ONE(r, 4u, 6u, bf4(24, 25, 26, 27))                                                            \
    ONE(r, 4u, 7u, bf4(28, 29, 30, 31))                                                            \
    ONE(r, 8u, 2u, bf8(16))                                                                        \
    ONE(r, 8u, 3u, bf8(24))                                                                        \
    ONE(r, 16u, 1u, bf16(16))                                                                      \
    ONE(r, 32u, 0u, bf32(0))
#else
#define DEEP_BUTTERFLIES(r)
#endif
#define BUTTERFLIES(r)                                                                             \
    ONE(r, 2u, 0u, bf2(0, 1))                                                                      \
    ONE(r, 2u, 1u, bf2(2, 3))                                                                      \
    ONE(r, 2u, 2u, bf2(4, 5))                                                                      \
    ONE(r, 2u, 3u, bf2(6, 7))                                                                      \
    ONE(r, 2u, 4u, bf2(8, 9))                                                                      \
    ONE(r, 2u, 5u, bf2(10, 11))                                                                    \
    ONE(r, 2u, 6u, bf2(12, 13))                                                                    \
    ONE(r, 2u, 7u, bf2(14, 15))                                                                    \
    ONE(r, 2u, 8u, bf2(16, 17))                                                                    \
    ONE(r, 2u, 9u, bf2(18, 19))                                                                    \
    ONE(r, 4u, 0u, bf4(0, 1, 2, 3))                                                                \
    ONE(r, 4u, 1u, bf4(4, 5, 6, 7))                                                                \
    ONE(r, 4u, 2u, bf4(8, 9, 10, 11))                                                              \
    ONE(r, 4u, 3u, bf4(12, 13, 14, 15))                                                            \
    ONE(r, 4u, 4u, bf4(16, 17, 18, 19))                                                            \
    ONE(r, 8u, 0u, bf8(0))                                                                         \
    ONE(r, 8u, 1u, bf8(8))                                                                         \
    ONE(r, 16u, 0u, bf16(0))                                                                       \
    DEEP_BUTTERFLIES(r)                                                                            \
    ODD_BUTTERFLIES(r)                                                                             \
    LARGE_BUTTERFLIES(r)

// The address of number i of a buffer, so that those after it are at constant distances.
uvec2 address_at(uvec2 buffer_address, uint i) {
    uint carry, low = uaddCarry(buffer_address.x, i << NUMBER_SHIFT, carry);
    return uvec2(low, buffer_address.y + (i >> (32u - NUMBER_SHIFT)) + carry);
}

// After the butterflies of radix r at s: the turns, which start at `table`. Those of number q of a butterfly
// are products of two that are loaded: registers are dearer than instructions here.
#define TURNED(r, s, q)                                                                            \
    number_of(turns.v[((q) - 1u) * (POINTS / ((r) * (s))) +                                  \
                            (TURN(r) == 0u        ? 0u                                             \
                             : TEAM % (s) == 0u ? TEAM / (s) * TURN(r)                             \
                                                : BUTTERFLY(r) / (s) - number / (s))])
#define TURNS(r, s, table)                                                                         \
    {                                                                                              \
        gn_const_number turns = gn_const_number(address_at(gn_address2, (table) + number / (s)));              \
        complex low1, low2, low3, high;                                                               \
        EACH_POINT(r) {                                                                            \
            uint q = WHICH(r), fine = q % 4u;                                                      \
            if (q == 1u) low1 = TURNED(r, s, 1u);                                                  \
            if (q == 2u) low2 = TURNED(r, s, 2u);                                                  \
            if (q == 3u) low3 = TURNED(r, s, 3u);                                                  \
            if (q >= 4u && fine == 0u) high = TURNED(r, s, q);                                     \
            complex w = fine == 0u ? high : fine == 1u ? low1 : fine == 2u ? low2 : low3;             \
            if (q > 4u && fine != 0u) w = times(high, w);                                          \
            if (q != 0u) x[z] = times(x[z], w);                                                    \
        }                                                                                          \
    }

// Results of a stage of radix r after s to where the stage of radix n finds its points.
#if GN_FFT_HALVES == 2
// The upper half of the numbers comes from the upper half of the butterflies.
real re[REGISTERS], im[REGISTERS];
#define UPPER(r) (COUNT(r) % 2u == 0u ? TURN(r) >= COUNT(r) / 2u : number >= TEAM / 2u)
#define PASS_HALF(e, r, n, across, h, from_part, to_part)                                       \
    {                                                                                              \
        slot = old_slot;                                                                           \
        number = old_number;                                                                       \
        EACH_POINT(r) if (UPPER(r) == (h == 1u))                                                \
            points[PUT_AT(e, r) - h * PAD(e, PART)] = from_part;                                \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(n) if (WHICH(n) / (n / 2u) == h)                                             \
            to_part[z] = points[GET_AT(e, n) - h * PAD(e, PART)];                               \
    }
#define PASS_ON(e, r, n, across)                                                                   \
    {                                                                                              \
        const uint old_slot = slot, old_number = number;                                           \
        PASS_HALF(e, r, n, across, 0u, x[z].x, re)                                                 \
        barrier();                                                                                 \
        PASS_HALF(e, r, n, across, 1u, x[z].x, re)                                                 \
        barrier();                                                                                 \
        PASS_HALF(e, r, n, across, 0u, x[z].y, im)                                                 \
        barrier();                                                                                 \
        PASS_HALF(e, r, n, across, 1u, x[z].y, im)                                                 \
        EACH_POINT(n) x[z] = complex(re[z], im[z]);                                                   \
    }
#elif defined GN_FFT_SPLIT
real re[REGISTERS];
#define PASS_ON(e, r, n, across)                                                                   \
    {                                                                                              \
        uint old_slot = slot, old_number = number;                                                 \
        EACH_POINT(r) points[PUT_AT(e, r)] = x[z].x;                                               \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(n) re[z] = points[GET_AT(e, n)];                                             \
        barrier();                                                                                 \
        slot = old_slot;                                                                           \
        number = old_number;                                                                       \
        EACH_POINT(r) points[PUT_AT(e, r)] = x[z].y;                                               \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(n) x[z] = complex(re[z], points[GET_AT(e, n)]);                                 \
    }
#else
#define PASS_ON(e, r, n, across)                                                                   \
    {                                                                                              \
        EACH_POINT(r) points[PUT_AT(e, r)] = x[z];                                                 \
        barrier();                                                                                 \
        take_place(across);                                                                        \
        EACH_POINT(n) x[z] = points[GET_AT(e, n)];                                              \
    }
#endif

// Results of the last stage, of radix r, and their mirror images by way of shared memory.
uint place(uint where, uint p) { return ACROSS_BOTH ? p * LINES + where : where * PITCH + p; }
#define OWN_AT(r) place(slot, POINT(r) % (POINTS / GN_FFT_HALVES))
#define MIRROR_AT(r)                                                                               \
    (STEP_OUT == 1u ? place(slot, z == 0u && number == 0u ? 0u : POINTS - POINT(r))                 \
                   : place(mirrored(slot, POINT(r)).x, mirrored(slot, POINT(r)).y))
#if GN_FFT_HALVES == 2
// Lines as they are: the mirror image of what is in one half is in the other, but for the first numbers of both.
#define OVER(r) (WHICH(r) / ((r) / 2u))
#define MIRROR_HALF(r) (POINTS - POINT(r) - (1u - OVER(r)) * (POINTS / 2u))
#define FOLD_HALF(r, h, from_part, to_part)                                                     \
    barrier();                                                                                     \
    EACH_POINT(r) if (OVER(r) == h) points[OWN_AT(r)] = from_part;                              \
    barrier();                                                                                     \
    EACH_POINT(r) if (OVER(r) != h && (WHICH(r) % ((r) / 2u) != 0u || BUTTERFLY(r) != 0u))      \
        to_part[z] = points[place(slot, MIRROR_HALF(r))];
#define FOLD(r)                                                                                    \
    {                                                                                              \
        EACH_POINT(r) re[z] = x[z].x, im[z] = x[z].y;                                              \
        FOLD_HALF(r, 1u, x[z].x, re)                                                               \
        FOLD_HALF(r, 0u, x[z].x, re)                                                               \
        FOLD_HALF(r, 1u, x[z].y, im)                                                               \
        FOLD_HALF(r, 0u, x[z].y, im)                                                               \
        if (inside) EACH_POINT(r) write_folded(POINT(r), x[z], complex(re[z], im[z]), z == 0u);       \
    }
#elif defined GN_FFT_SPLIT
#define FOLD(r)                                                                                    \
    {                                                                                              \
        barrier();                                                                                 \
        EACH_POINT(r) points[OWN_AT(r)] = x[z].x;                                                  \
        barrier();                                                                                 \
        EACH_POINT(r) re[z] = points[MIRROR_AT(r)];                                                \
        barrier();                                                                                 \
        EACH_POINT(r) points[OWN_AT(r)] = x[z].y;                                                  \
        barrier();                                                                                 \
        if (inside) EACH_POINT(r) write_folded(POINT(r), x[z], complex(re[z], points[MIRROR_AT(r)]), z == 0u); \
    }
#else
#define FOLD(r)                                                                                    \
    {                                                                                              \
        barrier();                                                                                 \
        EACH_POINT(r) points[OWN_AT(r)] = x[z];                                                    \
        barrier();                                                                                 \
        if (inside) EACH_POINT(r) write_folded(POINT(r), x[z], points[MIRROR_AT(r)], z == 0u);              \
    }
#endif

// The turns of a twist are products of one that an invocation has and one that its line has for each
// number of a butterfly; these are made once, by all, where they fit.
const uint MADE = GN_FFT_THREADS % LINES == 0u ? GN_FFT_POWERS : GN_FFT_THREADS;
const bool POWERS_FIT = LINES * LAST <= (RADIX1 == 1u ? 0u : MADE);
void make_powers() {
    if (!POWERS_FIT) return;
    for (uint i = gl_LocalInvocationIndex; i < LINES * LAST; i += GN_FFT_THREADS)
        powers[i] = twist_part(i / LINES * (POINTS / LAST));
}
#define TWISTED(r)                                                                                 \
    (!HAS(TWIST) ? complex(0.0)                                                                       \
     : POWERS_FIT ? times(twist_part(BUTTERFLY(r)), powers[WHICH(r) * LINES + slot])               \
                  : twist(BUTTERFLY(r), WHICH(r) * (POINTS / (r))))

// The turn of pair w of those from `turns` on. With 32 points registers are dearer than instructions: there it is the
// first one's times a constant, as LAST pairs make half a turn.
#ifdef GN_FFT_DEEP
const uint PART_TURN = LAST <= 32u ? 32u / LAST : 0u;
#define FOLD_TURN(w) ((w) == 0u ? first_turn : times(first_turn, complex(C64[(w) * PART_TURN], -C64[16u - (w) * PART_TURN])))
#else
#define FOLD_TURN(w) number_of(turns.v[(w) * 2u * TEAM])
#endif
// Numbers k and POINTS - k of a fold, k at `up` in the result, its mirror image at `down`; f is k's turn.
#define FOLD_PAIR(up, down, a, b, f)                                                               \
    {                                                                                              \
        precise complex e = complex((a).x + (b).x, (a).y - (b).y);                                       \
        precise complex o = times(complex((a).x - (b).x, (a).y + (b).y), f);                             \
        precise complex y = complex(e.x + o.y, e.y - o.x) * (0.5 * scale);                               \
        precise complex v = complex(e.x - o.y, -e.y - o.x) * (0.5 * scale);                              \
        if (HAS(CONJ)) y.y = -y.y, v.y = -v.y;                                                     \
        above.v[(up) * STEP_OUT] = words_of(y);                                             \
        below.v[(down) * STEP_OUT] = words_of(v);                                           \
    }
#define FOLD_AT(up, down)                                                                          \
    turns = gn_const_number(address_at(gn_address4, up));                                                \
    first_turn = number_of(turns.v[0]);                                                      \
    above = gn_words_number(address_at(gn_address1, to + (up) * STEP_OUT));                              \
    below = gn_words_number(address_at(gn_address1, to + (down) * STEP_OUT));
// Butterfly `number` with its mirror image 2 TEAM - number. Invocation 0 has 0 and TEAM, which are their own:
// turn w does pair w of the first up to LAST / 2, pair w - LAST / 2 of the second above that and at 0.
void fold_pairs() {
    const uint r = LAST, middle = LAST / 2u, apart = 2u * TEAM;
    const bool own = number == 0u;
    gn_const_number turns;
    complex first_turn;
    gn_words_number above, below;
    FOLD_AT(own ? TEAM : number, POINTS - (own ? TEAM : number))
    FOLD_PAIR(0u, 0u, own ? x[r] : x[0], x[2u * r - 1u], first_turn)
    FOLD_AT(number + apart, POINTS / 2u - number)
    [[unroll]] for (uint w = 1u; w <= middle; w++)
        FOLD_PAIR((w - 1u) * apart, (middle - w) * apart, x[w], own ? x[r - w] : x[2u * r - 1u - w],
                  FOLD_TURN(w - 1u))
    FOLD_AT(own ? apart + TEAM : number + (middle + 1u) * apart, own ? POINTS / 2u + TEAM : apart - number)
    [[unroll]] for (uint w = middle + 1u; w < r; w++)
        FOLD_PAIR((w - middle - 1u) * apart, (r - 1u - w) * apart, own ? x[r + w - middle] : x[w],
                  own ? x[2u * r - 1u - (w - middle)] : x[2u * r - 1u - w], FOLD_TURN(w - middle - 1u))
    if (own) {
        gn_words_number result = gn_words_number(address_at(gn_address1, to));
        precise complex ends = complex(x[0].x + x[0].y, x[0].x - x[0].y) * scale;
        result.v[0] = words_of(complex(ends.x, imaginary(ends.x, HAS(CONJ) ? -0.0 : 0.0)));
        result.v[POINTS * STEP_OUT] = words_of(complex(ends.y, imaginary(ends.x, 0.0)));
    }
}

// Complex numbers as they are, at steps that are known: one address for all of them.
const uint SPECIAL_IN = GNI_F_FFT_REAL_IN | GNI_F_FFT_HALF_IN | GNI_F_FFT_FACTOR_IN | GNI_F_FFT_CUT_IN |
                        GNI_F_FFT_PAIR_IN | GNI_F_FFT_FOLD_IN;
const uint SPECIAL_OUT = GNI_F_FFT_REAL_OUT | GNI_F_FFT_FACTOR_OUT | GNI_F_FFT_CUT_OUT | GNI_F_FFT_PAIR_OUT |
                         GNI_F_FFT_FOLD_OUT;
const bool PLAIN_IN = STEP_IN != 0u && (FLAGS & SPECIAL_IN) == 0u;
const bool PLAIN_OUT = STEP_OUT != 0u && (FLAGS & SPECIAL_OUT) == 0u;
void finish() {
    if (ACROSS_ONE) line_at(line_of(slot));
    if (PAIRED) {
        if (AT_WORK && inside) fold_pairs();
    } else if (HAS(FOLD_OUT)) {
        FOLD(LAST)
    } else if (inside && PLAIN_OUT) {
        gn_words_number result = gn_words_number(address_at(gn_address1, to + number * STEP_OUT));
        EACH_POINT(LAST) result.v[(TURN(LAST) * TEAM + WHICH(LAST) * (POINTS / LAST)) * STEP_OUT] =
            words_of(finished(0u, x[z], TWISTED(LAST)));
    } else if (inside) {
        EACH_POINT(LAST) write_point(POINT(LAST), x[z], TWISTED(LAST));
    }
}

void main() {
    take_parameters();
    take_place(HAS(ACROSS_IN));
    line_at(line_of(slot));
    if (HAS(TWIST)) make_powers();
    if (PLAIN_IN) {
        gn_words_number operand = gn_words_number(address_at(gn_address0, from + number * STEP_IN));
        EACH_POINT(RADIX0) {
            x[z] = number_of(operand.v[(TURN(RADIX0) * TEAM + WHICH(RADIX0) * (POINTS / RADIX0)) * STEP_IN]);
            if (HAS(SWAP_IN) != HAS(SWAP_IN_2)) x[z] = x[z].yx;
        }
    } else {
        EACH_POINT(RADIX0) x[z] = read_point(POINT(RADIX0));
    }
    BUTTERFLIES(RADIX0)
    [[unroll]] for (uint i = 0u; i < COUNT(RADIX0); i++) { SPOIL(i * RADIX0, RADIX0) }
    if (RADIX1 != 1u) {
        TURNS(RADIX0, 1u, 0u)
        PASS_ON(1, RADIX0, RADIX1, RADIX2 == 1u ? HAS(ACROSS_OUT) : ACROSS_BOTH)
        BUTTERFLIES(RADIX1)
    }
    if (RADIX2 != 1u) {
        TURNS(RADIX1, S1, T1)
        barrier();
        PASS_ON(2, RADIX1, RADIX2, RADIX3 == 1u ? HAS(ACROSS_OUT) : ACROSS_BOTH)
        BUTTERFLIES(RADIX2)
    }
    if (RADIX3 != 1u) {
        TURNS(RADIX2, S2, T2)
        barrier();
        PASS_ON(3, RADIX2, RADIX3, HAS(ACROSS_OUT))
        BUTTERFLIES(RADIX3)
    }
    finish();
}
