"""Rank-1 updates of Cholesky factors, and products of a matrix with its transpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, mul
from gradix._ops.basis import add_any
from gradix._ops.linalg.base import (
    Factorization,
    along_columns,
    along_rows,
    check_matrices,
    diagonal_mask,
    emit_triangle,
    flip,
    product,
    triangle,
)
from gradix._ops.linalg.triangular import triangular_solve
from gradix._ops.operands import operands, scalar_like
from gradix._ops.select import choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _check_reals(name: str, *xs) -> None:
    if len({x.dtype for x in xs}) > 1:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{', '.join(dtypes.dtype_name(x.dtype) for x in xs)}. Convert one with .astype."
        )
    if xs[0].dtype not in dtypes.FLOAT:
        raise TypeError(
            f"{name} does not accept dtype {dtypes.dtype_name(xs[0].dtype)} at position 0. Accepted dtypes "
            "are floating; convert the operands with .astype('float32') first."
        )


class CholeskyUpdate(Factorization):
    """The upper triangular R' with `R'ᵀ R' = Rᵀ R + w wᵀ`, by one plane rotation for each row."""

    def abstract(self, r, w):
        _check_reals(self.name, r, w)
        check_matrices(self.name, r)
        if r.shape[-1] != r.shape[-2] or w.shape != r.shape[:-1]:
            raise ValueError(
                "Rank-1 update to Cholesky decomposition takes a square matrix and a vector of the same "
                f"size as input. Got shapes {r.shape} and {w.shape} instead."
            )
        return make_aval(r.shape, r.dtype, r.weak_type and w.weak_type)

    def host(self, r, w):
        r, w = np.triu(r), w.copy()
        for k in range(r.shape[-1]):
            # [c s; -s c] turns (r_kk, w_k) to (length, 0).
            length = np.hypot(r[..., k, k], w[..., k])
            still = length == 0
            c = np.where(still, 1, r[..., k, k] / length)[..., None]
            s = np.where(still, 0, w[..., k] / length)[..., None]
            r[..., k, :], w = c * r[..., k, :] + s * w, c * w - s * r[..., k, :]
        return np.triu(r)

    def jvp(self, primals, tangents):
        (r, w), (tr, tw) = primals, tangents
        out = bind(self, primals, {})
        if not r.aval.size:
            return out, None
        change = None
        if tr is not None:
            change = product(flip(triangle(tr, False)), triangle(r, False))
        if tw is not None:
            shape = r.aval.shape
            outer = mul(along_columns(tw, shape), along_rows(w, shape))
            change = outer if change is None else add_any(change, outer)
        # I. Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 8, for R' = Lᵀ and
        # dA = change + changeᵀ.
        symmetric = add_any(change, flip(change))
        inner = triangular_solve(out, symmetric, left_side=False, lower=False)
        inner = triangle(triangular_solve(out, inner, left_side=True, lower=False, transpose_a=True), False)
        return out, product(choose(diagonal_mask(inner), inner, mul(inner, scalar_like(inner, 0.5))), out)

    def lower(self, em, out, r, w):
        n = out.shape[-1]
        if not out.size:
            return r
        index, one = make_aval((), np.dtype("int32")), make_aval((*out.shape[:-2], 1), out.dtype)
        row, zero = (make_aval((*out.shape[:-2], 1, n), out.dtype), em.constant(0, make_aval((), np.dtype("int32"))))
        lead = [zero] * (out.ndim - 2)

        def part(aval, x, *at):
            return em.dynamic_slice(x, [*lead, *at], aval.shape, aval)

        def step(k, r, w):
            line = em.reshape(part(row, r, k, zero), w.shape)
            corner, first = part(one, line, k), part(one, w, k)
            length = _emit_hypot(em, one, corner, first)
            still = em.compare(length, em.constant(0, one), "EQ")
            c = em.select(still, em.constant(1, one), em.op("divide", one, corner, length))
            s = em.select(still, em.constant(0, one), em.op("divide", one, first, length))
            c, s = em.spread(c, w.shape), em.spread(s, w.shape)
            turned = em.op("add", w.aval, em.op("multiply", w.aval, c, line), em.op("multiply", w.aval, s, w))
            rest = em.op("subtract", w.aval, em.op("multiply", w.aval, c, w), em.op("multiply", w.aval, s, line))
            r = em.op("dynamic_update_slice", out, r, em.reshape(turned, row.shape), *lead, k, zero)
            return [em.op("add", index, k, em.constant(1, index)), r, rest]

        last = em.constant(n, index)
        _, r, _ = em.while_loop(
            [zero, emit_triangle(em, r, lower=False), w], lambda k, r, w: [em.compare(k, last, "LT")], step
        )
        return emit_triangle(em, r, lower=False)


