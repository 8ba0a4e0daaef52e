#!/usr/bin/env python3
"""Derives the polynomial coefficients of the vector math (room vmath of gpunum.h, tools/shaders/math.glsl).

Needs python3-numpy and python3-mpmath. Prints each polynomial as float32 constants (those of room dmath and math64.glsl, whose names
begin with d_, as float64 ones), lowest power first, with the largest error that is left after the coefficients were rounded, relative to
the function (in units of 2^-24 or 2^-53).

    fit_math.py            every polynomial
    fit_math.py exp tan    only these; of quotients two lines, the numerator and the denominator

Method: Lawson's reweighted least squares (1961) for the weighted minimax problem. The coefficients are rounded one at a time from
the lowest power up, and the rest is fitted again each time, so that the later ones make up for the earlier roundings.
"""
import sys
import numpy as np
from mpmath import mp, mpf, pi, log, exp, sin, cos, tan, asin, atan, sinh, cosh, tanh, atanh, erf, erfc, sqrt, loggamma, digamma

mp.prec = 300


def rounded(x, bits):
    """x rounded to so many bits."""
    if x == 0:
        return mpf(0)
    m, e = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), int(e) - bits)


def minimax(g, w, lo, hi, powers):
    """Coefficients c that make max |w(t) (g(t) - sum c[i] t^powers[i])| on [lo, hi] small."""
    count = 60 * len(powers)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    weight = np.array([float(w(t)) for t in grid])
    # The target is huge beside the remaining error when a coefficient is already fixed, so it is computed by mpmath.
    scale = max(abs(lo), abs(hi))
    basis = np.array([[float((t / scale) ** p) for p in powers] for t in grid]) * weight[:, None]
    target = np.array([float(w(t) * g(t)) for t in grid])
    share, best, result = np.full(count, 1.0 / count), np.inf, None
    for _ in range(400):
        root = np.sqrt(share)
        c = np.linalg.lstsq(basis * root[:, None], target * root, rcond=None)[0]
        err = np.abs(target - basis @ c)
        if err.max() < best:
            best, result = err.max(), c
        if err.max() == 0:
            break
        share = share * err
        share = share / share.sum() + 1e-14
    return [mpf(float(x)) / scale**p for x, p in zip(result, powers)]


def fit(g, w, lo, hi, degree, bits, fixed=()):
    """Coefficients of so many bits of a polynomial of this degree; fixed ones are given as {power: value}."""
    lo, hi = mpf(lo), mpf(hi)
    done = dict(fixed)
    for p in range(degree + 1):
        if p in done:
            continue
        left = [q for q in range(p, degree + 1) if q not in done]
        rest = lambda t: g(t) - sum(cv * t**q for q, cv in done.items())
        done[p] = rounded(minimax(rest, w, lo, hi, left)[0], bits)
    worst = mpf(0)
    for i in range(2001):
        t = lo + (hi - lo) * i / 2000
        worst = max(worst, abs(w(t) * (g(t) - sum(cv * t**q for q, cv in done.items()))))
    return [done[p] for p in range(degree + 1)], worst * 2**bits


def series(f, t, eps=mpf(2) ** -60):
    """f(t), moved off the removable singularity at 0."""
    return f(t if abs(t) > eps else eps)


def odd(f, z, slope=1):
    """P(z) in f(x) = slope x + x^3 P(x^2)."""
    x = sqrt(z)
    return (f(x) / x - slope) / z


def weight_odd(f):
    return lambda z: z * sqrt(z) / f(sqrt(z))


def mills(t):
    return exp(t * t / 2) * erfc(t / sqrt(mpf(2))) / 2


LN2 = log(mpf(2))
R2 = sqrt(mpf(2))

