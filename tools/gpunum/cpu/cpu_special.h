// >>cpu_special
// Elementwise functions that are rare and long: one loop in double for all instruction sets, on the CPU, of float64 and of
// shorter floats where a pass has none of its own. From outside: gni_rare_kernel.

#ifndef GNI_ROOMS // alone in an editor: what this room stands on
#pragma once
#include "../core/internal.h"
#endif

// log Gamma(2 + z) for |z| up to 1/2: (1 - gamma) z and the sum of (-1)^k (zeta(k) - 1) z^k / k.
static double gni_lgamma_near_2(double z) {
    static const double c[] = {
        1.3304764374244489481e-10, -2.7595228851242331452e-10, 5.7313672416788620133e-10, -1.1921401405860912074e-9,
        2.4836745438024783172e-9, -5.1834750419700466551e-9, 1.0838659214896954091e-8, -2.271109460894316491e-8,
        4.7698101693639805658e-8, -1.0043224823968099609e-7, 2.1207184805554665869e-7, -4.4924691987645660433e-7,
        9.5514121304074198329e-7, -2.0392157538013662368e-6, 4.3748667899074878042e-6, -9.439488275268395904e-6,
        0.000020507212775670691553, -0.0000449262367381331417, 0.000099457512781808533715, -0.00022315475845357937976,
        0.00050966952474304242234, -0.0011927539117032609771, 0.0028905103307415232858, -0.0073855510286739852663,
        0.020580808427784547879, -0.067352301053198095133, 0.32246703342411321824,
    };
    double p = 0.0;
    for (int i = 0; i < GNI_COUNT(c); i++) p = p * z + c[i];
    return (p * z + 0.42278433509846713939) * z;
}

// sin(pi x), with x brought to -1/2 .. 1/2 first; and the cosine of what that is.
static double gni_dsinpi(double x, double *cosine) {
    double n = floor(x + 0.5), r = (x - n) * 3.14159265358979323846;
    if (cosine != NULL) *cosine = cos(r);
    return fmod(n, 2.0) == 0.0 ? sin(r) : -sin(r);
}

static double gni_lgamma_positive(double x) {
    if (x < 0.5) return gni_lgamma_near_2(x) - log1p(x) - log(x);
    if (x < 1.5) return gni_lgamma_near_2(x - 1.0) - log(x);
    if (x < 8.0) {
        double product = 1.0;
        for (; x > 2.5; product *= x) x -= 1.0;
        return gni_lgamma_near_2(x - 2.0) + log(product);
    }
    if (x > 1e300) return x * (log(x) - 1.0);
    const double z = 1.0 / (x * x);
    static const double c[] = {-3617.0 / 122400, 1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360,
                               1.0 / 12};
    double p = 0.0;
    for (int i = 0; i < GNI_COUNT(c); i++) p = p * z + c[i];
    return (x - 0.5) * log(x) - x + (0.91893853320467274178 + p / x);
}

// The logarithm of |Gamma(x)|. C's lgamma writes a global.
static double gni_dlgamma(double x) {
    if (x != x || x > 0.0) return x < GNI_INF ? gni_lgamma_positive(x) : x;
    if (x == floor(x)) return GNI_INF;
    if (x > -1e-100) return -log(-x);
    return log(3.14159265358979323846 / fabs(x * gni_dsinpi(x, NULL))) - gni_lgamma_positive(-x);
}

static double gni_ddigamma(double x) {
    double y = 0.0, cosine;
    if (x == 0.0) return -copysign(GNI_INF, x);
    if (x < 0.0) {
        if (x == floor(x)) return GNI_NAN;
        const double n = floor(x + 0.5), sine = sin((x - n) * 3.14159265358979323846);
        gni_dsinpi(x, &cosine);
        y = -3.14159265358979323846 * cosine / sine;
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0) y -= 1.0 / x;
    static const double c[] = {-3617.0 / 8160, 1.0 / 12,  -691.0 / 32760, 1.0 / 132,
                               -1.0 / 240,     1.0 / 252, -1.0 / 120,     1.0 / 12};
    const double z = 1.0 / (x * x);
    double p = 0.0;
    for (int i = 0; i < GNI_COUNT(c); i++) p = (p + c[i]) * z;
    return y + (log(x) - 0.5 / x - p);
}