def _emit_hypot(em, aval, x, y):
    """√(x² + y²) without overflow."""
    x, y = em.op("abs", aval, x), em.op("abs", aval, y)
    large, small = em.op("maximum", aval, x, y), em.op("minimum", aval, x, y)
    ratio = em.op("divide", aval, small, large)
    long = em.op("sqrt", aval, em.op("add", aval, em.constant(1, aval), em.op("multiply", aval, ratio, ratio)))
    return em.select(em.compare(large, em.constant(0, aval), "EQ"), large, em.op("multiply", aval, large, long))


class SymmetricProduct(Primitive):
    """`alpha a aᵀ + beta c`."""

    def abstract(self, a, c, *, alpha, beta):
        _check_reals(self.name, a, c)
        if a.ndim < 2:
            raise TypeError(f"Input 0 to symmetric_product must have rank at least 2, but got shape={a.shape}.")
        if a.ndim != c.ndim:
            raise TypeError(
                "All inputs to symmetric_product must have the same number of batch dimensions, but got "
                f"shapes {a.shape} and {c.shape}."
            )
        if c.shape != (*a.shape[:-1], a.shape[-2]):
            raise ValueError(
                "symmetric_product expects rectangular matrices of shape (..., m, n) and square matrices "
                f"of shape (..., m, m). Got shapes {a.shape} and {c.shape}."
            )
        return make_aval(c.shape, c.dtype, a.weak_type and c.weak_type)

    def expand(self, a, c, *, alpha, beta):
        return add(mul(product(a, flip(a)), scalar_like(a, alpha)), mul(c, scalar_like(c, beta)))

    def jvp(self, primals, tangents, *, alpha, beta):
        (a, _), (ta, tc) = primals, tangents
        t = None if tc is None else mul(tc, scalar_like(tc, beta))
        if ta is not None:
            half = mul(product(ta, flip(a)), scalar_like(ta, alpha))
            both = add_any(half, flip(half))
            t = both if t is None else add_any(t, both)
        return bind(self, primals, {"alpha": alpha, "beta": beta}), t

    batch = Factorization.batch

    def show(self, params):
        return dict(sorted(params.items()))


cholesky_update_p = CholeskyUpdate("cholesky_update")
symmetric_product_p = SymmetricProduct("symmetric_product")


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The Cholesky factor of `Rᵀ R + w wᵀ`, in O(n²) operations.

    Args:
        r_matrix: upper triangular matrices R, in the last two axes; what stands below the diagonal
            is not read.
        w_vector: vectors w.

    Returns:
        Upper triangular matrices R' with `R'ᵀ R' = Rᵀ R + w wᵀ`; their diagonals are not negative.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.cholesky_update(jnp.array([[3.0, 0.0], [0.0, 2.0]]), jnp.array([4.0, 0.0]))
        Array([[5., 0.],
               [0., 2.]], dtype=float32)
    """
    return bind(cholesky_update_p, operands("cholesky_update", r_matrix, w_vector), {})


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """`alpha a aᵀ + beta c`, for symmetric `c`.

    Args:
        a_matrix: matrices of shape (..., m, n), of a floating dtype.
        c_matrix: matrices of shape (..., m, m), of the same dtype.
        alpha: a number.
        beta: a number.
        symmetrize_output: put the transpose of the lower triangle into the upper one.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)))
        Array([[1., 2.],
               [2., 4.]], dtype=float32)
    """
    a, c = operands("symmetric_product", a_matrix, c_matrix)
    out = bind(symmetric_product_p, (a, c), {"alpha": float(alpha), "beta": float(beta)})
    return add(flip(triangle(out, True, -1)), triangle(out)) if symmetrize_output else out