# name: (function of t to approximate, weight, low end, high end, degree)
# The weight turns the error of the polynomial into an error relative to the whole function.
POLYS = {
    # exp(r) = 1 + r + r^2 P(r)
    "exp": (lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), -LN2 * 0.503, LN2 * 0.503, 4),
    # 2^r = 1 + r P(r)
    "exp2": (lambda r: (2**r - 1) / r, lambda r: r / 2**r, -0.502, 0.502, 5),
    # log(1 + f) = f - f^2 / 2 + f^3 P(f)
    "log": (lambda f: (log(1 + f) - f + f * f / 2) / f**3, lambda f: f**3 / log(1 + f), 1 / R2 - 1, R2 - 1, 7),
    # log2((1 + s) / (1 - s)) = 2 s / ln(2) + s^3 P(s^2)
    "log2": (lambda z: odd(lambda s: 2 * atanh(s) / LN2, z, 2 / LN2), lambda z: z, 0, ((R2 - 1) / (R2 + 1) * 1.01) ** 2, 3),
    # sin(r) = r + r^3 P(r^2) up to pi/2
    "sin": (lambda z: odd(sin, z), weight_odd(sin), 0, (pi / 2 * 1.003) ** 2, 3),
    # tan(r) = r + r^3 P(r^2) up to pi/4
    "tan": (lambda z: odd(tan, z), weight_odd(tan), 0, (pi / 4 * 1.003) ** 2, 5),
    # asin(x) = x + x^3 P(x^2) up to 1/2
    "asin": (lambda z: odd(asin, z), weight_odd(asin), 0, 0.25, 4),
    # atan(x) = x + x^3 P(x^2) up to 1
    "atan": (lambda z: odd(atan, z), weight_odd(atan), 0, 1, 8),
    # tanh(x) = x + x^3 P(x^2) up to 0.625
    "tanh": (lambda z: odd(tanh, z), weight_odd(tanh), 0, 0.625**2, 4),
    # cosh(r) = 1 + r^2 P(r^2) up to ln(2)/2
    "cosh": (lambda z: (cosh(sqrt(z)) - 1) / z, lambda z: z / cosh(sqrt(z)), 0, (LN2 * 0.503) ** 2, 2),
    # sinh(r) = r + r^3 P(r^2) up to ln(2)/2
    "sinh": (lambda z: odd(sinh, z), weight_odd(sinh), 0, (LN2 * 0.503) ** 2, 2),
    # erf(x) = x + x P(x^2) up to 0.93
    "erf": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), 0, mpf("0.93") ** 2, 5),
    # erf(x) = 1 - exp(P(x)) from 0.93 on
    "erf_tail": (lambda x: log(erfc(x)), lambda x: erfc(x) / erf(x), 0.93, 3.95, 6),
    # the normal distribution's lower tail: Phi(-t) = exp(-t^2 / 2) P((t - 3) / (t + 3))
    "phi": (lambda u: mills(3 * (1 + u) / (1 - u)), lambda u: 1 / mills(3 * (1 + u) / (1 - u)), -1, 11.3 / 17.3, 9),
    # sin(pi t / 4) = t P(t^2), cos(pi t / 4) = 1 + t^2 P(t^2), both for t up to 1
    "octant_sin": (lambda z: sin(pi / 4 * sqrt(z)) / sqrt(z), lambda z: sqrt(z) / sin(pi / 4 * sqrt(z)), 0, 1, 3),
    "octant_cos": (lambda z: (cos(pi / 4 * sqrt(z)) - 1) / z, lambda z: z / cos(pi / 4 * sqrt(z)), 0, 1, 3),
    # exp(r) = 1 + r + r^2 P(r)
    "d_exp": (lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), -LN2 * 0.503, LN2 * 0.503, 9),
    # log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2)
    "d_log": (lambda z: odd(lambda s: 2 * atanh(s), z, 2), lambda z: z * sqrt(z) / (2 * atanh(sqrt(z))), 0,
              ((R2 - 1) / (R2 + 1) * 1.001) ** 2, 6),
    # sin(r) = r + r^3 P(r^2), cos(r) = 1 - r^2 / 2 + r^4 P(r^2), both up to pi/4
    "d_sin": (lambda z: odd(sin, z), weight_odd(sin), 0, (pi / 4 * 1.003) ** 2, 5),
    "d_cos": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2 / cos(sqrt(z)), 0, (pi / 4 * 1.003) ** 2, 5),
    # asin(x) = x + x^3 P(x^2) up to 1/2, atan(x) the same up to tan(pi/8)
    "d_asin": (lambda z: odd(asin, z), weight_odd(asin), 0, 0.25, 11),
    "d_atan": (lambda z: odd(atan, z), weight_odd(atan), 0, tan(pi / 8) ** 2 * 1.01, 11),
    # erf(x) = x + x P(x^2) up to 0.84
    "d_erf": (lambda z: erf(sqrt(z)) / sqrt(z) - 1, lambda z: sqrt(z) / erf(sqrt(z)), 0, mpf("0.84") ** 2, 11),
}


def erfcx(x):
    return exp(x * x) * erfc(x)


