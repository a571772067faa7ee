"""Shared by the factorizations: checks, batching, LAPACK calls, and algebra for derivatives."""

from __future__ import annotations

import itertools

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import stacked
from gradix._core.primitive import Primitive, ValueTraits
from gradix._core.trace import bind
from gradix._ops.basis import broadcast_in_dim, reduce_sum, to_front, transpose
from gradix._ops.comparison import eq, ge
from gradix._ops.complex_parts import conj, real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.dot import dot_general
from gradix._ops.operands import scalar_like
from gradix._ops.precision import Precision
from gradix._ops.select import choose

PREFIX = {np.dtype("float32"): "s", np.dtype("float64"): "d", np.dtype("complex64"): "c", np.dtype("complex128"): "z"}
INDEX = np.dtype("int32")


# -- types -----------------------------------------------------------------------------------------


def check_matrices(name: str, x, square: bool = False) -> tuple:
    """Check that `x` is a stack of matrices of a dtype of LAPACK; returns its shape."""
    if x.ndim < 2:
        raise TypeError(
            f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}. The last two axes are "
            "the matrix; x[:, None] makes a column of a vector."
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(f"The input to {name} must be a square matrix. Got shape {x.shape}.")
    if x.dtype not in PREFIX:
        error = NotImplementedError if x.dtype in dtypes.INEXACT else TypeError
        raise error(
            f"Unsupported dtype {dtypes.dtype_name(x.dtype)} in {name}: LAPACK has float32, float64, "
            "complex64 and complex128. Convert the operand with .astype('float32') first."
        )
    return x.shape


def real_of(dtype):
    return dtypes.real_dtype(dtype) if dtype in dtypes.COMPLEX else dtype


def routine(dtype, real_name: str, complex_name: str | None = None) -> str:
    """The name of a LAPACK routine for a dtype, such as `dsyevd` or `zheevd`."""
    return PREFIX[dtype] + (complex_name if complex_name and dtype in dtypes.COMPLEX else real_name)


class Factorization(Primitive):
    """A factorization of stacks of matrices: batching adds a leading axis."""

    costly = True
    host_limit = 1 << 14
    values = ValueTraits(singular=True)
    # LAPACK uses several threads for matrices of so many elements and more.
    pool_from = 24 * 24

    def threaded(self, *avals, **params):
        rows, columns = avals[0].shape[-2:] if avals[0].ndim > 1 else (1, 1)
        return "scipy" if rows * columns >= self.pool_from else None

    def divide(self, mesh, avals, outs, params):
        lead = min(a.ndim for a in avals) - 2 if min(a.ndim for a in avals) > 1 else 0
        row = stacked(avals, max(lead, 0), self.name)
        return [(*row[: o.ndim], *[None] * (o.ndim - len(row))) for o in outs]

    def batch(self, size, args, axes, **params):
        out = bind(self, [to_front(size, x, a) for x, a in zip(args, axes)], params)
        return (out, [0] * len(out)) if self.multiple_results else (out, 0)


def each(function, lead: tuple, outs, *arrays) -> list:
    """Apply `function(*matrices) -> results` to every matrix of stacks with leading axes `lead`.

    Args:
        outs: `(trailing shape, dtype)` of each result.
    """
    if not lead:
        return [_as_given(value, shape, dtype) for value, (shape, dtype) in zip(function(*arrays), outs)]
    results = [np.empty((*lead, *shape), dtype) for shape, dtype in outs]
    for place in itertools.product(*map(range, lead)):
        for result, value in zip(results, function(*[a[place] for a in arrays])):
            result[place] = value
    return results


def _as_given(value, shape, dtype) -> np.ndarray:
    """A result as LAPACK returns it; a number is expanded to an array filled with it."""
    return np.full(shape, value, dtype) if type(value) in (float, complex) else np.asarray(value, dtype)


# -- LAPACK from XLA -------------------------------------------------------------------------------


