"""The polynomials of `gradix/_platforms/cpu/vectors/` and `gradix/scipy/special`: how exact they are, and how they were fitted.

python -m benchmarks.polynomials              # log₂ of each one's greatest relative error, by mpmath
python -m benchmarks.polynomials --fit SINE   # fits it anew, with as many coefficients
"""

import argparse
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from benchmarks.quotients import dawson
from gradix._platforms.cpu.vectors import coefficients, powers, special
from gradix.scipy.special import coefficients as scipy_coefficients

mp.mp.dps = 40
SINGLE, DOUBLE = coefficients.SINGLE, coefficients.DOUBLE


@dataclass(frozen=True)
class Target:
    """A polynomial and the function that it approximates.

    Attributes:
        table: the coefficients by format, or `{format: them}` made from one tuple.
        exact: what the polynomial p should be at its variable.
        low, high: the interval of the variable.
        whole: `whole(v, p)`, the value that p serves for; its relative error counts.
    """

    table: dict
    exact: Any
    low: float
    high: float
    whole: Any


def of_square(function):
    """A function of t = √z as one of z."""
    return lambda z: function(mp.sqrt(z))


def scaled_erfc(a: float, c: float, weight=lambda x: 1):
    """weight(x)·e^(x²)·erfc x as a function of u = (x - a) / (x + c)."""

    def function(u):
        x = place(u, a, c)
        return weight(x) * mp.exp(x * x) * mp.erfc(x)

    return function


def inverse_erf(w):
    """erf⁻¹ x / x as a function of w = -log(1 - x²)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def place(u, a: float, c: float):
    return (a + c * u) / (1 - u)


def odd(function, table, limit, low=1e-6):
    """f(t) = t + t³·p(t²)."""
    return Target(
        table, of_square(lambda t: (function(t) - t) / t**3), low, limit**2, lambda z, p: mp.sqrt(z) * (1 + z * p)
    )


HALF_LN2, QUARTER_PI = float(mp.log(2) / 2) + 1e-4, 0.7858
ROOTS = float(mp.sqrt(0.5)) - 1, float(mp.sqrt(2)) - 1
TARGETS = {
    "SINE": odd(mp.sin, coefficients.SINE, QUARTER_PI),
    "COSINE": Target(
        coefficients.COSINE,
        of_square(lambda t: (mp.cos(t) - 1 + t * t / 2) / t**4),
        1e-4,
        QUARTER_PI**2,
        lambda z, p: 1 - z / 2 + z * z * p,
    ),
    "TANGENT": odd(mp.tan, coefficients.TANGENT, QUARTER_PI),
    "ARCSINE": odd(mp.asin, coefficients.ARCSINE, 0.5),
    "ARCTANGENT": odd(mp.atan, coefficients.ARCTANGENT, 1.0),
    "EXP2": Target(coefficients.EXP2, lambda f: (mp.mpf(2) ** f - 1) / f, -0.5, 0.5, lambda f, p: 1 + f * p),
    "EXPM1": Target(
        coefficients.EXPM1, lambda r: (mp.expm1(r) - r) / r**2, -HALF_LN2, HALF_LN2, lambda r, p: r + r * r * p
    ),
    "LOG1P": Target(
        coefficients.LOG1P,
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        *ROOTS,
        lambda f, p: f - f * f / 2 + f**3 * p,
    ),
    "SINH": odd(mp.sinh, coefficients.SINH, 1.0),
    "ARCSINH": odd(mp.asinh, coefficients.ARCSINH, 1.0),
    "ARCTANH": odd(mp.atanh, coefficients.ARCTANH, 0.5),
    "power: log₂": Target(
        {DOUBLE: powers._LOG2}, of_square(lambda t: mp.log((1 + t) / (1 - t), 2) / t), 1e-6, 0.1716**2, lambda z, p: p
    ),
    "power: 2ᶠ": Target({DOUBLE: powers._EXP2}, lambda f: mp.mpf(2) ** f, -0.5, 0.5, lambda f, p: p),
    "erfc": Target(
        {SINGLE: special._ERFC},
        lambda u: scaled_erfc(1.875, 1.5, lambda x: x + 1.5)(u) - special._FIRST,
        -1.375 / 2,
        7.375 / 10.75,
        lambda u, p: special._FIRST + p,
    ),
    "erf, tail": Target(
        {DOUBLE: special._TAIL},
        scaled_erfc(2.25, 2.75),
        -1.5 / 3.5,
        3.7 / 8.7,
        lambda u, p: 1 - mp.exp(-(place(u, 2.25, 2.75) ** 2)) * p,
    ),
    "erf to ½": Target(
        {SINGLE: special._ERF_SMALL}, of_square(lambda t: mp.erf(t) / t - 1), 1e-6, 0.25, lambda z, p: 1 + p
    ),
    "erf to ¾": Target(
        {DOUBLE: special._ERF}, of_square(lambda t: mp.erf(t) / t - 1), 1e-6, 0.5625, lambda z, p: 1 + p
    ),
    "erf⁻¹": Target({DOUBLE: special._INVERSE}, lambda v: inverse_erf(v + mp.mpf(3.125)), -3.125, 3.13, lambda v, p: p),
    "erf⁻¹, tail": Target(
        {DOUBLE: special._INVERSE_TAIL}, lambda v: inverse_erf((v + 3.25) ** 2), -0.7505, 0.751, lambda v, p: p
    ),
    "erf⁻¹, end": Target(
        {DOUBLE: special._INVERSE_END}, lambda v: inverse_erf((v + 5) ** 2), -1.0005, 1.1, lambda v, p: p
    ),
    "sin πf": Target(
        {DOUBLE: special._SINE_PI}, of_square(lambda t: mp.sin(mp.pi * t) / t), 1e-6, 0.25, lambda z, p: p
    ),
    "artanh": odd(mp.atanh, {np.finfo(d).nmant: c[::-1] for d, c in scipy_coefficients.ARTANH.items()}, 0.4),
    "Dawson, tail": Target(
        {SINGLE: scipy_coefficients.DAWSON_TAIL[::-1]},
        lambda w: (dawson(1 / mp.sqrt(w)) / mp.sqrt(w) - 0.5) / w,
        1e-6,
        0.0625,
        lambda w, p: 0.5 + w * p,
    ),
}


def points(target: Target, count: int) -> list:
    """Chebyshev's points, which are dense at the ends, without 0."""
    place = (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) / 2
    return [mp.mpf(v) for v in target.low + (target.high - target.low) * place if abs(v) > 1e-9]


