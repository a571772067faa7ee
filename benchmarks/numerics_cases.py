"""What the accuracy table measures: functions, where, and their values to many digits by mpmath."""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

mpmath.mp.dps = 40


@dataclass(frozen=True)
class Accuracy:
    """One line of the table.

    Attributes:
        name: of the function in `gradix.lax`.
        where: the operands, in words.
        points: `points(rng, n)` gives the operands, float64 arrays.
        exact: the value by mpmath.
        count: how many points; fewer where mpmath is slow.
    """

    name: str
    where: str
    points: Callable
    exact: Callable
    count: int = 400


def between(*bounds, log=False):
    """Points between bounds, one pair per operand; `log` spreads them evenly over orders of magnitude."""

    def points(rng, n):
        if log:
            return [np.exp(rng.uniform(np.log(a), np.log(b), n)) for a, b in bounds]
        return [rng.uniform(a, b, n) for a, b in bounds]

    return points


def signed(low, high):
    """Points of both signs, spread over orders of magnitude."""

    def points(rng, n):
        return [np.exp(rng.uniform(np.log(low), np.log(high), n)) * rng.choice([-1.0, 1.0], n)]

    return points


def around_the_mean(low, high):
    """(a, x) with x within five deviations of the mean of the gamma distribution of shape a."""

    def points(rng, n):
        a = np.exp(rng.uniform(np.log(low), np.log(high), n))
        return [a, np.maximum(a * np.exp(rng.uniform(-5, 5, n) / np.sqrt(np.maximum(a, 4))), 1e-3)]

    return points


def beta_points(low, high):
    """(a, b, x) with x drawn from the distribution."""

    def points(rng, n):
        a, b = np.exp(rng.uniform(np.log(low), np.log(high), (2, n)))
        return [a, b, np.clip(rng.beta(a, b), 1e-6, 1 - 1e-6)]

    return points


def lgamma(x):
    return mpmath.log(abs(mpmath.gamma(x))) if x < 100 else mpmath.loggamma(x)


def erf_inv(y):
    """Newton's steps from mpmath's own value, which has fewer digits near 1."""
    x = mpmath.erfinv(y)
    for _ in range(3):
        x -= (mpmath.erf(x) - y if abs(y) < 0.9 else _far(x, y)) * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
    return x


def _far(x, y):
    return (1 - y) - mpmath.erfc(x) if y > 0 else mpmath.erfc(-x) - (1 + y)


def slope_in_a(a, x):
    """∂P/∂a, from differences taken with many digits."""
    with mpmath.workdps(60):
        h = mpf(10) ** -18
        up, down = (mpmath.gammainc(a + d, 0, x, regularized=True) for d in (h, -h))
        return (up - down) / (2 * h)


def sample_slope(a, x):
    density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
    return -slope_in_a(a, x) / density


