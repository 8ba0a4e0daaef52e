// >>circle
// Points of the unit circle, from which transforms make their factors.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

// exp(-2 pi i k / n), correctly rounded but for the last bit's ties: the angle is reduced exactly to an
// eighth of a turn and carried in two parts.
static void gni_ft_twiddle(int64_t k, int64_t n, double *re, double *im) {
    k %= n;
    if (k < 0) k += n;
    // k / n = octant / 8 + rest / (8 n), with n below 2^60
    int64_t rest = 8 * (k % n), octant = rest / n;
    rest -= octant * n;
    if (octant & 1) rest = n - rest; // measured from the next axis or diagonal
    const double pi4 = 0.78539816339744830962, pi4_low = 3.0616169978683829e-17;
    double q = (double)rest / (double)n;
    double back = fma(-q, (double)n, (double)rest) / (double)n;
    double angle = q * pi4, low = fma(q, pi4, -angle) + q * pi4_low + back * pi4;
    double c = cos(angle), s = sin(angle), cr = c - s * low, sr = s + c * low;
    double a = cr, b = sr; // of the angle within the octant
    if (((octant + 1) >> 1) & 1) a = sr, b = cr;
    *re = octant >= 2 && octant < 6 ? -a : a;
    *im = octant < 4 ? -b : b;
}