# Too close to what float64 holds for the method above: polynomials through the function where Chebyshev's is zero.
# name: (function, low end, high end, degree)
THROUGH = {
    # log((1 + s) / (1 - s)) = 2 s + 2/3 s^3 + s^5 P(s^2)
    "d_pow": (lambda z: (odd(lambda s: 2 * atanh(s), z, 2) - mpf(2) / 3) / z, mpf(2) ** -40, ((R2 - 1) / (R2 + 1) * 1.001) ** 2, 8),
    # exp(x^2) erfc(x) = P((x - 1.6) / (x + 1.6)) from 0.83 to 3
    "d_erfcx": (lambda u: erfcx(mpf("1.6") * (1 + u) / (1 - u)), mpf("-0.77") / mpf("2.43"), mpf("1.4") / mpf("4.6"), 14),
    # x exp(x^2) erfc(x) = P(1 / x - 0.18) from 3 to 28
    "d_erfcx_far": (lambda t: erfcx(1 / (t + mpf("0.18"))) / (t + mpf("0.18")), 1 / mpf(28) - mpf("0.18"),
                    1 / mpf(3) - mpf("0.18"), 16),
}


def bell_ratio(w):
    """erfinv(x) / x for w = -log(1 - x^2)."""
    w = max(w, mpf(2) ** -100)
    x = sqrt(1 - exp(-w))
    y = sqrt(w) * 0.9
    for _ in range(8):  # Halley's steps
        u = (erf(y) - x) * sqrt(pi) / 2 * exp(y * y)
        y -= u / (1 + u * y)
    return y / x


def gamma_ratio(x):
    """log(Gamma(x)) / ((x - 1) (x - 2))."""
    x += mpf(2) ** -60 * (abs(x - mp.nint(x)) < mpf(2) ** -60)
    return loggamma(x) / ((x - 1) * (x - 2))


def stirling(z):
    """What is missing to (x - 1/2) (log(x) - 1) + a float32 near (log(2 pi) - 1) / 2, times x, for z = 1 / x^2."""
    x = 1 / sqrt(z)
    return (loggamma(x) - (x - mpf(1) / 2) * (log(x) - 1) - rounded((log(2 * pi) - 1) / 2, 24)) * x


PSI_ROOT = mpf("1.46163214496836234126265954232572132846819620400645")


def psi_ratio(x):
    return digamma(x) / (x - PSI_ROOT)


POLYS.update({
    # erfinv(x) = x P(w - 15/8), w = -log(1 - x^2), up to 4.68; x P(sqrt(w) - 3) from there to 16
    "erfinv": (lambda t: bell_ratio(t + mpf(15) / 8), lambda t: 1 / bell_ratio(t + mpf(15) / 8), -mpf(15) / 8, mpf("4.69") - mpf(15) / 8, 9),
    "erfinv_far": (lambda t: bell_ratio((t + 3) ** 2), lambda t: 1 / bell_ratio((t + 3) ** 2), sqrt(mpf("4.69")) - 3, 1.005, 9),
    # log(Gamma(x)) = (x - 1/2) (log(x) - 1) + constant + P(1 / x^2) / x from 3 on
    "stirling": (lambda z: stirling(max(z, mpf(10) ** -8)), lambda z: sqrt(z) / loggamma(1 / sqrt(z)).real, 0, mpf(1) / 9, 2),
    # sin(pi r) / pi = r + r^3 P(r^2) up to 1/2
    "sinpi": (lambda z: odd(lambda r: sin(pi * r) / pi, z), weight_odd(lambda r: sin(pi * r) / pi), 0, 0.2501, 3),
    # digamma(x) = log(x) - 1 / (2 x) - P(1 / x^2) / x^2 from 2 on
    "psi_far": (lambda z: (-log(z) / 2 - sqrt(z) / 2 - digamma(1 / sqrt(z))) / z, lambda z: z / digamma(1 / sqrt(z)), 0, 0.25, 3),
})
RATIO_AT_2 = (rounded(gamma_ratio(mpf(2)), 12), mpf("5.48429125e-05"), mpf("-0.100317299"))
PSI_AT_1_5 = rounded(psi_ratio(mpf("1.5")), 24)
# N(t) / D(t): (function, weight, low end, high end, degree of N, of D). D(0) is 1; it is rounded first and N fitted to what D is then.
QUOTIENTS = {
    # erfc(a) = c exp(-a^2) (1 + N(a) / D(a)) / (a + 7/16) from .47 on
    "erfc": (lambda a: erfcx(a) * (a + 0.4375) / 0.5966796875 - 1, lambda a: 0.5966796875 / (erfcx(a) * (a + 0.4375)), 0.46, 10.1, 5, 4),
    # log(Gamma(x)) = (x - 1) (x - 2) (c0 + c1 v + v^2 N(v) / D(v)), v = x - 2, from 1 to 3; c0 in two parts
    "lgamma": (lambda v: (gamma_ratio(v + 2) - RATIO_AT_2[0] - RATIO_AT_2[1] - RATIO_AT_2[2] * v) / v**2,
               lambda v: v**2 / gamma_ratio(v + 2), -1, "1.01", 2, 3),
    # digamma(x) = (x - root) (c0 + v N(v) / D(v)), v = x - 3/2, from 1 to 2
    "psi": (lambda v: (psi_ratio(v + 1.5) - PSI_AT_1_5) / v, lambda v: v / psi_ratio(v + 1.5), -0.5, 0.5, 2, 2),
    # pi / tan(pi f) = 1 / f - f N(f^2) / D(f^2), pi tan(pi f) = f N(f^2) / D(f^2), both up to 1/4
    "cot": (lambda z: (1 / sqrt(z) - pi / tan(pi * sqrt(z))) / sqrt(z), sqrt, 0, "0.0626", 1, 2),
    "tanpi": (lambda z: pi * tan(pi * sqrt(z)) / sqrt(z), lambda z: sqrt(z) / (pi * tan(pi * sqrt(z))), 0, "0.0626", 1, 2),
}


