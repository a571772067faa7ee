"""Eigenvalues of symmetric tridiagonal matrices, by bisection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_FLOATS = (np.dtype("float32"), np.dtype("float64"), np.dtype("complex64"), np.dtype("complex128"))


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: None = None,
) -> Any:
    """The eigenvalues of a Hermitian tridiagonal matrix in increasing order, and its eigenvectors.

    The eigenvalues are found by bisection with Sturm sequences (W. Barth, R. Martin, J. Wilkinson,
    "Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of bisection",
    1967), and the eigenvectors by `eigh` of the whole matrix.

    Args:
        d: the diagonal, of shape (n,), of which the real part is used; float32, float64, complex64
            or complex128.
        e: the diagonal above, of shape (n - 1,) and the same dtype. The diagonal below is its
            conjugate.
        eigvals_only: whether to give the eigenvalues only.
        select: "a" for all eigenvalues, or "i" for those numbered in `select_range`.
        select_range: the first and the last number of "i", counted from 0.
        tol: the absolute tolerance of the eigenvalues; by default as small as the dtype allows.
        key: has no effect, because nothing is drawn at random.

    Returns:
        Eigenvalues of shape (k,), and eigenvectors of shape (n, k); or eigenvalues only.

    Raises:
        NotImplementedError: `select` is "v", for which the number of results depends on values.
        TypeError: the dtypes differ or are others, or the shapes do not fit.
        ValueError: `select` has another value, or `select_range` is not within the matrix.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True).round(5)
        Array([1., 3.], dtype=float32)
    """
    d, e = as_operand("eigh_tridiagonal", d), as_operand("eigh_tridiagonal", e, 1)
    _check(d, e)
    n = d.aval.shape[0]
    start, stop = _range(select, select_range, n)
    if not n:
        return d if eigvals_only else (d, jnp.zeros((0, 0), e.aval.dtype))
    if d.aval.dtype in COMPLEX:
        d = lax.real(d)
    if eigvals_only:
        return _values(d, e, start, stop, tol)
    _, vectors = jnp.linalg.eigh(_whole(d, e), symmetrize_input=False)
    return _values(d, e, start, stop, tol), vectors[:, start:stop]


def _check(d, e) -> None:
    if d.aval.dtype != e.aval.dtype:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{dtypes.dtype_name(d.aval.dtype)} and {dtypes.dtype_name(e.aval.dtype)}. Convert one with "
            ".astype(...)."
        )
    if d.aval.dtype not in _FLOATS:
        raise TypeError(
            "Only float32, float64, complex64 and complex128 are supported by eigh_tridiagonal, got "
            f"{dtypes.dtype_name(d.aval.dtype)}. Convert both with .astype('float32')."
        )
    if d.aval.ndim != 1 or e.aval.ndim != 1 or e.aval.shape[0] != max(d.aval.shape[0] - 1, 0):
        raise TypeError(
            "eigh_tridiagonal: d must be of shape (n,) and e of shape (n - 1,), got "
            f"{d.aval.shape} and {e.aval.shape}. Use vmap for several matrices."
        )


def _range(select: str, select_range, n: int) -> tuple[int, int]:
    if select not in ("a", "i", "v"):
        raise ValueError(f"select must have a value in {{'a', 'i', 'v'}}, got {select!r}.")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal(..., select='v') is not implemented, because the number of eigenvalues "
            "between two values is not known when a program is compiled. Take all, and mask the others."
        )
    if select == "a":
        return 0, n
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified. Pass (first, last).")
    first, last = int(select_range[0]), int(select_range[1])
    if not 0 <= first <= last < n:
        raise ValueError(f"select_range must be within 0 and {n - 1} for a matrix of {n} rows, got {select_range}.")
    return first, last + 1


def _whole(d, e):
    return (
        (jnp.diag(d.astype(e.aval.dtype)) + jnp.diag(e, 1) + jnp.diag(jnp.conj(e), -1))
        if e.aval.size
        else (d.astype(e.aval.dtype)[:, None])
    )


@partial(custom_jvp, nondiff_argnums=(2, 3, 4))
def _values(d, e, start, stop, tol):
    squares = lax.real(e * lax.conj(e)) if e.aval.dtype in COMPLEX else e * e
    size = jnp.sqrt(squares)
    radius = jnp.pad(size, (1, 0)) + jnp.pad(size, (0, 1))
    low, high = jnp.min(d - radius), jnp.max(d + radius)  # Gershgorin's circles
    info = np.finfo(d.aval.dtype)
    eps, tiny = float(info.eps), float(info.tiny)
    span = jnp.maximum(abs(low), abs(high))
    low, high = low - span * eps - tiny, high + span * eps + tiny
    wanted = np.arange(start, stop, dtype=np.int32)
    # Pivots of smaller absolute value are replaced by this one, so that quotients do not overflow.
    least = jnp.maximum(tiny, jnp.max(squares, initial=0) * tiny)
    goal = jnp.maximum(jnp.asarray(0.0 if tol is None else tol, d.aval.dtype), 2 * eps * span + tiny)
    rows = d, jnp.pad(squares, (1, 0))

    def step(_, ends):
        left, right = ends
        middle = left + (right - left) / 2
        above = _count_below(rows, middle, least) > wanted
        return jnp.where(above, left, middle), jnp.where(above, middle, right)

    turns = jnp.ceil(jnp.log2(jnp.maximum((high - low) / goal, 1))).astype(np.int32)
    left, right = lax.fori_loop(np.int32(0), turns, step, tuple(jnp.full(wanted.shape, x) for x in (low, high)))
    out = left + (right - left) / 2
    return jnp.where(jnp.isfinite(high - low), jnp.where(span == 0, 0, out), np.nan)


def _count_below(rows, x, least):
    """The number of eigenvalues below each of `x`: as many as `T - x` has negative pivots."""

    def row(state, di_and_square):
        pivot, count = state
        di, square = di_and_square
        pivot = di - square / pivot - x
        pivot = jnp.where(abs(pivot) < least, -least, pivot)
        return (pivot, count + (pivot < 0).astype(count.aval.dtype)), None

    return lax.scan(row, (jnp.ones_like(x), jnp.zeros(x.aval.shape, np.int32)), rows)[0][1]


@_values.defjvp
def _values_jvp(start, stop, tol, primals, tangents):
    """`dλ = vᴴ dT v`, where v is the eigenvector."""
    (d, e), (dd, de) = primals, tangents
    out = _values(d, e, start, stop, tol)
    _, v = jnp.linalg.eigh(_whole(d, e), symmetrize_input=False)
    v = v[:, start:stop]
    moved = jnp.sum(dd[:, None] * jnp.real(v * jnp.conj(v)), axis=0)
    beside = jnp.conj(v[:-1]) * v[1:]
    cross = jnp.real(jnp.sum(2 * de[:, None] * beside, axis=0))
    return out, moved + cross
