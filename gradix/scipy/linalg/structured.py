"""Matrices made of vectors: Toeplitz, Hankel, companion, Leslie and block-diagonal matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.dimensions.expression import has_counts, is_count, larger
from gradix._core.operators import Array
from gradix.numpy.axes import known_int
from gradix.numpy.promotion import as_operand, broadcast_to, convert, promote_dtypes

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _row(name: str, x, position: int = 0, scalar: bool = True):
    """The operand as vectors along the last axis; a scalar becomes a vector, if it is allowed."""
    x = as_operand(name, x, position)
    if x.aval.ndim:
        return x
    if not scalar:
        raise ValueError(
            f"{name}: {'cr'[position] if name == 'hankel' else 'a'} must be at least 1-dimensional, got a "
            "scalar. Pass jnp.array([x]) for a vector of one element."
        )
    return lax.reshape(x, (1,))


def _together(name: str, *vectors) -> list:
    """The vectors with a common dtype and broadcast leading axes."""
    vectors = promote_dtypes(name, *vectors)
    try:
        lead = lax.broadcast_shapes(*[v.aval.shape[:-1] for v in vectors])
    except ValueError:
        shapes = " and ".join(str(v.aval.shape) for v in vectors)
        raise ValueError(
            f"Incompatible shapes for broadcasting in {name}: {shapes}. The axes before the last must "
            "agree or have size 1."
        ) from None
    return [broadcast_to(v, (*lead, v.aval.shape[-1])) for v in vectors]


def _sliding(v, rows: int, columns: int, step: int):
    """A matrix whose row i starts at element `step·i` of `v`, which is periodic; `step` is 1 or -1.

    Copies of `v` are concatenated and reshaped to rows of its length plus `step`, so that no gather
    is needed.
    """
    lead, n = v.aval.shape[:-1], v.aval.shape[-1]
    if has_counts((n, rows, columns)):
        place = jnp.remainder(step * jnp.arange(rows)[:, None] + jnp.arange(columns), jnp.maximum(jnp.asarray(n), 1))
        return jnp.take(v, place, axis=-1, mode="clip")
    width = n + step
    if not rows or not columns:
        return lax.full((*lead, rows, columns), 0, v.aval.dtype)
    if rows == 1:
        return v[..., None, :columns]
    copies = -(-rows * width // n)
    flat = lax.reshape(broadcast_to(v[..., None, :], (*lead, copies, n)), (*lead, copies * n))
    return lax.reshape(flat[..., : rows * width], (*lead, rows, width))[..., :columns]


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Toeplitz matrices, which are constant along each diagonal.

    Args:
        c: the first columns, along the last axis.
        r: the first rows, along the last axis, whose first elements are not used; by default
            `conj(c)`. Leading axes are broadcast.

    Returns:
        An array of shape (..., c.shape[-1], r.shape[-1]).

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 8, 9]))
        Array([[1, 8, 9],
               [2, 1, 8],
               [3, 2, 1]], dtype=int32)
    """
    column = _row("toeplitz", c)
    if r is None:
        row = lax.conj(column) if jnp.iscomplexobj(column) else column
    else:
        row = _row("toeplitz", r, 1)
    column, row = _together("toeplitz", column, row)
    return _toeplitz(convert(column, column.aval.dtype), convert(row, row.aval.dtype))


def _toeplitz(column, row):
    rows, columns = column.aval.shape[-1], row.aval.shape[-1]
    around = [column[..., :1], row[..., 1:], lax.rev(column[..., 1:], (column.aval.ndim - 1,))]
    return _sliding(lax.concatenate(around, column.aval.ndim - 1), rows, columns, -1)