def quotient(g, w, lo, hi, n, m):
    lo, hi = mpf(lo), mpf(hi)
    count = 50 * (n + m + 1)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values, weight = (np.array([float(h(t)) for t in grid]) for h in (g, w))
    scale = float(max(abs(lo), abs(hi)))
    power = np.array([[(float(t) / scale) ** p for p in range(max(n, m) + 1)] for t in grid])
    share, best, d, den = np.full(count, 1.0 / count), np.inf, None, np.ones(count)
    for _ in range(300):  # Lawson's weights; the last denominator divides the error
        basis = np.hstack([power[:, :n + 1], -values[:, None] * power[:, 1:m + 1]]) * (weight / den * np.sqrt(share))[:, None]
        c = np.linalg.lstsq(basis, values * weight / den * np.sqrt(share), rcond=None)[0]
        den = 1 + power[:, 1:m + 1] @ c[n + 1:]
        err = np.abs(weight * (values - power[:, :n + 1] @ c[:n + 1] / den))
        if err.max() < best:
            best, d = err.max(), c[n + 1:]
        share = share * np.maximum(err, 1e-30)
        share = share / share.sum() + 1e-14
        share /= share.sum()
    d = [mpf(1)] + [rounded(mpf(float(x)) / mpf(scale) ** p, 24) for p, x in enumerate(d, 1)]
    below = lambda t: sum(x * t**p for p, x in enumerate(d))
    return (*fit(lambda t: g(t) * below(t), lambda t: w(t) / below(t), lo, hi, n, 24), d)


def through(g, lo, hi, degree):
    at = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * (degree + 1))) for i in range(degree + 1)]
    c = mp.lu_solve(mp.matrix([[t**p for p in range(degree + 1)] for t in at]), mp.matrix([g(t) for t in at]))
    c = [rounded(x, 53) for x in c]
    grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
    return c, max(abs(1 - sum(x * t**p for p, x in enumerate(c)) / g(t)) for t in grid) * 2**53


def show(name):
    bits, digits = (53, "%.17g") if name.startswith("d_") else (24, "%.9gf")
    below = None
    if name in THROUGH:
        c, worst = through(*THROUGH[name])
    elif name in QUOTIENTS:
        g, w, *rest = QUOTIENTS[name]
        c, worst, below = quotient(lambda t: series(g, t), lambda t: series(w, t), *rest)
    else:
        g, w, lo, hi, degree = POLYS[name]
        c, worst = fit(lambda t: series(g, t), lambda t: series(w, t), lo, hi, degree, bits)
    print("%s: error %s * 2^-%d" % (name, mp.nstr(worst, 3), bits))
    for part in [c] + [below] * (below is not None):
        print("    " + ", ".join(digits % float(x) for x in part))


if __name__ == "__main__":
    for poly in sys.argv[1:] or [*POLYS, *THROUGH, *QUOTIENTS]:
        show(poly)
