"""What the accuracy tables of `scipy` measure: functions, where, and their values to many digits by mpmath."""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

from benchmarks.numerics_cases import between, signed


@dataclass(frozen=True)
class Row:
    """One line: its name, the operands in words, what it calls of a scipy module, the points, the exact value."""

    label: str
    where: str
    function: Callable
    points: Callable
    exact: Callable
    count: int = 60


def row(label: str, where: str, points: Callable, exact: Callable, count: int = 60) -> Row:
    """A function of scipy.special, under its name or the part of the label before a comma."""
    name = label.split(",")[0]
    return Row(label, where, lambda module: getattr(module.special, name, None), points, exact, count)


def part(label: str, index: int, where: str, points: Callable, exact: Callable) -> Row:
    """One of several results of a function."""
    name = label.split(",")[0]
    return Row(label, where, lambda module: lambda *a: getattr(module.special, name)(*a)[index], points, exact)


def orders(low: int, high: int, *bounds):
    """An integer order and further operands."""
    further = between(*bounds, log=True)
    return lambda rng, n: [rng.integers(low, high + 1, n).astype(float), *further(rng, n)]


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def owens_t(h, a):
    return mpmath.quad(lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a / 2, a]) / (2 * mpmath.pi)


def ndtri(p):
    """Newton's steps on the distribution function, from the normal quantile of double precision."""
    x = mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    for _ in range(4):
        x -= (ndtr(x) - p) * mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(x * x / 2)
    return x


def dawsn(x):
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


