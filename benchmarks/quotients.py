"""The quotients of polynomials of `gradix/scipy/special`: how exact they are, and how they were fitted.

python -m benchmarks.quotients               # log₂ of each one's greatest relative error, by mpmath
python -m benchmarks.quotients --fit ERFCX   # fits it anew, with as many coefficients
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp

from gradix.scipy.special import coefficients

mp.mp.dps = 50


def dawson(x):
    """Dawson's integral, far away by its asymptotic series (DLMF 7.12.1)."""
    if x < 12:
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)
    return sum(mp.rf(mp.mpf(1) / 2, k) / x ** (2 * k) for k in range(20)) / (2 * x)


def erfcx(x):
    """e^(x²)·erfc x, far away by its asymptotic series (DLMF 7.12.1)."""
    if x < 30:
        return mp.exp(x * x) * mp.erfc(x)
    terms = ((-1) ** k * mp.rf(mp.mpf(1) / 2, k) / x ** (2 * k) for k in range(15))
    return sum(terms) / (x * mp.sqrt(mp.pi))


def of_square(z):
    """D(√z) / √z."""
    return dawson(mp.sqrt(z)) / mp.sqrt(z)


@dataclass(frozen=True)
class Target:
    """A quotient of polynomials and the function that it approximates.

    Attributes:
        polynomials: numerator and denominator, highest power first.
        exact: the function.
        place: from [-1, 1] to the interval of the variable.
    """

    polynomials: tuple
    exact: Callable[[Any], Any]
    place: Callable[[Any], Any]


def half_line(u):
    """From [-1, 1] to [0, ∞)."""
    return 2 * (1 + u) / (1 - u)


TARGETS = {f"ERFCX {dtype.name}": Target(pair, erfcx, half_line) for dtype, pair in coefficients.ERFCX.items()}
TARGETS["DAWSON float32"] = Target(coefficients.DAWSON, of_square, lambda u: 8 * (1 + u) + 1e-9)


def points(target: Target, count: int) -> list:
    """Chebyshev's points, which are dense at the ends."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / count for k in range(count)]
    return [target.place(mp.cos(angle)) for angle in angles]


def error(target: Target, pair, count: int = 500) -> float:
    """log₂ of the greatest relative error."""
    over, under = [list(map(mp.mpf, c)) for c in pair]
    worst = max(abs(mp.polyval(over, z) / mp.polyval(under, z) / target.exact(z) - 1) for z in points(target, count))
    return float(mp.log(worst, 2))


def fit(target: Target, rounds: int = 8) -> tuple:
    """Coefficients close to the best, with constant terms of 1.

    The relative error, times the denominator over that of the last round, is linear in the
    coefficients (Sanathanan and Koerner 1963); its weights are those of Lawson.
    """
    degrees = [len(c) - 1 for c in target.polynomials]
    at = points(target, 5 * max(degrees))
    exact = [target.exact(z) for z in at]
    shares, last, best, least = [mp.mpf(1)] * len(at), [mp.mpf(1)] * len(at), None, mp.inf
    for _ in range(rounds):
        rows = [
            [mp.sqrt(w) / (f * q) * p for p in powers(z, f, degrees)] for z, f, w, q in zip(at, exact, shares, last)
        ]
        right = [mp.sqrt(w) / q for w, q in zip(shares, last)]
        found = solve(rows, right)
        over = found[: degrees[0] + 1][::-1]
        under = [*found[degrees[0] + 1 :][::-1], mp.mpf(1)]
        last = [abs(mp.polyval(under, z)) for z in at]
        misses = [abs(mp.polyval(over, z) / q / f - 1) for z, q, f in zip(at, last, exact)]
        if max(misses) < least:
            least, best = max(misses), (over, under)
        shares = [w * (miss + max(misses) / 50) for w, miss in zip(shares, misses)]
        shares = [w * len(at) / sum(shares) for w in shares]
    return best


def powers(z, f, degrees):
    """The coefficients' factors in p(z) - f·(q(z) - 1)."""
    return [z**i for i in range(degrees[0] + 1)] + [-f * z**i for i in range(1, degrees[1] + 1)]


def solve(rows, right):
    """Least squares, by normal equations of columns of one size."""
    sizes = [mp.norm([row[j] for row in rows]) for j in range(len(rows[0]))]
    a = mp.matrix([[v / s for v, s in zip(row, sizes)] for row in rows])
    found = mp.lu_solve(a.T * a, a.T * mp.matrix(right))
    return [v / s for v, s in zip(found, sizes)]


def main(arguments=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", default="", help="the quotients to fit anew")
    name = parser.parse_args(arguments).fit
    for label, target in TARGETS.items():
        if name in label:
            print(f"{label}: {error(target, target.polynomials):.1f}", flush=True)
            if name:
                again = fit(target)
                shown = [[float(c) for c in part] for part in again]
                print(f"  fitted anew: {error(target, again):.1f} {shown}")


if __name__ == "__main__":
    main()