def circulant(c: ArrayLike) -> Array:
    """Circulant matrices, in which each column is the previous one shifted down by one, cyclically.

    Args:
        c: the first columns, along the last axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.circulant(jnp.array([1, 2, 3]))
        Array([[1, 3, 2],
               [2, 1, 3],
               [3, 2, 1]], dtype=int32)
    """
    column = _row("circulant", c)
    axis = column.aval.ndim - 1
    return _toeplitz(column, lax.concatenate([column[..., :1], lax.rev(column[..., 1:], (axis,))], axis))


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Hankel matrices, which are constant along each antidiagonal.

    Args:
        c: the first columns, along the last axis.
        r: the last rows, along the last axis, whose first elements are not used; by default zeros.
            Leading axes are broadcast.

    Returns:
        An array of shape (..., c.shape[-1], r.shape[-1]).

    Raises:
        ValueError: `c` or `r` is a scalar, or their leading axes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.hankel(jnp.array([1, 2]), jnp.array([2, 3, 4]))
        Array([[1, 2, 3],
               [2, 3, 4]], dtype=int32)
    """
    column = _row("hankel", c, 0, scalar=False)
    row = lax.full_like(column, 0) if r is None else _row("hankel", r, 1, scalar=False)
    column, row = _together("hankel", column, row)
    both = lax.concatenate([column, row[..., 1:]], column.aval.ndim - 1)
    return _sliding(both, column.aval.shape[-1], row.aval.shape[-1], 1)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrices whose product with a vector of `n` elements is its convolution with `a`.

    Args:
        a: vectors along the last axis, with at least one element.
        n: the number of columns.
        mode: "full", "same" or "valid", as for `numpy.convolve`.

    Returns:
        An array of shape (..., length of the convolution, n).

    Raises:
        ValueError: `a` is a scalar or empty, `n` is not positive, or `mode` has another value.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.convolution_matrix(jnp.array([1, 2]), 3, mode="valid")
        Array([[2, 1, 0],
               [0, 2, 1]], dtype=int32)
    """
    a, n = as_operand("convolution_matrix", a), known_int(n, "n")
    if not a.aval.ndim:
        raise ValueError("convolution_matrix: a must be at least 1-dimensional, got a scalar.")
    m = a.aval.shape[-1]
    if n <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    if not m:
        raise ValueError(f"len(a) must be at least 1; got shape {a.aval.shape}.")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    padding = [(0, 0, 0)] * (a.aval.ndim - 1)
    zero = np.zeros((), a.aval.dtype)
    column = lax.pad(a, zero, [*padding, (0, n - 1, 0)])
    row = lax.pad(a[..., :1], zero, [*padding, (0, n - 1, 0)])
    whole = _toeplitz(column, row)
    kept = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - min(m, n) + 1}[mode]
    start = (m + n - 1 - kept) // 2
    return lax.slice_in_dim(whole, start, start + kept, axis=-2)


def companion(a: ArrayLike) -> Array:
    """The companion matrices of polynomials, whose eigenvalues are the roots.

    Args:
        a: at least two coefficients along the last axis, from the highest power on; the first must
            not be zero.

    Returns:
        An array of shape (..., n - 1, n - 1) for n coefficients.

    Raises:
        ValueError: `a` has less than two elements along its last axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.companion(jnp.array([1.0, -3.0, 2.0]))
        Array([[ 3., -2.],
               [ 1.,  0.]], dtype=float32)
    """
    a = _row("companion", a)
    n = a.aval.shape[-1]
    if not is_count(n) and n < 2:
        raise ValueError(f"The length of `a` along the last axis must be at least 2; got shape {a.aval.shape}.")
    first = -a[..., 1:] / a[..., 0, None]
    shape = larger(n - 2, 0), larger(n - 1, 0)
    below = broadcast_to(jnp.eye(*shape, dtype=first.aval.dtype), (*a.aval.shape[:-1], *shape))
    return lax.concatenate(
        [first[..., None, :], convert(below, first.aval.dtype, first.aval.weak_type)], a.aval.ndim - 1
    )