def lapack(em, target: str, values, outs, columns, config: dict | None = None, *, aliases: dict | None = None) -> list:
    """Call `lapack_{target}_ffi`.

    `columns` says for each operand and result whether it holds matrices, in column-major order.
    """
    em.facts.add_factored([v.aval for v in values])
    avals = [*[v.aval for v in values], *outs]
    layouts = [_layout(a.ndim, matrix) for a, matrix in zip(avals, columns)]
    if em.solver is not None:
        return em.solver(em, target, values, outs, layouts, config=config or {}, aliases=aliases)
    return em.custom_call(
        f"lapack_{target}_ffi",
        outs,
        *values,
        backend_config=config or {},
        aliases=aliases,
        operand_layouts=layouts[: len(values)],
        result_layouts=layouts[len(values) :],
        batch=min([a.ndim - 2 for a, is_matrix in zip(avals, columns) if is_matrix]),
    )


def _layout(ndim: int, matrix: bool) -> list:
    order = list(range(ndim - 1, -1, -1))
    return [ndim - 2, ndim - 1, *order[2:]] if matrix else order


def info_aval(lead: tuple):
    return make_aval(lead, INDEX)


def letter(char: str) -> np.uint8:
    return np.uint8(ord(char))


def nan_unless(em, info, values, accept: str = "EQ") -> list:
    """The results, set to NaN where `info` of LAPACK fails `accept`: EQ or GE to zero."""
    fine = em.compare(info, em.constant(0, info.aval), accept)
    out = []
    for v in values:
        pred = em.broadcast_in_dim(fine, make_aval(v.shape, np.dtype(bool)), range(fine.aval.ndim))
        out.append(em.select(pred, v, em.constant(np.nan, v.aval)))
    return out


def emit_triangle(em, x, lower: bool, offset: int = 0, fill: int = 0):
    """`x` with zeros outside its triangle; `offset` moves the diagonal that still belongs to it."""
    at = make_aval(x.shape, INDEX)
    row, column = em.iota(at, x.ndim - 2), em.iota(at, x.ndim - 1)
    if offset:
        row = em.op("add", at, row, em.constant(offset, at))
    return em.select(em.compare(row, column, "GE" if lower else "LE"), x, em.constant(fill, x.aval))


def emit_eye(em, aval):
    """Identity matrices, not necessarily square."""
    at = make_aval(aval.shape, INDEX)
    return em.convert(em.compare(em.iota(at, aval.ndim - 2), em.iota(at, aval.ndim - 1), "EQ"), aval.dtype)


# -- algebra of derivatives ------------------------------------------------------------------------


def flip(x):
    """The transposes of matrices."""
    n = x.aval.ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x):
    """The conjugate transposes of matrices."""
    return flip(conj(x)) if x.aval.dtype in dtypes.COMPLEX else flip(x)


def product(x, y):
    """The products of stacks of matrices, in the highest precision."""
    n = x.aval.ndim
    lead = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (lead, lead)), precision=Precision.HIGHEST)


def triangle(x, lower: bool = True, offset: int = 0):
    """`x` with zeros outside its triangle, whose diagonal `offset` moves up."""
    row, column = _places(x.aval.shape)
    edge = row + scalar_like(row, offset) if offset else row
    inside = ge(edge, column) if lower else ge(column, edge)
    return choose(inside, broadcast_in_dim(scalar_like(x, 0), x.aval.shape, ()), x)


def diagonal_mask(x):
    """A mask that is True on the diagonals of matrices like `x`."""
    return eq(*_places(x.aval.shape))


def only_diagonal(x):
    return choose(diagonal_mask(x), broadcast_in_dim(scalar_like(x, 0), x.aval.shape, ()), x)


def identity(x, rows: int, columns: int | None = None):
    """Identity matrices of the dtype and stack of `x`."""
    shape = (*x.aval.shape[:-2], rows, rows if columns is None else columns)
    return convert_element_type(eq(*_places(shape)), x.aval.dtype)


def _places(shape):
    return broadcasted_iota(INDEX, shape, len(shape) - 2), broadcasted_iota(INDEX, shape, len(shape) - 1)


def diagonal(x):
    """The diagonals of square matrices."""
    return reduce_sum(only_diagonal(x), (x.aval.ndim - 1,))


def along_rows(v, shape):
    """Broadcast vectors so that each column holds one element; in `along_columns`, each row."""
    n = len(shape)
    return broadcast_in_dim(v, shape, (*range(n - 2), n - 1))


def along_columns(v, shape):
    return broadcast_in_dim(v, shape, tuple(range(len(shape) - 1)))


def real_part(x):
    return real(x) if x.aval.dtype in dtypes.COMPLEX else x