def lower_gamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def upper_gamma(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def beta_cdf(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def bessel(order):
    return lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(order, x)


REAL = [
    Accuracy("exp", "-80 … 80", between((-80, 80)), mpmath.exp),
    Accuracy("expm1", "10⁻³⁰ … 50, both signs", signed(1e-30, 50), mpmath.expm1),
    Accuracy("log", "10⁻³⁰ … 10³⁰", between((1e-30, 1e30), log=True), mpmath.log),
    Accuracy("log", "0.9 … 1.1", between((0.9, 1.1)), mpmath.log),
    Accuracy("log1p", "10⁻³⁰ … 0.9, both signs", signed(1e-30, 0.9), mpmath.log1p),
    Accuracy("log1p", "1 … 10³⁰", between((1, 1e30), log=True), mpmath.log1p),
    Accuracy("sin", "-4 … 4", between((-4, 4)), mpmath.sin),
    Accuracy("cos", "-4 … 4", between((-4, 4)), mpmath.cos),
    Accuracy("tan", "-4 … 4", between((-4, 4)), mpmath.tan),
    Accuracy("sin", "10³ … 10³⁰", between((1e3, 1e30), log=True), mpmath.sin),
    Accuracy("cos", "10³ … 10³⁰", between((1e3, 1e30), log=True), mpmath.cos),
    Accuracy("tan", "10³ … 10³⁰", between((1e3, 1e30), log=True), mpmath.tan),
    Accuracy("asin", "-1 … 1", between((-1, 1)), mpmath.asin),
    Accuracy("acos", "-1 … 1", between((-1, 1)), mpmath.acos),
    Accuracy("atan", "10⁻¹⁰ … 10¹⁰, both signs", signed(1e-10, 1e10), mpmath.atan),
    Accuracy("sinh", "10⁻¹⁰ … 80, both signs", signed(1e-10, 80), mpmath.sinh),
    Accuracy("cosh", "-80 … 80", between((-80, 80)), mpmath.cosh),
    Accuracy("tanh", "10⁻¹⁰ … 20, both signs", signed(1e-10, 20), mpmath.tanh),
    Accuracy("asinh", "10⁻¹⁰ … 10¹⁰, both signs", signed(1e-10, 1e10), mpmath.asinh),
    Accuracy("acosh", "1 … 10¹⁰", between((1.0001, 1e10), log=True), mpmath.acosh),
    Accuracy("atanh", "10⁻¹⁰ … 0.999, both signs", signed(1e-10, 0.999), mpmath.atanh),
    Accuracy("logistic", "-80 … 80", between((-80, 80)), lambda x: 1 / (1 + mpmath.exp(-x))),
    Accuracy("rsqrt", "10⁻³⁰ … 10³⁰", between((1e-30, 1e30), log=True), lambda x: 1 / mpmath.sqrt(x)),
    Accuracy("cbrt", "10⁻³⁰ … 10³⁰", between((1e-30, 1e30), log=True), mpmath.cbrt),
    Accuracy("pow", "x 0.1 … 10, y -30 … 30", between((0.1, 10), (-30, 30)), lambda x, y: x**y),
    Accuracy("erf", "10⁻¹⁰ … 4, both signs", signed(1e-10, 4), mpmath.erf),
    Accuracy("erfc", "-4 … 9", between((-4, 9)), mpmath.erfc),
    Accuracy("erf_inv", "-0.999 … 0.999", between((-0.999, 0.999)), erf_inv),
    Accuracy("lgamma", "0.001 … 0.9", between((1e-3, 0.9)), lgamma),
    Accuracy("lgamma", "3 … 10⁶", between((3, 1e6), log=True), lgamma),
    Accuracy("digamma", "2 … 10⁶", between((2, 1e6), log=True), mpmath.digamma),
    Accuracy(
        "polygamma",
        "n 1 … 4, x 0.1 … 100",
        lambda rng, n: [rng.integers(1, 5, n).astype(float), rng.uniform(0.1, 100, n)],
        lambda n, x: mpmath.polygamma(int(n), x),
        60,
    ),
    Accuracy("zeta", "x 1.1 … 20, q 0.1 … 20", between((1.1, 20), (0.1, 20)), mpmath.zeta, 60),
    Accuracy("igamma", "a 0.1 … 10", around_the_mean(0.1, 10), lower_gamma, 120),
    Accuracy("igamma", "a 10 … 2000", around_the_mean(10, 2000), lower_gamma, 60),
    Accuracy("igammac", "a 0.1 … 10", around_the_mean(0.1, 10), upper_gamma, 120),
    Accuracy("igammac", "a 10 … 2000", around_the_mean(10, 2000), upper_gamma, 60),
    Accuracy("igamma_grad_a", "a 0.1 … 100", around_the_mean(0.1, 100), slope_in_a, 60),
    Accuracy("random_gamma_grad", "a 0.1 … 100", around_the_mean(0.1, 100), sample_slope, 60),
    Accuracy("betainc", "a, b 0.1 … 10", beta_points(0.1, 10), beta_cdf, 100),
    Accuracy("betainc", "a, b 10 … 1000", beta_points(10, 1000), beta_cdf, 60),
    Accuracy("bessel_i0e", "-100 … 100", between((-100, 100)), bessel(0), 200),
    Accuracy("bessel_i1e", "10⁻⁵ … 100, both signs", signed(1e-5, 100), bessel(1), 200),
]

COMPLEX = [
    "exp",
    "log",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
]
CUTS = ["log", "sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"]
DENORMAL = {
    "x · 1": lambda lax, np_, x: lax.mul(x, np_.ones_like(x)),
    "x + x": lambda lax, np_, x: lax.add(x, x),
    "-x": lambda lax, np_, x: lax.neg(x),
    "sqrt(x) > 0": lambda lax, np_, x: lax.sqrt(x),
    "log(x) finite": lambda lax, np_, x: lax.exp(lax.mul(lax.log(x), np_.asarray(0.01, x.dtype))),
    "sin(x)": lambda lax, np_, x: lax.sin(x),
    "x > 0": lambda lax, np_, x: lax.convert_element_type(lax.gt(x, np_.zeros_like(x)), x.dtype),
}
