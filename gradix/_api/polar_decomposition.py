"""The polar decomposition by dynamically weighted Halley iterations."""

from __future__ import annotations

import math
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gradix._api.control import cond
from gradix._api.loops import while_loop
from gradix._core import dtypes
from gradix._core.dimensions.expression import may_be_empty
from gradix._ops.arithmetic import add, div, max as larger, mul, sub
from gradix._ops.basis import reduce_sum
from gradix._ops.bitwise import bitwise_and, bitwise_not
from gradix._ops.comparison import eq, gt, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim
from gradix._ops.indexing.slicing import slice_in_dim
from gradix._ops.joining import concatenate
from gradix._ops.linalg.base import adjoint, check_matrices, identity, product
from gradix._ops.linalg.qr import qr
from gradix._ops.linalg.triangular import cholesky, symmetrize, triangular_solve
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.reductions import reduce_max
from gradix._ops.select import choose
from gradix._ops.transcendental import sqrt

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array

_STEPS = 10
# With a larger weight c, the equations that the step by Cholesky solves are ill-conditioned.
_QR_WEIGHT = 100.0


def _schedule(eps: float) -> list[tuple[float, ...]]:
    """The weights of each step, and whether it is the last for singular values from `eps` on.

    Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition" (2010), eq. 3.15 to 3.17.
    """
    steps: list[tuple[float, ...]] = []
    low, near = eps, 10 * max(eps, 2.0**-52)
    while abs(1 - low) > near and len(steps) < _STEPS:
        square = low * low
        d = (4 * (1 - square) / (square * square)) ** (1 / 3)
        a = math.sqrt(1 + d) + 0.5 * math.sqrt(8 - 4 * d + 8 * (2 - square) / (square * math.sqrt(1 + d)))
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = min(1.0, low * (a + b * square) / (1 + c * square))
        steps.append((a, b, c, float(abs(1 - low) <= near)))
    return [*steps, (3.0, 1.0, 3.0, 1.0)]  # Halley's own weights, which keep 1


def _by_qr(x, a, b, c):
    """`b/c X + (a − b/c)/√c Q₁ Q₂ᴴ` with `[√c X; I] = [Q₁; Q₂] R`."""
    m, n = x.aval.shape
    root = sqrt(c)
    stacked = concatenate([mul(x, convert_element_type(root, x.aval.dtype)), identity(x, n)], 0)
    q, _ = qr(stacked, full_matrices=False)
    turn = product(slice_in_dim(q, 0, m, axis=0), adjoint(slice_in_dim(q, m, m + n, axis=0)))
    ratio = div(b, c)
    return add(_scaled(x, ratio), _scaled(turn, div(sub(a, ratio), root)))


def _by_cholesky(x, a, b, c):
    """`b/c X + (a − b/c) X (I + c XᴴX)⁻¹`."""
    z = add(identity(x, x.aval.shape[1]), _scaled(product(adjoint(x), x), c))
    factor = cholesky(z)
    half = triangular_solve(factor, x, lower=True, transpose_a=True, conjugate_a=True)
    whole = triangular_solve(factor, half, lower=True)
    ratio = div(b, c)
    return add(_scaled(x, ratio), _scaled(whole, sub(a, ratio)))


def _scaled(x, by):
    return mul(x, convert_element_type(by, x.aval.dtype))


def _norm(x):
    y = abs(x)
    return sqrt(reduce_sum(mul(y, y), (0, 1)))


def _within(x, dynamic_shape):
    """`x` with zeros outside of the first rows and columns, which `dynamic_shape` counts."""
    rows, columns = (as_operand("qdwh", d) for d in dynamic_shape)
    shape, kind = x.aval.shape, np.dtype("int32")
    inside = bitwise_and(
        lt(broadcasted_iota(kind, shape, 0), convert_element_type(rows, kind)),
        lt(broadcasted_iota(kind, shape, 1), convert_element_type(columns, kind)),
    )
    return choose(inside, mul(x, scalar_like(x, 0)), x)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple | None = None,
) -> tuple[Array, ...]:
    """The polar decomposition `x = U H`: U has orthonormal columns, H is positive semidefinite.

    Args:
        x: one matrix of full rank, with at least as many rows as columns; float32, float64,
            complex64 or complex128.
        is_hermitian: accepted for compatibility.
        max_iterations: the number of steps after which to stop; None for as many as needed.
        eps: the precision, and a lower bound of the smallest singular value relative to the
            largest. The steps end when one changes U by less than `(4 eps)^(1/3)`, relative to U.
            None takes the precision of the dtype.
        dynamic_shape: the numbers of rows and columns that count if `x` is padded; they may be
            traced.

    Returns:
        U, H, the number of steps, and whether they converged.

    Raises:
        ValueError: `x` is not one matrix, or has more columns than rows.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> u, h, steps, done = lax.linalg.qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> u.round(4) + 0.0, h.round(4) + 0.0
        (Array([[ 0., -1.],
               [ 1.,  0.]], dtype=float32), Array([[3., 0.],
               [0., 2.]], dtype=float32))
    """
    x = as_operand("qdwh", x)
    if x.aval.ndim != 2:
        raise ValueError(f"qdwh takes one matrix, got shape {x.aval.shape}. Use vmap for stacks of matrices.")
    check_matrices("qdwh", x.aval)
    m, n = x.aval.shape
    if m < n:
        raise ValueError(
            f"The input matrix of shape M x N must have M >= N, got {(m, n)}. Decompose the adjoint: "
            "x.conj().T = U H gives x = H U.conj().T."
        )
    real = dtypes.real_dtype(x.aval.dtype) if x.aval.dtype in dtypes.COMPLEX else x.aval.dtype
    eps = float(np.finfo(real).eps) if eps is None else float(eps)
    limit = _STEPS if max_iterations is None else index(max_iterations)
    if dynamic_shape is not None:
        x = _within(x, dynamic_shape)
    if not n:
        h = product(adjoint(x), x)
        return x, h, as_operand("qdwh", 0), as_operand("qdwh", np.bool_(True))
    is_done = eq(as_operand("qdwh", n), np.int32(0)) if may_be_empty(n) else np.bool_(False)
    u, count, done = _iterate(x, is_done, _schedule(eps), limit, (4 * eps) ** (1 / 3), real)
    return u, symmetrize(product(adjoint(u), x)), count, done


def _iterate(x, is_done, steps, limit, tolerance, real):
    size = abs(x)
    # This is an upper bound of the largest singular value.
    alpha = sqrt(mul(reduce_max(reduce_sum(size, (0,)), (0,)), reduce_max(reduce_sum(size, (1,)), (0,))))
    start = div(x, convert_element_type(larger(alpha, np.array(np.finfo(real).tiny, real)), x.aval.dtype))
    weights = as_operand("qdwh", np.array(steps, real))

    def going(state):
        _, count, done = state
        return bitwise_and(lt(count, limit), bitwise_not(done))

    def step(state):
        u, count, _ = state
        # further steps use the last weights
        row = dynamic_index_in_dim(weights, count, 0, keepdims=False)
        a, b, c, settled = (row[i] for i in range(4))
        new = cond(lt(np.array(_QR_WEIGHT, real), c), _by_qr, _by_cholesky, u, a, b, c)
        still = lt(_norm(sub(new, u)), mul(_norm(new), np.array(tolerance, real)))
        return new, add(count, 1), bitwise_and(still, gt(settled, np.array(0, real)))

    return while_loop(going, step, (start, 0, is_done))