static double gni_dtrigamma(double x) {
    double y = 0.0, sign = 1.0;
    if (x <= 0.0) {
        if (x == floor(x)) return x < -GNI_INF ? GNI_NAN : GNI_INF;
        y = 3.14159265358979323846 / gni_dsinpi(x, NULL);
        y *= y;
        sign = -1.0;
        x = 1.0 - x;
    }
    double s = 0.0;
    for (; x < 10.0; x += 1.0) s += 1.0 / (x * x);
    static const double c[] = {-3617.0 / 510, 7.0 / 6, -691.0 / 2730, 5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};
    const double z = 1.0 / (x * x);
    double p = 0.0;
    for (int i = 0; i < GNI_COUNT(c); i++) p = (p + c[i]) * z;
    return y + sign * (s + (1.0 + p + 0.5 / x) / x);
}

static double gni_dtetragamma(double x) {
    double y = 0.0, cosine;
    if (x == 0.0) return -copysign(GNI_INF, x);
    if (x < 0.0) {
        if (x == floor(x)) return GNI_NAN;
        const double sine = sin((x - floor(x + 0.5)) * 3.14159265358979323846), t = 3.14159265358979323846 / sine;
        gni_dsinpi(x, &cosine);
        y = -2.0 * cosine * t * t * t;
        x = 1.0 - x;
    }
    for (; x < 10.0; x += 1.0) y -= 2.0 / (x * x * x);
    static const double c[] = {-3617.0 / 30, 35.0 / 2, -691.0 / 210, 5.0 / 6, -3.0 / 10, 1.0 / 6, -1.0 / 6, 1.0 / 2};
    const double z = 1.0 / (x * x);
    double p = 0.0;
    for (int i = 0; i < GNI_COUNT(c); i++) p = (p + c[i]) * z;
    return y - (1.0 + p + 1.0 / x) * z;
}

// A first value after Giles (2012), or of the tail; then Halley's steps on erf, or erfc where that loses nothing: one is
// enough for float32.
static double gni_derfinv(double x, int steps) {
    static const double middle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    static const double tail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                  -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
    const double size = fabs(x), rest = 1.0 - size;
    if (!(size < 1.0)) return size == 1.0 ? copysign(GNI_INF, x) : GNI_NAN;
    double w = -log(rest * (1.0 + size)), y = 0.0;
    if (w < 16.0) {
        const double *c = w < 5.0 ? middle : tail, t = w < 5.0 ? w - 2.5 : sqrt(w) - 3.0;
        for (int i = 0; i < 9; i++) y = y * t + c[i];
        y *= size;
    } else {
        w = -log(rest * 1.7724538509055160273);
        y = sqrt(w - 0.5 * log(w));
    }
    for (int i = 0; i < steps; i++) {
        const double f = size < 0.5 ? erf(y) - size : rest - erfc(y), u = f * exp(y * y) * 0.88622692545275801365;
        y -= u / (1.0 + u * y);
    }
    return copysign(y, x);
}

#define GNI_RARE(NAME, D)                                                                          \
    static void gni_rare_##NAME(void *dst, const void *pa, bool wide, int n) {                     \
        for (int i = 0; i < n; i++) {                                                              \
            const double a = wide ? ((const double *)pa)[i] : (double)((const float *)pa)[i], y = D; \
            if (wide)                                                                              \
                ((double *)dst)[i] = y;                                                            \
            else                                                                                   \
                ((float *)dst)[i] = (float)y;                                                      \
        }                                                                                          \
    }
#define GN_X(fn, NAME, F, D, gF, da) GNI_RARE(NAME, D)
GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da) GNI_RARE(NAME, D)
GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
#undef GNI_RARE

static bool gni_is_rare(uint32_t code) { return code / 3u >= GNI_OP_ERFC && code / 3u < GNI_OP_COUNT; }

static void gni_rare_kernel(uint32_t code, void *dst, const void *pa, bool wide, int n) {
    switch (code / 3u) {
#define GN_X(fn, NAME, F, D, gF, da)                                                               \
    case GNI_OP_##NAME: gni_rare_##NAME(dst, pa, wide, n); break;
        GNI_UNARY_RARE(GN_X)
#undef GN_X
#define GN_X(fn, NAME, D, da)                                                                      \
    case GNI_OP_##NAME: gni_rare_##NAME(dst, pa, wide, n); break;
        GNI_UNARY_HIDDEN(GN_X)
#undef GN_X
    default: break;
    }
}