def value(target: Target, kept, v):
    return target.whole(v, mp.polyval(list(map(mp.mpf, kept))[::-1], v))


def error(target: Target, kept, count: int = 1000) -> float:
    """log₂ of the greatest relative error."""
    worst = max(abs(value(target, kept, v) / target.whole(v, target.exact(v)) - 1) for v in points(target, count))
    return float(mp.log(worst, 2))


def fit(target: Target, count: int, dtype, size: int = 300) -> list[float]:
    """Coefficients close to the best: Lawson's reweighted least squares, each rounded to `dtype` and the rest fitted again."""
    at = points(target, size)
    weights = [
        abs((target.whole(v, mp.mpf(1)) - target.whole(v, mp.mpf(0))) / target.whole(v, target.exact(v))) for v in at
    ]
    rest, kept = [target.exact(v) for v in at], []
    for first in range(count):
        found = lawson(at, rest, weights, first, count)
        kept.append(float(dtype(float(found))))
        rest = [r - kept[-1] * v**first for r, v in zip(rest, at)]
    return kept


def lawson(at, wanted, weights, first: int, count: int, rounds: int = 40):
    """The coefficient of v^first in the best Σ c·vⁱ, first ≤ i < count; solved in Chebyshev's basis, with one refinement."""
    scale = max(abs(v) for v in at)
    t = np.array([float(v / scale) for v in at])
    middle, half = (t.max() + t.min()) / 2, (t.max() - t.min()) / 2
    basis = np.polynomial.chebyshev.chebvander((t - middle) / half, count - first - 1) * (t**first)[:, None]
    y, w = np.array([float(v) for v in wanted]), np.array([float(v) for v in weights])
    share, best, least = np.ones(len(t)), None, np.inf
    for _ in range(rounds):
        root = np.sqrt(share) * w
        c = np.linalg.lstsq(basis * root[:, None], y * root, rcond=None)[0]
        left = np.array([float(a) for a in mp.matrix(wanted) - mp.matrix(basis.tolist()) * mp.matrix(c.tolist())])
        c = [
            mp.mpf(a) + mp.mpf(b) for a, b in zip(c, np.linalg.lstsq(basis * root[:, None], left * root, rcond=None)[0])
        ]
        miss = abs(left * w)
        if miss.max() < least:
            least, best = miss.max(), c
        share = share * (miss / miss.max() + 1e-3)
        share /= share.mean()
    # at v = 0
    inside = np.polynomial.chebyshev.chebvander(np.array([-middle / half]), count - first - 1)[0]
    return mp.fdot(best, list(map(float, inside))) / scale**first


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", default="", help="the polynomial to fit anew")
    name = parser.parse_args(arguments).fit
    for label, target in TARGETS.items():
        for fraction, kept in target.table.items():
            if fraction == SINGLE:
                kept = [float(np.float32(c)) for c in kept]
            if name in ("", label):
                print(
                    f"{label:12} {'float32' if fraction == SINGLE else 'float64'}: {error(target, kept):.1f}",
                    flush=True,
                )
            if name == label:
                again = fit(target, len(kept), np.float32 if fraction == SINGLE else np.float64)
                print(f"  fitted anew: {error(target, again):.1f} {again}")


if __name__ == "__main__":
    main()