def fiedler(a: ArrayLike) -> Array:
    """Fiedler matrices, whose elements are the distances `|aᵢ - aⱼ|`.

    Args:
        a: vectors along the last axis.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.fiedler(jnp.array([1, 2, 4]))
        Array([[0, 1, 3],
               [1, 0, 2],
               [3, 2, 0]], dtype=int32)
    """
    a = _row("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Fiedler companion matrices, which have five diagonals and the roots as eigenvalues.

    M. Fiedler, "A note on companion matrices" (2003). The coefficients of odd and even powers are
    on two diagonals.

    Args:
        a: coefficients along the last axis, from the highest power on; the first must not be zero.

    Raises:
        ValueError: there are no coefficients.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.fiedler_companion(jnp.array([1.0, 2.0, 3.0, 4.0]))
        Array([[-2., -3.,  1.],
               [ 1.,  0.,  0.],
               [ 0., -4.,  0.]], dtype=float32)
    """
    a = _row("fiedler_companion", a)
    n = a.aval.shape[-1] - 1
    if n < 0:
        raise ValueError(f"fiedler_companion: a must have coefficients along its last axis, got shape {a.aval.shape}.")
    if n < 1:
        return jnp.zeros((*a.aval.shape[:-1], 0, 0), dtypes.to_inexact_dtype(a.aval.dtype))
    scaled = -a[..., 1:] / a[..., :1]
    ends = jnp.zeros((*a.aval.shape[:-1], 2), scaled.aval.dtype).at[..., 1].set(1)
    return jnp.take(jnp.concatenate([ends, scaled], -1), _fiedler_places(n), axis=-1)


def _fiedler_places(n: int) -> np.ndarray:
    """The source of each element: 0 stands for zero, 1 for one, and k + 1 for coefficient k."""
    places = np.zeros((n, n), np.int32)
    places[0, 0] = 2
    # The upper one of each pair of rows has two coefficients.
    for k in range(0, n, 2):
        left = max(k - 1, 0)
        places[k, left] = k + 2
        if k + 1 < n:
            places[k, k + 1] = k + 3
            places[k + 1, left] = 1
        if k + 2 < n:
            places[k, k + 2] = 1
    return places


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices, whose product with a population by age is the population after a step.

    Args:
        f: the births of each age along the last axis, for at least two ages.
        s: the fraction of each age except the last that survives, along the last axis. Leading axes
            are broadcast.

    Returns:
        An array of shape (..., n, n) for n ages, with `f` in the first row and `s` below the
        diagonal.

    Raises:
        ValueError: `f` has less than two elements along its last axis, or `s` does not have one
            element less.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.leslie(jnp.array([0.1, 2.0, 1.0]), jnp.array([0.2, 0.8]))
        Array([[0.1, 2. , 1. ],
               [0.2, 0. , 0. ],
               [0. , 0.8, 0. ]], dtype=float32)
    """
    f, s = _row("leslie", f), _row("leslie", s, 1)
    n = f.aval.shape[-1]
    if n < 2:
        raise ValueError(f"The length of f along the last axis must be at least 2; got shape {f.aval.shape}.")
    if s.aval.shape[-1] != n - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less than "
            f"the length of f; got f shape {f.aval.shape} and s shape {s.aval.shape}."
        )
    f, s = _together("leslie", f, s)
    below = jnp.where(jnp.eye(n - 1, n, dtype=bool), s[..., :, None], np.zeros((), s.aval.dtype))
    return lax.concatenate([f[..., None, :], below], f.aval.ndim - 1)


def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with the given matrices along its diagonal, and zeros elsewhere.

    Args:
        *arrs: matrices; a vector is taken as a row, and a number as a matrix of one element.

    Raises:
        ValueError: an array has more than two axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import linalg
        >>> linalg.block_diag(jnp.array([[1, 2]]), 3)
        Array([[1, 2, 0],
               [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        return jnp.zeros((1, 0))
    xs = [as_operand("block_diag", x, i) for i, x in enumerate(arrs)]
    for i, x in enumerate(xs):
        if x.aval.ndim > 2:
            raise ValueError(
                "Arguments to block_diag must have at most 2 dimensions, got shape "
                f"{x.aval.shape} at argument {i}. Use vmap for stacks of matrices."
            )
    xs = [lax.reshape(x, (1,) * (2 - x.aval.ndim) + x.aval.shape) for x in promote_dtypes("block_diag", *xs)]
    dtype, width, left, bands = xs[0].aval.dtype, sum(x.aval.shape[1] for x in xs), 0, []
    for x in xs:
        right = width - left - x.aval.shape[1]
        bands.append(lax.pad(convert(x, dtype), np.zeros((), dtype), [(0, 0, 0), (left, right, 0)]))
        left += x.aval.shape[1]
    return lax.concatenate(bands, 0)
