"""Functions of `scipy.stats`: every method of every distribution, over dtypes, broadcasting, places and scales.

The strength of the types is left out, in which JAX's distributions differ from each other; so are NaN, infinities, quantiles
of no probability and scales of 0, of which JAX's are not SciPy's (tests/scipy/test_stats.py has SciPy's).
"""

import numpy as np

from tests.parity.case import Case, Weak, call, sample

CONTINUOUS = "pdf logpdf cdf logcdf sf logsf"
# name: methods, shape parameters, where the variable lies
CONTINUOUS_DISTRIBUTIONS = {
    "beta": (CONTINUOUS, (2.5, 1.5), (0.05, 0.95)),
    "cauchy": (CONTINUOUS, (), (-3, 3)),
    "chi2": (CONTINUOUS, (3.0,), (0.2, 6)),
    "expon": (CONTINUOUS, (), (0.1, 4)),
    "gamma": (CONTINUOUS, (2.5,), (0.2, 5)),
    "gumbel_l": (CONTINUOUS, (), (-2, 2)),
    "gumbel_r": (CONTINUOUS, (), (-2, 2)),
    "laplace": ("pdf logpdf cdf", (), (-3, 3)),
    "logistic": ("pdf logpdf cdf sf", (), (-3, 3)),
    "norm": (CONTINUOUS, (), (-3, 3)),
    "pareto": (CONTINUOUS, (2.5,), (1.1, 5)),
    "t": ("pdf logpdf", (3.5,), (-3, 3)),
    "truncnorm": (CONTINUOUS, (-1.5, 2.0), (-1.4, 1.9)),
    "uniform": ("pdf logpdf cdf", (), (-0.5, 1.5)),
    "gennorm": ("pdf logpdf cdf", (1.5,), (-3, 3)),
    "vonmises": ("pdf logpdf", (1.5,), (-3, 3)),
    "wrapcauchy": ("pdf logpdf", (0.5,), (0.1, 6)),
}
WITHOUT_PLACE = {"gennorm", "vonmises", "wrapcauchy"}  # without loc and scale
QUANTILES = {"cauchy": "ppf isf", "expon": "ppf", "gumbel_l": "ppf", "gumbel_r": "ppf", "logistic": "ppf isf",
             "norm": "ppf isf", "pareto": "ppf", "uniform": "ppf"}  # fmt: skip
DISCRETE_DISTRIBUTIONS = {
    "bernoulli": ("pmf logpmf cdf", (0.3,)),
    "betabinom": ("pmf logpmf", (5, 2.0, 3.0)),
    "binom": ("pmf logpmf", (5, 0.3)),
    "geom": ("pmf logpmf", (0.3,)),
    "nbinom": ("pmf logpmf", (3, 0.4)),
    "poisson": ("pmf logpmf cdf", (2.5,)),
}
DTYPES = "float32", "float16", "bfloat16", "int32", "uint8", "bool"
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 30.0], np.float32)
RTOL = 2e-3  # of JAX's float32, far from the middle


def strong(path, *args, **kwargs):
    """A call, of whose result the strength of the type is left out."""
    plain = call(path, *args, **kwargs)

    def run(ns):
        out = plain.run(ns)
        return ns.lax.convert_element_type(out, out.dtype)

    return Case(plain.id, run, plain.rtol, may_work=True)


def cases():
    for name, (methods, shapes, (low, high)) in CONTINUOUS_DISTRIBUTIONS.items():
        for method in f"{methods} {QUANTILES.get(name, '')}".split():
            between = (0.05, 0.95) if method in ("ppf", "isf") else (low, high)
            yield from of_method(f"stats.{name}.{method}", shapes, between, name not in WITHOUT_PLACE)
    for name, (methods, shapes) in DISCRETE_DISTRIBUTIONS.items():
        for method in methods.split():
            yield from of_counts(f"stats.{name}.{method}", shapes)


def of_method(path, shapes, between, has_place):
    is_quantile = between == (0.05, 0.95)
    for dtype in DTYPES[:3] if is_quantile else DTYPES:
        yield strong(path, sample(dtype, (4,), 3, *between), *shapes, rtol=RTOL if dtype == "float32" else 5e-2)
    x = sample("float32", (3, 1), 4, *between)
    yield strong(path, x, *[np.float32([s, s + 0.25]) for s in shapes], rtol=RTOL)
    yield strong(path, 0.5, *shapes, rtol=RTOL)
    yield strong(path, Weak(0.5, (2,)), *shapes, rtol=RTOL)
    yield strong(path, np.zeros((0, 2), np.float32), *shapes, rtol=RTOL)
    if not is_quantile:
        yield strong(path, EDGES, *shapes, rtol=RTOL)
    if has_place:
        yield strong(path, x, *shapes, loc=0.25, scale=np.float32([2.0, 3.0]), rtol=RTOL)
        yield strong(path, x, *shapes, 1, 2, rtol=RTOL)
    yield strong(path, rtol=RTOL)


def of_counts(path, shapes):
    for dtype in DTYPES:
        yield strong(
            path,
            np.arange(4)
            .astype("bool" if dtype == "bool" else "float32")
            .astype(np.dtype(dtype) if dtype != "bfloat16" else np.float32),
            *shapes,
            rtol=RTOL if dtype != "float16" else 5e-2,
        )
    yield strong(path, np.arange(3)[:, None].astype("int32"), *[np.float32([s, s]) for s in shapes], rtol=RTOL)
    yield strong(path, 1, *shapes, rtol=RTOL)
    yield strong(path, np.float32([-1, 9]), *shapes, rtol=RTOL)
    yield strong(path, np.arange(4, dtype="int32"), *shapes, loc=1, rtol=RTOL)
    yield strong(path, np.zeros((0,), np.int32), *shapes, rtol=RTOL)
