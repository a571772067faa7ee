"""The Cholesky factorization, and linear systems with triangular matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.divisions import entries, undivided
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import add, div, mul
from gradix._ops.basis import add_any, move_axis, to_front
from gradix._ops.complex_parts import conj, conj_p, neg
from gradix._ops.convert import convert_element_type
from gradix._ops.linalg.base import (
    Factorization,
    adjoint,
    check_matrices,
    diagonal_mask,
    each,
    emit_triangle,
    flip,
    info_aval,
    lapack,
    letter,
    nan_unless,
    product,
    routine,
    triangle,
)
from gradix._ops.operands import as_operand, operands, scalar_like
from gradix._ops.select import choose
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack, _blas = lazy_module("scipy.linalg.lapack"), lazy_module("scipy.linalg.blas")


class Cholesky(Factorization):
    """The lower triangular L with `L Lᴴ = x`, from x's lower triangle; NaN unless x is positive."""

    def abstract(self, x):
        check_matrices(self.name, x, square=True)
        return x

    def host(self, x):
        if not x.size:
            return x
        factor = getattr(_lapack, routine(x.dtype, "potrf"))

        def one(a):
            c, info = factor(a, lower=1, clean=1)
            return [c if info == 0 else np.tril(np.full_like(a, np.nan))]

        (out,) = each(one, x.shape[:-2], [(x.shape[-2:], x.dtype)], x)
        return out

    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        factor = bind(self, (x,), {})
        if t is None:
            return factor, None
        # I. Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 8: dL = L Φ(L⁻¹ dA
        # L⁻ᴴ).
        inner = triangular_solve(factor, t, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
        inner = triangle(triangular_solve(factor, inner, left_side=True, lower=True))
        halved = choose(diagonal_mask(inner), inner, mul(inner, scalar_like(inner, 0.5)))
        return factor, product(factor, halved)

    def lower(self, em, out, x):
        if not out.size:
            return x
        lead = out.shape[:-2]
        c, info = lapack(
            em,
            routine(out.dtype, "potrf"),
            [x],
            [out, info_aval(lead)],
            (True, True, False),
            {"uplo": letter("L")},
            aliases={0: 0},
        )
        (whole,) = nan_unless(em, info, [c])
        return emit_triangle(em, whole, lower=True)


class TriangularSolve(Factorization):
    """X with `op(a) X = b`, or `X op(a) = b`, for triangular `a`; linear in `b`."""

    mesh = MeshTraits(linear="last")

    def divide(self, mesh, avals, outs, params):
        a, b = avals
        free = b.ndim - (1 if params["left_side"] else 2)  # each of these columns, or rows, is solved for by itself
        held = entries(b)[free]
        if held is None:
            return super().divide(mesh, avals, outs, params)
        undivided(self.name, a, range(a.ndim), "both axes of the triangular matrix, where columns of b are divided")
        row = undivided(self.name, b, [i for i in (b.ndim - 2, b.ndim - 1) if i != free], "the axis that is solved for")
        return [row]

    def abstract(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if a.dtype != b.dtype:
            raise TypeError(
                "lax.triangular_solve requires arguments to have the same dtypes, got "
                f"{dtypes.dtype_name(a.dtype)}, {dtypes.dtype_name(b.dtype)}. Convert one with .astype."
            )
        if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
            raise ValueError(f"The first input to triangular_solve must be a square matrix. Got shape {a.shape}.")
        check_matrices(self.name, b)
        if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2 if left_side else -1]:
            raise ValueError(
                f"Incompatible shapes for arguments to triangular_solve: {a.shape} and {b.shape}. The "
                "leading axes must agree, and the matrix must fit the "
                f"{'rows' if left_side else 'columns'} of b."
            )
        return make_aval(b.shape, b.dtype, a.weak_type and b.weak_type)

    pool_from = 8 * 8

    def host(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if not b.size:
            return b
        solve = getattr(_blas, routine(b.dtype, "trsm"))
        if conjugate_a and not transpose_a:
            a = a.conj()
        options = {
            "side": int(not left_side),
            "lower": int(lower),
            "diag": int(unit_diagonal),
            "trans_a": 0 if not transpose_a else 2 if conjugate_a else 1,
        }
        (out,) = each(lambda x, y: [solve(1.0, x, y, **options)], b.shape[:-2], [(b.shape[-2:], b.dtype)], a, b)
        return out

    def jvp(self, primals, tangents, **params):
        (a, _), (ta, tb) = primals, tangents
        out = bind(self, primals, params)
        if ta is not None:
            # From op(a) X = b: op(a) dX = db - op(da) X, where da has the triangle of a.
            moved = triangle(ta, params["lower"], -int(params["unit_diagonal"]) * (1 if params["lower"] else -1))
            if params["conjugate_a"]:
                moved = conj(moved)
            moved = flip(moved) if params["transpose_a"] else moved
            change = neg(product(moved, out) if params["left_side"] else product(out, moved))
            tb = change if tb is None else add_any(tb, change)
        return out, None if tb is None else bind(self, (a, tb), params)

    def transpose(self, ct, a, b, *, transpose_a, **params):
        if type(a) is Linear:
            raise self.missing("transpose", "reverse-mode differentiation in the matrix alone", "use jvp")
        return [None, bind(self, (a, ct), {**params, "transpose_a": not transpose_a})]

    def batch(self, size, args, axes, **params):
        (a, b), (a_axis, b_axis) = args, axes
        if a_axis is not None or not b.aval.size:
            return bind(self, (to_front(size, a, a_axis), to_front(size, b, b_axis)), params), 0
        # With one matrix, many right sides are joined beside each other.
        at = b.aval.ndim - (2 if params["left_side"] else 3)
        moved = move_axis(b, b_axis, at)
        shape = moved.aval.shape
        joined = reshape(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
        return reshape(bind(self, (a, joined), params), shape), at

    def lower(self, em, out, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        if not out.size:
            return b
        if conjugate_a and not transpose_a and out.dtype in dtypes.COMPLEX:
            a = conj_p.lower(em, a.aval, a, input_dtype=a.dtype)
        config = {
            "side": letter("L" if left_side else "R"),
            "uplo": letter("L" if lower else "U"),
            "trans_x": letter("N" if not transpose_a else "C" if conjugate_a else "T"),
            "diag": letter("U" if unit_diagonal else "N"),
        }
        (found,) = lapack(em, routine(out.dtype, "trsm"), [a, b], [out], (True, True, True), config, aliases={0: 1})
        return found

    def show(self, params):
        return dict(sorted(params.items()))


cholesky_p = Cholesky("cholesky")
triangular_solve_p = TriangularSolve("triangular_solve")


def as_floats(x):
    """Integers and booleans converted to floats, which have a Hermitian part."""
    return x if x.aval.dtype in dtypes.INEXACT else convert_element_type(x, dtypes.to_inexact_dtype(x.aval.dtype))


def symmetrize(x):
    """The Hermitian part `(x + xᴴ) / 2`."""
    return div(add(x, adjoint(x)), scalar_like(x, 2))


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L Lᴴ = x`, for Hermitian positive definite `x`.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128, or integers to
            be symmetrized.
        symmetrize_input: use `(x + xᴴ) / 2`; otherwise only the lower triangle is read.

    Returns:
        The factors, with zeros above the diagonal; NaN for matrices that are not positive definite.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
        Array([[2., 0.],
               [1., 2.]], dtype=float32)
    """
    x = as_operand("cholesky", x)
    x = as_floats(x) if symmetrize_input else x
    check_matrices("cholesky", x.aval, square=True)
    return bind(cholesky_p, (symmetrize(x) if symmetrize_input else x,), {})


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """X with `op(a) X = b`, or `X op(a) = b` where the matrix stands on the right.

    Args:
        a: triangular matrices, in the last two axes; the other triangle is not read.
        b: right sides, with the leading axes of `a`; one axis less for single vectors.
        left_side: whether `op(a)` stands left of X.
        lower: whether `a` is lower triangular.
        transpose_a: whether `op` transposes.
        conjugate_a: whether `op` conjugates.
        unit_diagonal: take the diagonal as ones, without reading it.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
        >>> lax.linalg.triangular_solve(a, jnp.array([[2.0], [9.0]]), left_side=True, lower=True)
        Array([[1.],
               [2.]], dtype=float32)
    """
    a, b = operands("triangular_solve", a, b)
    params = {
        "left_side": bool(left_side),
        "lower": bool(lower),
        "transpose_a": bool(transpose_a),
        "conjugate_a": bool(conjugate_a) and a.aval.dtype in dtypes.COMPLEX,
        "unit_diagonal": bool(unit_diagonal),
    }
    if b.aval.ndim != a.aval.ndim - 1:
        return bind(triangular_solve_p, (a, b), params)
    shape = b.aval.shape
    column = reshape(b, (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1]))
    return reshape(bind(triangular_solve_p, (a, column), params), shape)
