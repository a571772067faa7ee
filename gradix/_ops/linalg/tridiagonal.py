"""Reduction of Hermitian matrices to tridiagonal ones, and linear systems with these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import larger
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits
from gradix._core.trace import bind
from gradix._ops.arithmetic import mul, sub
from gradix._ops.basis import move_axis, to_front
from gradix._ops.complex_parts import neg
from gradix._ops.indexing.slicing import pad, slice_in_dim
from gradix._ops.linalg.base import (
    Factorization,
    along_columns,
    check_matrices,
    each,
    info_aval,
    lapack,
    letter,
    nan_unless,
    real_of,
    routine,
)
from gradix._ops.operands import as_operand, operands, scalar_like
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


class Tridiagonal(Factorization):
    """The reduction of a Hermitian matrix to a tridiagonal one, by reflections.

    The results are the matrix with the reflections, the diagonals, and the factors of the
    reflections.
    """

    multiple_results = True

    def abstract(self, x, *, lower):
        *lead, n, _ = check_matrices(self.name, x, square=True)
        real, beside = real_of(x.dtype), (*lead, larger(n - 1, 0))
        return [
            x,
            make_aval((*lead, n), real, x.weak_type),
            make_aval(beside, real, x.weak_type),
            make_aval(beside, x.dtype, x.weak_type),
        ]

    def host(self, x, *, lower):
        *lead, n = x.shape[:-1]
        real, beside = real_of(x.dtype), (max(n - 1, 0),)
        outs = [((n, n), x.dtype), ((n,), real), (beside, real), (beside, x.dtype)]
        if not x.size:
            return [np.zeros((*lead, *s), d) for s, d in outs]
        factor = getattr(_lapack, routine(x.dtype, "sytrd", "hetrd"))

        def one(a):
            *parts, info = factor(a, lower=int(lower))
            return parts if info == 0 else [np.nan] * 4

        return each(one, tuple(lead), outs, x)

    def lower(self, em, outs, x, *, lower):
        if not x.aval.size:
            return [em.constant(0, o) for o in outs]
        *parts, info = lapack(
            em,
            routine(x.dtype, "sytrd", "hetrd"),
            [x],
            [*outs, info_aval(x.shape[:-2])],
            (True, True, False, False, False, False),
            {"uplo": letter("L" if lower else "U")},
            aliases={0: 0},
        )
        return nan_unless(em, info, parts)


class TridiagonalSolve(Factorization):
    """X with `T X = b`, for T of three diagonals; linear in `b`. NaN where T is singular."""

    mesh = MeshTraits(linear="last")

    def abstract(self, dl, d, du, b):
        kinds = [dl.dtype, d.dtype, du.dtype, b.dtype]
        if len(set(kinds)) > 1:
            raise TypeError(
                "lax.tridiagonal_solve requires arguments to have the same dtypes, got "
                f"{', '.join(map(dtypes.dtype_name, kinds))}. Convert them with .astype."
            )
        if not dl.shape == d.shape == du.shape:
            raise TypeError(
                "tridiagonal_solve requires that all diagonal arguments have the same shape, got "
                f"{dl.shape}, {d.shape} and {du.shape}: dl starts and du ends with an element that is not "
                "read."
            )
        check_matrices("tridiagonal_solve", b)
        if b.ndim != d.ndim + 1 or b.shape[:-1] != d.shape:
            raise TypeError(
                "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal the dimensions "
                f"of the diagonal arguments, got shapes {b.shape} and {d.shape}. b[..., None] makes a "
                "column."
            )
        return make_aval(b.shape, b.dtype, all(x.weak_type for x in (dl, d, du, b)))

    def host(self, dl, d, du, b):
        if not b.size:
            return b
        solve = getattr(_lapack, routine(b.dtype, "gtsv"))

        def one(below, diagonal, above, right):
            if len(diagonal) == 1:
                return [right / diagonal if diagonal[0] else np.nan]
            *_, x, info = solve(below[1:], diagonal, above[:-1], right)
            return [x if info == 0 else np.nan]

        (out,) = each(one, b.shape[:-2], [(b.shape[-2:], b.dtype)], dl, d, du, b)
        return out

    def jvp(self, primals, tangents):
        dl, d, du, b = primals
        *moved, tb = tangents
        x = bind(self, primals, {})
        # From T X = b: T dX = db - dT X.
        for t, neighbour in zip(moved, (_before(x), x, _after(x))):
            if t is not None:
                change = mul(along_columns(t, x.aval.shape), neighbour)
                tb = neg(change) if tb is None else sub(tb, change)
        return x, None if tb is None else bind(self, (dl, d, du, tb), {})

    def transpose(self, ct, dl, d, du, b):
        if type(dl) is Linear or type(d) is Linear or type(du) is Linear:
            raise self.missing("transpose", "reverse-mode differentiation in the matrix alone", "use jvp")
        return [None, None, None, bind(self, (_before(du, 0), d, _after(dl, 0), ct), {})]

    def batch(self, size, args, axes):
        *matrix, b = args
        if any(a is not None for a in axes[:3]) or not b.aval.size:
            return bind(self, [to_front(size, x, a) for x, a in zip(args, axes)], {}), 0
        # With one matrix, many right sides are joined beside each other.
        at = b.aval.ndim - 2
        moved = move_axis(b, axes[3], at)
        shape = moved.aval.shape
        joined = reshape(moved, (*shape[:at], shape[at] * shape[at + 1]))
        return reshape(bind(self, (*matrix, joined), {}), shape), at

    def lower(self, em, out, dl, d, du, b):
        if not out.size:
            return b
        results = [dl.aval, d.aval, du.aval, out, info_aval(out.shape[:-2])]
        columns = (False, False, False, True, False, False, False, True, False)
        *_, x, info = lapack(
            em, routine(out.dtype, "gtsv"), [dl, d, du, b], results, columns, None, aliases={i: i for i in range(4)}
        )
        return nan_unless(em, info, [x])[0]


class PerturbedTridiagonalSolve(TridiagonalSolve):
    """The solve with tiny pivots made larger: singular systems get large finite solutions."""

    host = None  # type: ignore[assignment]

    def lower(self, em, out, dl, d, du, b):
        if not out.size:
            return b
        layouts = [[*range(v.aval.ndim - 1, -1, -1)] for v in (dl, d, du)]
        matrix = [out.ndim - 2, out.ndim - 1, *range(out.ndim - 3, -1, -1)]
        (x,) = em.custom_call(
            "tridiagonal_solve_perturbed_ffi",
            [out],
            dl,
            d,
            du,
            b,
            backend_config={},
            operand_layouts=[*layouts, matrix],
            batch=out.ndim - 2,
            result_layouts=[matrix],
        )
        return x


def _before(x, at: int = -2):
    """`x` shifted by one place along the axis `at`, with zero at the start."""
    return _moved(x, 1, at)


def _after(x, at: int = -2):
    return _moved(x, -1, at)


def _moved(x, by: int, at: int):
    axis = x.aval.ndim - (2 if at == -2 else 1)
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (max(by, 0), max(-by, 0), 0)
    n = x.aval.shape[axis]
    return slice_in_dim(pad(x, scalar_like(x, 0), config), max(-by, 0), n + max(-by, 0), axis=axis)


tridiagonal_p = Tridiagonal("tridiagonal")
tridiagonal_solve_p = TridiagonalSolve("tridiagonal_solve")
perturbed_tridiagonal_solve_p = PerturbedTridiagonalSolve("tridiagonal_solve_perturbed")


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Hermitian matrices reduced to real tridiagonal ones by Householder reflections, `a = Q T Qᴴ`.

    Args:
        a: matrices, in the last two axes; float32, float64, complex64 or complex128.
        lower: which triangle is read; the reflections are kept there.

    Returns:
        A list: matrices with the diagonals of T and, beyond them, the vectors of the reflections;
            the diagonal of T;
        the diagonal beside it; the factors of the reflections.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.tridiagonal(jnp.array([[1.0, 2.0], [2.0, 3.0]]))[1]
        Array([1., 3.], dtype=float32)
    """
    return bind(tridiagonal_p, (as_operand("tridiagonal", a),), {"lower": bool(lower)})


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """X with `T X = b`, for tridiagonal T.

    Args:
        dl: the elements `T[i, i-1]`, the first of which is not read; leading axes are separate
            systems.
        d: the elements `T[i, i]`.
        du: the elements `T[i, i+1]`, the last of which is not read.
        b: right sides, in the columns of matrices.
        perturb_singular: make tiny pivots larger, so that singular systems give large instead of
            NaN solutions, as inverse iteration for eigenvectors wants them.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> one = jnp.ones(3)
        >>> lax.linalg.tridiagonal_solve(one, 4 * one, one, jnp.array([[6.0], [12.0], [14.0]]))
        Array([[1.],
               [2.],
               [3.]], dtype=float32)
    """
    solve = perturbed_tridiagonal_solve_p if perturb_singular else tridiagonal_solve_p
    return bind(solve, operands("tridiagonal_solve", dl, d, du, b), {})
