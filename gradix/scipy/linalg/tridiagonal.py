"""Eigenvalues of symmetric tridiagonal matrices, by bisection."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import as_operand

_FLOATS = (np.dtype("float32"), np.dtype("float64"), np.dtype("complex64"), np.dtype("complex128"))


def eigh_tridiagonal(
    d,
    e,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key=None,
) -> Any:
    """Ascending eigenvalues, and eigenvectors in columns, of a Hermitian tridiagonal matrix.

    The eigenvalues are found by bisection with Sturm sequences (W. Barth, R. Martin, J. Wilkinson,
    "Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of bisection",
    1967), the vectors from the whole matrix.

    Args:
        d: the diagonal, of 32 or 64 bits; of complex numbers the real part.
        e: the diagonal above, one element less, of the same dtype; below stands its conjugate.
        eigvals_only: give eigenvalues alone.
        select: "a" for all, "i" for those numbered from `select_range[0]` to `select_range[1]`,
            both included.
        select_range: the numbers, from zero on.
        tol: how exact the eigenvalues must be; as exact as the dtype allows by default.
        key: has no effect: nothing here is drawn at random.

    Raises:
        NotImplementedError: `select="v"`, since the count of results would depend on values.
        TypeError: the dtypes differ, or have no 32 or 64 bits.
        ValueError: the shapes do not fit, an unknown `select`, or a range that is not within the
            matrix.

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
            "eigh_tridiagonal needs a diagonal of shape (n,) and one above of shape (n - 1,), got "
            f"{d.aval.shape} and {e.aval.shape}. Use vmap for several matrices."
        )


def _range(select: str, select_range, n: int) -> tuple[int, int]:
    if select not in ("a", "i", "v"):
        raise ValueError(f"select must have a value in {{'a', 'i', 'v'}}, got {select!r}.")
    if select == "v":
        raise NotImplementedError(
            "eigh_tridiagonal(..., select='v') is not implemented: how many eigenvalues lie "
            "between two values is not known while compiling. Take all, and mask those outside."
        )
    if select == "a":
        return 0, n
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = int(select_range[0]), int(select_range[1])
    if not 0 <= first <= last < n:
        raise ValueError(
            f"select_range must lie within 0 and {n - 1} for a matrix of {n} rows, got {select_range}."
        )
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
    # The least that a pivot counts as, so that no quotient overflows.
    least = jnp.maximum(tiny, jnp.max(squares, initial=0) * tiny)
    goal = jnp.maximum(
        jnp.asarray(0.0 if tol is None else tol, d.aval.dtype), 2 * eps * span + tiny
    )
    rows = d, jnp.pad(squares, (1, 0))

    def step(_, ends):
        left, right = ends
        middle = left + (right - left) / 2
        above = _count_below(rows, middle, least) > wanted
        return jnp.where(above, left, middle), jnp.where(above, middle, right)

    turns = jnp.ceil(jnp.log2(jnp.maximum((high - low) / goal, 1))).astype(np.int32)
    left, right = lax.fori_loop(
        np.int32(0), turns, step, tuple(jnp.full(wanted.shape, x) for x in (low, high))
    )
    out = left + (right - left) / 2
    return jnp.where(jnp.isfinite(high - low), jnp.where(span == 0, 0, out), np.nan)


def _count_below(rows, x, least):
    """How many eigenvalues are less than each of `x`: the negative pivots of `T - x`."""

    def row(state, di_and_square):
        pivot, count = state
        di, square = di_and_square
        pivot = di - square / pivot - x
        pivot = jnp.where(abs(pivot) < least, -least, pivot)
        return (pivot, count + (pivot < 0)), None

    return lax.scan(row, (jnp.ones_like(x), jnp.zeros(x.aval.shape, np.int32)), rows)[0][1]


@_values.defjvp
def _values_jvp(start, stop, tol, primals, tangents):
    """`dλ = vᴴ dT v`, for the eigenvector v."""
    (d, e), (dd, de) = primals, tangents
    out = _values(d, e, start, stop, tol)
    _, v = jnp.linalg.eigh(_whole(d, e), symmetrize_input=False)
    v = v[:, start:stop]
    moved = jnp.sum(dd[:, None] * jnp.real(v * jnp.conj(v)), axis=0)
    beside = jnp.conj(v[:-1]) * v[1:]
    cross = jnp.real(jnp.sum(2 * de[:, None] * beside, axis=0))
    return out, moved + cross
