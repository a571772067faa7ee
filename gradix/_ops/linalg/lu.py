"""LU factorization with partial pivoting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import as_dim, smaller
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import add
from gradix._ops.basis import expand_axis
from gradix._ops.families import NonDifferentiable
from gradix._ops.indexing.gather import gather
from gradix._ops.indexing.gather_dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.linalg.base import (
    INDEX,
    Factorization,
    check_matrices,
    each,
    identity,
    info_aval,
    lapack,
    nan_unless,
    product,
    routine,
    triangle,
)
from gradix._ops.linalg.triangular import triangular_solve
from gradix._ops.operands import as_operand, scalar_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


class PivotsToPermutation(NonDifferentiable, Factorization):
    """The permutation that results from a sequence of row exchanges."""

    def abstract(self, pivots, *, permutation_size):
        if pivots.ndim < 1 or pivots.dtype != INDEX:
            raise ValueError(
                f"Argument to lu_pivots_to_permutation must have rank at least 1 and dtype int32, got {pivots}."
            )
        if permutation_size < pivots.shape[-1]:
            raise ValueError(
                f"Output permutation size {permutation_size} has to exceed the trailing dimension of the "
                f"pivots. Got pivots size {pivots.shape}."
            )
        return make_aval((*pivots.shape[:-1], permutation_size), INDEX, pivots.weak_type)

    def host(self, pivots, *, permutation_size):
        lead = pivots.shape[:-1]
        out = np.empty((*lead, permutation_size), INDEX)
        out[...] = np.arange(permutation_size)
        if not pivots.size:
            return out
        if pivots.ndim == 1:  # a list is quicker than an array here
            order = list(range(permutation_size))
            for i, j in enumerate(pivots.tolist()):
                order[i], order[j] = order[j], order[i]
            return np.array(order, INDEX)
        rows, flat = out.reshape(-1, permutation_size), pivots.reshape(-1, pivots.shape[-1])
        every = np.arange(len(rows))
        for i in range(pivots.shape[-1]):
            j = flat[:, i]
            rows[every, i], rows[every, j] = rows[every, j], rows[every, i].copy()
        return out

    def lower(self, em, out, pivots, *, permutation_size):
        if not out.size or not pivots.shape[-1]:
            return em.iota(out, out.ndim - 1)
        lead = out.ndim - 1
        start = em.iota(out, lead)
        scalar, one = make_aval((), INDEX), make_aval((*out.shape[:-1], 1), INDEX)
        zero = em.constant(0, scalar)

        def spread(v):
            return em.broadcast_in_dim(v, out, range(out.ndim))

        def step(i, perm):
            # Exchange elements i and pivots[i] in all rows at once, by masks.
            starts = [*[zero] * lead, i]
            j = em.dynamic_slice(pivots, starts, one.shape)
            at_i = em.dynamic_slice(perm, starts, one.shape)
            here = em.compare(start, spread(j), "EQ")
            at_j = em.reduce(
                [em.select(here, perm, em.constant(0, out))], [zero], [lead], [make_aval(one.shape[:-1], INDEX)], "add"
            )[0]
            moved = em.select(here, spread(at_i), perm)
            first = em.compare(start, em.broadcast(i, out.shape), "EQ")
            return [
                em.op("add", scalar, i, em.constant(1, scalar)),
                em.select(first, em.broadcast_in_dim(at_j, out, range(lead)), moved),
            ]

        count = em.number(pivots.shape[-1], INDEX)
        _, perm = em.while_loop([zero, start], lambda i, p: [em.compare(i, count, "LT")], step)
        return perm


class LU(Factorization):
    """`x[permutation] = L U` in one matrix; the row exchanges, and the permutation they make."""

    multiple_results = True

    def abstract(self, x):
        *lead, m, n = check_matrices(self.name, x)
        return [x, make_aval((*lead, smaller(m, n)), INDEX, x.weak_type), make_aval((*lead, m), INDEX, x.weak_type)]

    def host(self, x):
        *lead, m, n = x.shape
        outs = [((m, n), x.dtype), ((min(m, n),), INDEX)]
        if not x.size:
            factors, pivots = x, np.zeros((*lead, min(m, n)), INDEX)
        else:
            factor = getattr(_lapack, routine(x.dtype, "getrf"))
            factors, pivots = each(lambda a: factor(a)[:2], tuple(lead), outs, x) if lead else factor(x)[:2]
        return [factors, pivots, lu_pivots_to_permutation_p.host(pivots, permutation_size=m)]

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        out = bind(self, (x,), {})
        if t is None or not x.aval.size:
            return out, [t, None, None]
        return out, [_lu_tangent(out[0], out[2], t), None, None]

    def lower(self, em, outs, x):
        out, pivot_type, perm_type = outs
        lead = out.shape[:-2]
        if not out.size:
            return [x, em.constant(0, pivot_type), em.iota(perm_type, perm_type.ndim - 1)]
        factors, pivots, info = lapack(
            em,
            routine(out.dtype, "getrf"),
            [x],
            [out, pivot_type, info_aval(lead)],
            (True, True, False, False),
            None,
            aliases={0: 0},
        )
        (factors,) = nan_unless(em, info, [factors], "GE")  # info > 0 is a zero pivot
        pivots = em.op("subtract", pivot_type, pivots, em.constant(1, pivot_type))
        perm = em.lower(lu_pivots_to_permutation_p, perm_type, pivots, permutation_size=out.shape[-2])
        return [factors, pivots, perm]


def _lu_tangent(factors, perm, t):
    """F. de Hoog, R. Anderssen, M. Lukas, "Differentiation of matrix functionals using triangular factors", 2011.

    With L and U made square by identities, `L⁻¹ P dA U⁻¹` has `L⁻¹ dL` below the diagonal and `dU
    U⁻¹` above.
    """
    lower, upper = _lower(factors), _upper(factors)
    inner = triangular_solve(lower, take_rows(t, perm), left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(upper, inner, left_side=False, lower=False)
    return add(product(lower, triangle(inner, True, -1)), product(triangle(inner, False), upper))


def _lower(factors):
    """L, with identity columns to make it square."""
    m, n = factors.aval.shape[-2:]
    below = triangle(slice_in_dim(factors, 0, min(m, n), axis=-1), True, -1)
    return add(_padded(below, 0, max(m - n, 0)), identity(factors, m))


def _upper(factors):
    """U, with identity rows to make it square."""
    m, n = factors.aval.shape[-2:]
    upper = triangle(slice_in_dim(factors, 0, min(m, n), axis=-2), False)
    if m >= n:
        return upper
    return add(_padded(upper, n - m, 0), _placed_identity(factors, n, m))


def _padded(x, rows: int, columns: int):
    config = [*[(0, 0, 0)] * (x.aval.ndim - 2), (0, rows, 0), (0, columns, 0)]
    return pad(x, scalar_like(x, 0), config) if rows or columns else x


def _placed_identity(x, n: int, start: int):
    """A square matrix with ones on the diagonal from `start` on, zero elsewhere."""
    eye = identity(x, n - start)
    return pad(eye, scalar_like(eye, 0), [*[(0, 0, 0)] * (x.aval.ndim - 2), (start, 0, 0), (start, 0, 0)])


def take_rows(x, order, unique: bool = True):
    """The rows of matrices in the order that `order` gives for each; with `unique`, it gives no row twice."""
    if not x.aval.size:  # there is nothing to gather
        return x
    n = x.aval.ndim
    lead = tuple(range(n - 2))
    numbers = GatherDimensionNumbers(
        offset_dims=(n - 1,),
        collapsed_slice_dims=(n - 2,),
        start_index_map=(n - 2,),
        operand_batching_dims=lead,
        start_indices_batching_dims=lead,
    )
    return gather(
        x,
        expand_axis(order, n - 1),
        numbers,
        (*[1] * (n - 1), x.aval.shape[-1]),
        unique_indices=unique,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


lu_pivots_to_permutation_p = PivotsToPermutation("lu_pivots_to_permutation")
lu_p = LU("lu")


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that results from exchanging rows i and `pivots[i]`, in order.

    Args:
        pivots: int32; leading axes are separate sequences.
        permutation_size: how many rows there are.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2]), 3)
        Array([2, 0, 1], dtype=int32)
    """
    pivots = as_operand("lu_pivots_to_permutation", pivots)
    return bind(lu_pivots_to_permutation_p, (pivots,), {"permutation_size": as_dim(permutation_size)})


def lu(x: ArrayLike) -> list[Array]:
    """The LU factorization with partial pivoting, `x[permutation] = L U`.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128.

    Returns:
        A list: one matrix with L below the diagonal (the diagonal of L is ones) and U above; the
        row with which each row was exchanged; the permutation of the rows.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 2.0]]))[0]
        Array([[2. , 2. ],
               [0.5, 1. ]], dtype=float32)
    """
    return list(bind(lu_p, (as_operand("lu", x),), {}))
