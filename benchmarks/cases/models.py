"""Parts of statistical models, on a million numbers each, beside JAX, and SciPy or NumPy."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy
import scipy.sparse.linalg
import scipy.special
import scipy.stats

from benchmarks.case import case

LIMIT = 1.0
N = 1_000_000


def _between(low: float, high: float, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(low, high, N).astype(numpy.float32)


def _whole(low: int, high: int, seed: int = 0) -> numpy.ndarray:
    return numpy.random.default_rng(seed).integers(low, high, N).astype(numpy.float32)


# -- special functions -----------------------------------------------------------------------------

# Functions of one number, with the interval of their operands.
_OF_ONE = {
    "gamma": (0.1, 20),
    "gammaln": (0.1, 100),
    "gammasgn": (-20, 20),
    "loggamma": (0.1, 100),
    "digamma": (0.1, 100),
    "factorial": (0, 20),
    "erf": (-3, 3),
    "erfc": (-3, 3),
    "erfcx": (-3, 10),
    "erfinv": (-0.99, 0.99),
    "dawsn": (-5, 5),
    "exp1": (0.1, 20),
    "expi": (0.1, 20),
    "spence": (0.1, 20),
    "fresnel": (-5, 5),
    "sici": (0.1, 20),
    "ndtr": (-5, 5),
    "log_ndtr": (-20, 5),
    "ndtri": (0.01, 0.99),
    "i0": (-20, 20),
    "i0e": (-20, 20),
    "i1": (-20, 20),
    "i1e": (-20, 20),
    "expit": (-20, 20),
    "logit": (0.01, 0.99),
    "entr": (0, 5),
}
# Functions of which a million values take JAX minutes.
_FEW = "exp1", "hyp1f1", "hyp2f1"
_OF_MORE = {
    "beta": [(0.1, 20), (0.1, 20)],
    "betaln": [(0.1, 20), (0.1, 20)],
    "betainc": [(0.1, 20), (0.1, 20), (0.01, 0.99)],
    "boxcox": [(0.1, 20), (-2, 2)],
    "boxcox1p": [(0.1, 20), (-2, 2)],
    "comb": [(10, 20), (1, 9)],
    "gammainc": [(0.1, 20), (0.1, 20)],
    "gammaincc": [(0.1, 20), (0.1, 20)],
    "hyp1f1": [(0.5, 4), (0.5, 4), (-5, 5)],
    "hyp2f1": [(0.5, 4), (0.5, 4), (1, 5), (-0.9, 0.9)],
    "kl_div": [(0.1, 5), (0.1, 5)],
    "owens_t": [(-4, 4), (-4, 4)],
    "poch": [(0.5, 10), (0.5, 5)],
    "rel_entr": [(0.1, 5), (0.1, 5)],
    "xlog1py": [(0, 5), (0.1, 5)],
    "xlogy": [(0, 5), (0.1, 5)],
    "zeta": [(1.1, 10), (0.5, 10)],
}


def _special(name: str, domains) -> None:
    few = name in _FEW
    size, title = (10_000, f"{name} of 10,000") if few else (N, name)

    def numbers():
        return [_between(low, high, i)[:size] for i, (low, high) in enumerate(domains)]

    def make(x):
        f = x.api.jit(getattr(importlib.import_module(f"{x.name}.scipy.special"), name))
        args = [x.np.asarray(a) for a in numbers()]
        return lambda: f(*args)

    own = getattr(scipy.special, name, None)

    def with_scipy(x):
        args = numbers()
        return lambda: own(*args)

    case(title, "special", LIMIT, numpy=own and with_scipy)(make)


for _name, _domain in _OF_ONE.items():
    _special(_name, [_domain])
for _name, _domains in _OF_MORE.items():
    _special(_name, _domains)


# -- log-densities ---------------------------------------------------------------------------------

# For each density, the numbers and then the parameters.
_DENSITIES: dict[str, tuple[Callable, list]] = {
    "beta.logpdf": (lambda: _between(0.01, 0.99), [2.0, 3.0]),
    "cauchy.logpdf": (lambda: _between(-20, 20), []),
    "chi2.logpdf": (lambda: _between(0.01, 20), [4.0]),
    "expon.logpdf": (lambda: _between(0, 20), []),
    "gamma.logpdf": (lambda: _between(0.01, 20), [2.5]),
    "gennorm.logpdf": (lambda: _between(-5, 5), [1.5]),
    "gumbel_l.logpdf": (lambda: _between(-5, 3), []),
    "gumbel_r.logpdf": (lambda: _between(-3, 5), []),
    "laplace.logpdf": (lambda: _between(-20, 20), []),
    "logistic.logpdf": (lambda: _between(-20, 20), []),
    "norm.logpdf": (lambda: _between(-5, 5), [0.5, 2.0]),
    "pareto.logpdf": (lambda: _between(1, 20), [2.0]),
    "t.logpdf": (lambda: _between(-20, 20), [4.0]),
    "truncnorm.logpdf": (lambda: _between(-2, 2), [-2.0, 2.0]),
    "uniform.logpdf": (lambda: _between(-0.5, 1.5), []),
    "vonmises.logpdf": (lambda: _between(-3, 3), [2.0]),
    "wrapcauchy.logpdf": (lambda: _between(0, 6), [0.5]),
    "bernoulli.logpmf": (lambda: _whole(0, 2), [0.3]),
    "betabinom.logpmf": (lambda: _whole(0, 10), [10.0, 2.0, 3.0]),
    "binom.logpmf": (lambda: _whole(0, 10), [10.0, 0.3]),
    "geom.logpmf": (lambda: _whole(1, 10), [0.3]),
    "nbinom.logpmf": (lambda: _whole(0, 10), [3.0, 0.3]),
    "poisson.logpmf": (lambda: _whole(0, 10), [4.0]),
}


def _density(name: str, numbers: Callable, params: list) -> None:
    distribution, function = name.split(".")

    def make(x):
        module = importlib.import_module(f"{x.name}.scipy.stats")
        f = x.api.jit(getattr(getattr(module, distribution), function))
        values = x.np.asarray(numbers())
        # arrays, as the parameters of a model are, so that none is known when compiling
        given = [x.np.asarray(numpy.float32(p)) for p in params]
        return lambda: f(values, *given)

    def with_scipy(x):
        f, values = getattr(getattr(scipy.stats, distribution), function), numbers()
        return lambda: f(values, *params)

    case(name, "densities", LIMIT, numpy=with_scipy)(make)


for _name, (_numbers, _params) in _DENSITIES.items():
    _density(_name, _numbers, _params)


# -- samplers --------------------------------------------------------------------------------------

# What is drawn, and the method of NumPy's generator if it draws the same.
_SAMPLERS: dict[str, tuple[Callable, Callable | None]] = {
    "bits": (lambda r, k: r.bits(k, (N,)), None),
    "uniform": (lambda r, k: r.uniform(k, (N,)), lambda g: g.random(N, numpy.float32)),
    "randint": (lambda r, k: r.randint(k, (N,), 0, 1000), lambda g: g.integers(0, 1000, N)),
    "bernoulli": (lambda r, k: r.bernoulli(k, 0.3, (N,)), lambda g: g.random(N) < 0.3),
    "normal": (lambda r, k: r.normal(k, (N,)), lambda g: g.standard_normal(N, numpy.float32)),
    "truncated_normal": (lambda r, k: r.truncated_normal(k, -2.0, 2.0, (N,)), None),
    "exponential": (lambda r, k: r.exponential(k, (N,)), lambda g: g.exponential(size=N)),
    "cauchy": (lambda r, k: r.cauchy(k, (N,)), lambda g: g.standard_cauchy(N)),
    "gumbel": (lambda r, k: r.gumbel(k, (N,)), lambda g: g.gumbel(size=N)),
    "laplace": (lambda r, k: r.laplace(k, (N,)), lambda g: g.laplace(size=N)),
    "logistic": (lambda r, k: r.logistic(k, (N,)), lambda g: g.logistic(size=N)),
    "lognormal": (lambda r, k: r.lognormal(k, 1.0, (N,)), lambda g: g.lognormal(size=N)),
    "maxwell": (lambda r, k: r.maxwell(k, (N,)), None),
    "pareto": (lambda r, k: r.pareto(k, 2.0, (N,)), lambda g: g.pareto(2.0, N)),
    "rayleigh": (lambda r, k: r.rayleigh(k, 1.0, (N,)), lambda g: g.rayleigh(size=N)),
    "rademacher": (lambda r, k: r.rademacher(k, (N,)), None),
    "triangular": (lambda r, k: r.triangular(k, 0.0, 0.3, 1.0, (N,)), lambda g: g.triangular(0, 0.3, 1, N)),
    "wald": (lambda r, k: r.wald(k, 1.0, (N,)), lambda g: g.wald(1.0, 1.0, N)),
    "weibull_min": (lambda r, k: r.weibull_min(k, 1.0, 2.0, (N,)), lambda g: g.weibull(2.0, N)),
    "gamma": (lambda r, k: r.gamma(k, 2.5, (N,)), lambda g: g.gamma(2.5, size=N)),
    "beta": (lambda r, k: r.beta(k, 2.0, 3.0, (N,)), lambda g: g.beta(2.0, 3.0, N)),
    "chisquare": (lambda r, k: r.chisquare(k, 4.0, shape=(N,)), lambda g: g.chisquare(4.0, N)),
    "t": (lambda r, k: r.t(k, 4.0, (N,)), lambda g: g.standard_t(4.0, N)),
    "poisson": (lambda r, k: r.poisson(k, 4.0, (N,)), lambda g: g.poisson(4.0, N)),
    "binomial": (lambda r, k: r.binomial(k, 10.0, 0.3, (N,)), lambda g: g.binomial(10, 0.3, N)),
    "geometric": (lambda r, k: r.geometric(k, 0.3, (N,)), lambda g: g.geometric(0.3, N)),
    "categorical of 10": (
        lambda r, k: r.categorical(k, numpy.log(numpy.arange(1, 11, dtype="float32")), shape=(N,)),
        None,
    ),
    "choice": (lambda r, k: r.choice(k, 1000, (N,)), lambda g: g.choice(1000, N)),
    "permutation": (lambda r, k: r.permutation(k, N), lambda g: g.permutation(N)),
    "multivariate_normal of 2": (
        lambda r, k: r.multivariate_normal(
            k, numpy.zeros(2, "float32"), numpy.eye(2, dtype="float32") + 0.5, (N // 2,)
        ),
        lambda g: g.multivariate_normal([0, 0], [[1.5, 0.5], [0.5, 1.5]], N // 2),
    ),
    "dirichlet of 2": (
        lambda r, k: r.dirichlet(k, numpy.array([2.0, 3.0], "float32"), (N // 2,)),
        lambda g: g.dirichlet([2.0, 3.0], N // 2),
    ),
}


def _sampler(name: str, draw: Callable, own: Callable | None) -> None:
    def make(x):
        key, f = x.random.key(0), x.api.jit(lambda k: draw(x.random, k))
        return lambda: f(key)

    def with_numpy(x):
        generator = numpy.random.default_rng(0)
        return lambda: own(generator)

    case(f"random {name}", "samplers", LIMIT, numpy=own and with_numpy)(make)


for _name, (_draw, _own) in _SAMPLERS.items():
    _sampler(_name, _draw, _own)


# -- a large system of equations -------------------------------------------------------------------

_UNKNOWNS, _STEPS = 100_000, 50


def _stencil(v, pad: Any):
    """A tridiagonal matrix, 3 on and -1 beside the diagonal, times a vector."""
    wide = pad(v, 1)
    return 3 * v - wide[:-2] - wide[2:]


@case("cg, 100,000 unknowns, 50 steps", "solvers", LIMIT, numpy=lambda x: _by_scipy())
def _cg(x):
    solvers = importlib.import_module(f"{x.name}.scipy.sparse.linalg")
    b = x.np.asarray(_between(-1, 1)[:_UNKNOWNS])
    f = x.api.jit(lambda b: solvers.cg(lambda v: _stencil(v, x.np.pad), b, tol=0.0, maxiter=_STEPS)[0])
    return lambda: f(b)


@case("gradient through cg, 100,000 unknowns", "solvers", LIMIT)
def _gradient_of_cg(x):
    solvers = importlib.import_module(f"{x.name}.scipy.sparse.linalg")
    b = x.np.asarray(_between(-1, 1)[:_UNKNOWNS])

    def loss(b):
        v = solvers.cg(lambda v: _stencil(v, x.np.pad), b, tol=0.0, maxiter=_STEPS)[0]
        return x.np.sum(v**2)

    f = x.api.jit(x.api.grad(loss))
    return lambda: f(b)


@case("gmres, 10,000 unknowns", "solvers", LIMIT)
def _gmres(x):
    solvers = importlib.import_module(f"{x.name}.scipy.sparse.linalg")
    b = x.np.asarray(_between(-1, 1)[:10_000])
    f = x.api.jit(lambda b: solvers.gmres(lambda v: _stencil(v, x.np.pad), b, tol=1e-5, restart=20, maxiter=2)[0])
    return lambda: f(b)


@case("bicgstab, 100,000 unknowns, 50 steps", "solvers", LIMIT)
def _bicgstab(x):
    solvers = importlib.import_module(f"{x.name}.scipy.sparse.linalg")
    b = x.np.asarray(_between(-1, 1)[:_UNKNOWNS])
    f = x.api.jit(lambda b: solvers.bicgstab(lambda v: _stencil(v, x.np.pad), b, tol=0.0, maxiter=_STEPS)[0])
    return lambda: f(b)


def _by_scipy():
    b = _between(-1, 1)[:_UNKNOWNS]
    operator = scipy.sparse.linalg.LinearOperator(
        (_UNKNOWNS, _UNKNOWNS), lambda v: _stencil(v, numpy.pad), dtype=numpy.float32
    )
    return lambda: scipy.sparse.linalg.cg(operator, b, rtol=0.0, maxiter=_STEPS)[0]