def lbeta(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def boxcox(x, y):
    return mpmath.expm1(y * mpmath.log(x)) / y if y else mpmath.log(x)


VALUES = [
    row("gamma", "0.01 … 30", between((0.01, 30), log=True), mpmath.gamma, 200),
    row("gamma", "-20 … 0", between((-20, 0)), mpmath.gamma, 200),
    row("gammaln", "10⁻⁸ … 10⁸", between((1e-8, 1e8), log=True), lambda x: mpmath.loggamma(x), 200),
    row("gammaln", "-20 … 0", between((-20, 0)), lambda x: mpmath.log(abs(mpmath.gamma(x))), 200),
    row("digamma", "0.001 … 10⁴", between((1e-3, 1e4), log=True), mpmath.digamma, 200),
    row("digamma", "-20 … 0", between((-20, 0)), mpmath.digamma, 200),
    row("beta", "0.01 … 30", between((0.01, 30), (0.01, 30), log=True), mpmath.beta),
    row("betaln", "0.01 … 10⁴", between((0.01, 1e4), (0.01, 1e4), log=True), lbeta),
    row("poch", "x 0.1 … 20, m 0 … 9", between((0.1, 20), (0, 9)), mpmath.rf),
    row("factorial", "0 … 30", between((0, 30)), mpmath.factorial),
    row("erfcx", "-4 … 20", between((-4, 20)), lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    row("dawsn", "10⁻⁶ … 50, both signs", signed(1e-6, 50), dawsn),
    row("exp1", "10⁻⁸ … 70", between((1e-8, 70), log=True), mpmath.e1),
    row("expi", "10⁻⁶ … 70, both signs", signed(1e-6, 70), mpmath.ei),
    row("expn", "n 0 … 30, x 0.001 … 50", orders(0, 30, (1e-3, 50)), lambda n, x: mpmath.expint(int(n), x)),
    part("fresnel, S", 0, "10⁻⁵ … 30, both signs", signed(1e-5, 30), mpmath.fresnels),
    part("fresnel, C", 1, "10⁻⁵ … 30, both signs", signed(1e-5, 30), mpmath.fresnelc),
    part("sici, Si", 0, "10⁻⁵ … 100, both signs", signed(1e-5, 100), mpmath.si),
    part("sici, Ci", 1, "10⁻⁵ … 100", between((1e-5, 100), log=True), mpmath.ci),
    row("spence", "10⁻⁶ … 10⁶", between((1e-6, 1e6), log=True), lambda x: mpmath.re(mpmath.polylog(2, 1 - x))),
    row("owens_t", "h, a 0.01 … 5", between((0.01, 5), (0.01, 5), log=True), owens_t, 40),
    row("hyp1f1", "a, b 0.2 … 6, x -30 … 30", between((0.2, 3), (0.3, 6), (-30, 30)), mpmath.hyp1f1),
    row("hyp2f1", "a, b, c 0.2 … 5, x -6 … 0.95", between((0.2, 3), (0.2, 3), (0.3, 5), (-6, 0.95)), mpmath.hyp2f1),
    row("ndtr", "-12 … 6", between((-12, 6)), ndtr, 200),
    row("log_ndtr", "-10³ … 8", between((-1e3, 8)), lambda x: mpmath.log(ndtr(x)), 200),
    row("log_ndtr", "-6 … 6", between((-6, 6)), lambda x: mpmath.log(ndtr(x)), 200),
    row("ndtri", "10⁻³⁰ … 0.5", between((1e-30, 0.5), log=True), ndtri),
    row("ndtri", "0.01 … 0.99", between((0.01, 0.99)), ndtri),
    row("i0", "-80 … 80", between((-80, 80)), lambda x: mpmath.besseli(0, x)),
    row("i1", "-80 … 80", between((-80, 80)), lambda x: mpmath.besseli(1, x)),
    row("expit", "-80 … 80", between((-80, 80)), lambda x: 1 / (1 + mpmath.exp(-x)), 200),
    row("logit", "0.01 … 0.99", between((0.01, 0.99)), lambda p: mpmath.log(p / (1 - p)), 200),
    row("entr", "0.001 … 10", between((1e-3, 10), log=True), lambda x: -x * mpmath.log(x)),
    row("xlogy", "0.01 … 10", between((0.01, 10), (0.01, 10)), lambda x, y: x * mpmath.log(y)),
    row("xlog1py", "y 10⁻⁶ … 10", between((0.01, 10), (1e-6, 10), log=True), lambda x, y: x * mpmath.log1p(y)),
    row("rel_entr", "0.01 … 10", between((0.01, 10), (0.01, 10)), lambda x, y: x * mpmath.log(x / y)),
    row("kl_div", "0.01 … 10", between((0.01, 10), (0.01, 10)), lambda x, y: x * mpmath.log(x / y) - x + y),
    row("boxcox", "x 0.001 … 10³, λ -2 … 2", between((1e-3, 1e3), (0.01, 2), log=True), boxcox),
    row("boxcox1p", "x 10⁻⁶ … 10³", between((1e-6, 1e3), (0.01, 2), log=True), lambda x, y: boxcox(1 + x, y)),
    row("zeta", "x 1.1 … 20, q 0.1 … 20", between((1.1, 20), (0.1, 20)), mpmath.zeta),
    Row(
        "wofz, real part",
        "re -8 … 8, im 0 … 8",
        lambda m: lambda x, y: m.special.wofz(x + 1j * y).real,
        between((-8, 8), (0, 8)),
        lambda x, y: mpmath.re(mpmath.exp(-(mpmath.mpc(x, y) ** 2)) * mpmath.erfc(mpmath.mpc(y, -x))),
    ),
]


def dist(name: str, function: str, where: str, points: Callable, exact: Callable, count: int = 60) -> Row:
    """A function of a distribution; operands are x and the parameters of its shape."""
    return Row(f"{name}.{function}", where, lambda m: getattr(getattr(m.stats, name), function), points, exact, count)


def log_choose(n, k):
    return mpmath.log(mpmath.binomial(n, k))


def counts(high: int, *bounds):
    return lambda rng, n: [rng.integers(0, high, n).astype(float), *[rng.uniform(a, b, n) for a, b in bounds]]


log, exp, lg = mpmath.log, mpmath.exp, mpmath.loggamma
DENSITIES = [
    dist("norm", "logpdf", "-40 … 40", between((-40, 40)), lambda x: -x * x / 2 - log(2 * mpmath.pi) / 2),
    dist("norm", "cdf", "-12 … 6", between((-12, 6)), ndtr),
    dist("norm", "logcdf", "-100 … 8", between((-100, 8)), lambda x: log(ndtr(x))),
    dist("norm", "sf", "-6 … 12", between((-6, 12)), lambda x: ndtr(-x)),
    dist("norm", "ppf", "10⁻³⁰ … 0.5", between((1e-30, 0.5), log=True), ndtri),
    dist("cauchy", "logpdf", "-10⁴ … 10⁴", signed(1e-4, 1e4), lambda x: -log(mpmath.pi * (1 + x * x))),
    dist("cauchy", "cdf", "-10⁴ … 10⁴", signed(1e-4, 1e4), lambda x: mpf(1) / 2 + mpmath.atan(x) / mpmath.pi),
    dist("expon", "cdf", "10⁻⁶ … 50", between((1e-6, 50), log=True), lambda x: -mpmath.expm1(-x)),
    dist("expon", "ppf", "10⁻⁶ … 0.999", between((1e-6, 0.999), log=True), lambda p: -mpmath.log1p(-p)),
    dist("laplace", "cdf", "-30 … 30", between((-30, 30)), lambda x: exp(x) / 2 if x < 0 else 1 - exp(-x) / 2),
    dist("logistic", "logpdf", "-40 … 40", between((-40, 40)), lambda x: -x - 2 * mpmath.log1p(exp(-x))),
    dist("logistic", "cdf", "-40 … 40", between((-40, 40)), lambda x: 1 / (1 + exp(-x))),
    dist("gumbel_r", "logpdf", "-4 … 40", between((-4, 40)), lambda x: -x - exp(-x)),
    dist("gumbel_r", "sf", "-4 … 40", between((-4, 40)), lambda x: -mpmath.expm1(-exp(-x))),
    dist("gumbel_l", "cdf", "-40 … 3", between((-40, 3)), lambda x: -mpmath.expm1(-exp(x))),
    dist(
        "pareto",
        "logpdf",
        "x 1 … 10³, b 0.5 … 5",
        between((1, 1e3), (0.5, 5), log=True),
        lambda x, b: log(b) - (b + 1) * log(x),
    ),
    dist(
        "gamma",
        "logpdf",
        "x 0.01 … 100, a 0.1 … 50",
        between((0.01, 100), (0.1, 50), log=True),
        lambda x, a: (a - 1) * log(x) - x - lg(a),
    ),
    dist(
        "gamma",
        "cdf",
        "x, a 0.1 … 20",
        between((0.1, 20), (0.1, 20), log=True),
        lambda x, a: mpmath.gammainc(a, 0, x, regularized=True),
    ),
    dist(
        "gamma",
        "logsf",
        "x, a 0.1 … 20",
        between((0.1, 20), (0.1, 20), log=True),
        lambda x, a: log(mpmath.gammainc(a, x, mpmath.inf, regularized=True)),
    ),
    dist(
        "chi2",
        "logpdf",
        "x 0.01 … 100, k 0.5 … 50",
        between((0.01, 100), (0.5, 50), log=True),
        lambda x, k: (k / 2 - 1) * log(x) - x / 2 - lg(k / 2) - k / 2 * log(2),
    ),
    dist(
        "beta",
        "logpdf",
        "a, b 0.1 … 20",
        between((0.01, 0.99), (0.1, 20), (0.1, 20)),
        lambda x, a, b: (a - 1) * log(x) + (b - 1) * mpmath.log1p(-x) - lbeta(a, b),
    ),
    dist(
        "beta",
        "cdf",
        "a, b 0.1 … 20",
        between((0.01, 0.99), (0.1, 20), (0.1, 20)),
        lambda x, a, b: mpmath.betainc(a, b, 0, x, regularized=True),
    ),
    dist(
        "t",
        "logpdf",
        "x -100 … 100, ν 0.5 … 10⁴",
        lambda rng, n: [*signed(1e-2, 100)(rng, n), np.exp(rng.uniform(np.log(0.5), np.log(1e4), n))],
        lambda x, v: lg((v + 1) / 2) - lg(v / 2) - log(v * mpmath.pi) / 2 - (v + 1) / 2 * mpmath.log1p(x * x / v),
    ),
    dist(
        "vonmises",
        "logpdf",
        "κ 0.01 … 100",
        between((-3.1, 3.1), (0.01, 100)),
        lambda x, k: k * mpmath.cos(x) - log(2 * mpmath.pi * mpmath.besseli(0, k)),
    ),
    dist(
        "gennorm", "logpdf", "β 0.5 … 4", between((-4, 4), (0.5, 4)), lambda x, b: log(b / 2) - lg(1 / b) - abs(x) ** b
    ),
    dist("poisson", "logpmf", "k < 60, μ 0.1 … 60", counts(60, (0.1, 60)), lambda k, m: k * log(m) - m - lg(k + 1)),
    dist(
        "poisson",
        "cdf",
        "k < 60, μ 0.1 … 60",
        counts(60, (0.1, 60)),
        lambda k, m: mpmath.gammainc(k + 1, m, mpmath.inf, regularized=True),
    ),
    dist(
        "geom",
        "logpmf",
        "k 1 … 40",
        lambda rng, n: [rng.integers(1, 40, n).astype(float), rng.uniform(0.05, 0.95, n)],
        lambda k, p: (k - 1) * mpmath.log1p(-p) + log(p),
    ),
    dist(
        "binom",
        "logpmf",
        "n 60, p 0.05 … 0.95",
        lambda rng, n: [rng.integers(0, 61, n).astype(float), np.full(n, 60.0), rng.uniform(0.05, 0.95, n)],
        lambda k, n, p: log_choose(n, k) + k * log(p) + (n - k) * mpmath.log1p(-p),
    ),
    dist(
        "nbinom",
        "logpmf",
        "k < 60",
        counts(60, (0.5, 20), (0.05, 0.95)),
        lambda k, r, p: lg(k + r) - lg(k + 1) - lg(r) + r * log(p) + k * mpmath.log1p(-p),
    ),
]

_OF_DERIVATIVES = {
    "gammaln",
    "digamma",
    "gamma",
    "erfcx",
    "dawsn",
    "exp1",
    "expi",
    "fresnel, S",
    "sici, Si",
    "spence",
    "owens_t",
    "hyp1f1",
    "hyp2f1",
    "ndtr",
    "log_ndtr",
    "ndtri",
    "i0",
    "i1",
    "expit",
    "boxcox",
    "entr",
    "expn",
}
_EXACT_DERIVATIVE_IS_SLOW = {("gamma", "-20 … 0"), ("gammaln", "-20 … 0"), ("ndtri", "10⁻³⁰ … 0.5")}
DERIVATIVES = [r for r in VALUES if r.label in _OF_DERIVATIVES and (r.label, r.where) not in _EXACT_DERIVATIVE_IS_SLOW]

_LINE = [(v,) for v in (0.0, -0.0, 1.0, -1.0, -2.0, 0.5, -1.5, np.inf, -np.inf, np.nan)]
_PAIRS = [(a, b) for a in (0.0, 1.0, np.inf, np.nan) for b in (0.0, 1.0, np.inf, np.nan)]
EDGES = {
    **dict.fromkeys(
        (
            "gamma",
            "gammaln",
            "gammasgn",
            "digamma",
            "erf",
            "erfc",
            "erfcx",
            "erfinv",
            "dawsn",
            "exp1",
            "expi",
            "spence",
            "ndtr",
            "log_ndtr",
            "ndtri",
            "i0",
            "i1",
            "i0e",
            "i1e",
            "expit",
            "logit",
            "entr",
        ),
        _LINE,
    ),
    **dict.fromkeys(
        ("xlogy", "xlog1py", "rel_entr", "kl_div", "boxcox", "boxcox1p", "gammainc", "gammaincc", "owens_t", "betaln"),
        _PAIRS,
    ),
}
