"""Compiled sorts, order statistics, running sums and functions of single numbers: Gradix's own kernels beside others."""

import numpy

from benchmarks.case import case
from benchmarks.cases.kernels import LIMIT, MILLION, compiled


def normal(x, *shape):
    """Float32 normal numbers, the same for every library."""
    return x.np.asarray(numpy.random.default_rng(3).standard_normal(shape).astype(numpy.float32))


def integers(x, below, count):
    """Random int32 numbers, the same for every library."""
    return x.np.asarray(numpy.random.default_rng(4).integers(0, below, count).astype(numpy.int32))


def register(name, function, operands, peer=None, torch=None):
    """A case that compiles `function(x, *operands)`, NumPy's `peer(*operands)`, and PyTorch's `torch(x.api, *operands)`."""

    def make(x):
        return compiled(x, lambda *a: function(x, *a), *operands(x))

    def make_numpy(x):
        a = operands(x)
        return lambda: peer(*a)

    def make_torch(x):
        a, api = operands(x), x.api
        return lambda: torch(api, *a)

    case(name, "orders", LIMIT, numpy=make_numpy if peer else None, torch=make_torch if torch else None)(make)


def vector(x):
    return (normal(x, MILLION),)


def matrix(x):
    return (normal(x, 1000, 1000),)


def torch_lexsort(torch, a, b):
    """Stable sorts by the lesser key and then by the greater one, as PyTorch has no sort by two keys."""
    order = torch.argsort(a, stable=True)
    return order[torch.argsort(b[order], stable=True)]


register("sort, 1M", lambda x, a: x.np.sort(a), vector, numpy.sort, lambda t, a: t.sort(a))
register(
    "sort, 1000 rows of 1000",
    lambda x, a: x.np.sort(a, axis=1),
    matrix,
    lambda a: numpy.sort(a, 1),
    lambda t, a: t.sort(a, 1),
)
register(
    "sort, 1000 columns of 1000",
    lambda x, a: x.np.sort(a, axis=0),
    matrix,
    lambda a: numpy.sort(a, 0),
    lambda t, a: t.sort(a, 0),
)
register("sort, 10 000", lambda x, a: x.np.sort(a), lambda x: (normal(x, 10_000),), numpy.sort, lambda t, a: t.sort(a))
register("argsort, 1M", lambda x, a: x.np.argsort(a), vector, numpy.argsort, lambda t, a: t.argsort(a))
register(
    "argsort, 1000 rows of 1000",
    lambda x, a: x.np.argsort(a, axis=1),
    matrix,
    lambda a: numpy.argsort(a, 1),
    lambda t, a: t.argsort(a, 1),
)
register(
    "argsort, 10 000",
    lambda x, a: x.np.argsort(a),
    lambda x: (normal(x, 10_000),),
    numpy.argsort,
    lambda t, a: t.argsort(a),
)
register(
    "lexsort, 100 000 by two",
    lambda x, a, b: x.np.lexsort((a, b)),
    lambda x: (normal(x, 100_000), integers(x, 100, 100_000)),
    lambda a, b: numpy.lexsort((a, b)),
    torch_lexsort,
)
register(
    "top 10 of 1000 rows of 1000",
    lambda x, a: x.lax.top_k(a, 10),
    matrix,
    lambda a: numpy.argpartition(a, -10, 1),
    lambda t, a: t.topk(a, 10),
)
register("median, 1M", lambda x, a: x.np.median(a), vector, numpy.median, lambda t, a: t.median(a))
register(
    "median, 1000 rows of 1000",
    lambda x, a: x.np.median(a, axis=1),
    matrix,
    lambda a: numpy.median(a, 1),
    lambda t, a: t.median(a, 1),
)
register(
    "percentile 5, 1M",
    lambda x, a: x.np.percentile(a, 5.0),
    vector,
    lambda a: numpy.percentile(a, 5.0),
    lambda t, a: t.quantile(a, 0.05),
)
register(
    "unique, 1M of 1000",
    lambda x, a: x.np.unique(a, size=1000),
    lambda x: (integers(x, 1000, MILLION),),
    numpy.unique,
    lambda t, a: t.unique(a),
)
register(
    "cumsum rows, 1000x1000",
    lambda x, a: x.np.cumsum(a, axis=1),
    matrix,
    lambda a: numpy.cumsum(a, 1),
    lambda t, a: t.cumsum(a, 1),
)
register("cumprod, 1M", lambda x, a: x.np.cumprod(a), vector, numpy.cumprod, lambda t, a: t.cumprod(a, 0))
register("cummax, 1M", lambda x, a: x.lax.cummax(a), vector, numpy.maximum.accumulate, lambda t, a: t.cummax(a, 0))
register(
    "searchsorted, 1M in 1M",
    lambda x, s, a: x.np.searchsorted(s, a),
    lambda x: (x.np.asarray(numpy.sort(normal(x, MILLION))), normal(x, MILLION)),
    numpy.searchsorted,
    lambda t, s, a: t.searchsorted(s, a),
)
register(
    "bincount, 1M in 1000",
    lambda x, a: x.np.bincount(a, length=1000),
    lambda x: (integers(x, 1000, MILLION),),
    lambda a: numpy.bincount(a, minlength=1000),
    lambda t, a: t.bincount(a, minlength=1000),
)
register(
    "permutation, 100 000",
    lambda x, key: x.random.permutation(key, 100_000),
    lambda x: () if x.name == "torch" else (x.random.PRNGKey(0),),
    torch=lambda t: t.randperm(100_000),
)
register(
    "sum over the leading axis, 1000x1000",
    lambda x, a: x.np.sum(a, axis=0),
    matrix,
    lambda a: a.sum(0),
    lambda t, a: t.sum(a, 0),
)
register(
    "solve, 5000 of 4x4",
    lambda x, a, b: x.np.linalg.solve(a, b),
    lambda x: (normal(x, 5000, 4, 4), normal(x, 5000, 4, 1)),
    numpy.linalg.solve,
    lambda t, a, b: t.linalg.solve(a, b),
)
# PyTorch has no cube root.
for _name in ("sin", "cos", "tan", "tanh", "exp", "exp2", "expm1", "sinh", "cosh", "arcsinh", "arctan", "cbrt"):
    register(
        f"{_name}, 1M",
        lambda x, a, name=_name: getattr(x.np, name)(a),
        vector,
        getattr(numpy, _name),
        None if _name == "cbrt" else lambda t, a, name=_name: getattr(t, name)(a),
    )
register(
    "arctan2, 1M",
    lambda x, a: x.np.arctan2(a, 1.7),
    vector,
    lambda a: numpy.arctan2(a, numpy.float32(1.7)),
    lambda t, a: t.arctan2(a, t.tensor(1.7)),
)
register(
    "power, 1M",
    lambda x, a: x.np.power(x.np.abs(a), 1.7),
    vector,
    lambda a: numpy.abs(a) ** numpy.float32(1.7),
    lambda t, a: t.abs(a) ** 1.7,
)
for _name, _sign in (("remainder", "%"), ("floor_divide", "//")):
    register(
        f"x {_sign} y, 1M",
        lambda x, a, b, name=_name: getattr(x.np, name)(a, b),
        lambda x: (normal(x, MILLION), x.array(MILLION)),
        getattr(numpy, _name),
        lambda t, a, b, name=_name: getattr(t, name)(a, b),
    )
