"""Products of sparse matrices, beside JAX, SciPy and the dense product of the same matrix."""

import importlib

import numpy
import scipy.sparse

from benchmarks.case import case, uniform

LIMIT = 1.0


def _elements(n: int):
    """A matrix with 1 % of its elements given, in the order of rows."""
    return scipy.sparse.random(n, n, 0.01, format="csr", dtype=numpy.float32, random_state=0)


def _module(x):
    return importlib.import_module(f"{x.name}.experimental.sparse")


def _product(n: int, columns: int, kind: str, grad: bool = False):
    """Register the product of a matrix of a format, `n` by `n`, and `columns` vectors under jit."""
    shape = (n, columns) if columns else (n,)

    def make(x):
        sparse = _module(x)
        made = _elements(n)
        if kind == "dense":
            matrix = x.np.asarray(made.toarray())
        elif kind == "BCSR":
            matrix = sparse.BCSR.from_scipy_sparse(made)
        else:
            coo = made.tocoo()
            indices = numpy.stack([coo.row, coo.col], 1)
            matrix = sparse.BCOO((x.np.asarray(coo.data), x.np.asarray(indices)), shape=(n, n), indices_sorted=True)
        right = x.array(*shape)
        if grad:
            f = x.api.jit(sparse.grad(lambda m, v: x.np.sum((m @ v) ** 2), (0, 1)))
        else:
            f = x.api.jit(lambda m, v: m @ v)
        return lambda: f(matrix, right)

    def with_scipy(x):
        matrix, right = _elements(n), uniform(*shape)
        if kind == "dense":
            matrix = matrix.toarray()
        return lambda: matrix @ right

    name = f"{'gradient of the ' if grad else ''}{kind} product, {n} by {n}, {columns or 'a vector'}" + (
        " columns" if columns else ""
    )
    case(name, "sparse", LIMIT, numpy=None if grad else with_scipy)(make)


for width in (0, 16, 256):
    for form in ("dense", "BCOO", "BCSR"):
        _product(2000, width, form)
for form in ("dense", "BCSR"):
    _product(5000, 64, form)
for form in ("dense", "BCOO", "BCSR"):
    _product(2000, 256, form, grad=True)
