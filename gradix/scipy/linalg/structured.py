"""Matrices made of a vector: constant along diagonals, companions of polynomials, populations, blocks."""

from __future__ import annotations

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.axes import known_int
from gradix.numpy.promotion import as_operand, broadcast_to, convert, promote_dtypes


def _row(name: str, x, position: int = 0, scalar: bool = True):
    """Vectors in the last axis; a number becomes a vector of one element, or is refused."""
    x = as_operand(name, x, position)
    if x.aval.ndim:
        return x
    if not scalar:
        raise ValueError(
            f"{name}: {'cr'[position] if name == 'hankel' else 'a'} must be at least 1-dimensional, got a "
            "scalar. Write jnp.array([x]) for a vector of one element."
        )
    return lax.reshape(x, (1,))


def _together(name: str, *vectors) -> list:
    """Vectors of one dtype, whose leading axes are broadcast."""
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
    """Row i of the result starts at element `step·i` of `v`, which goes round; `step` is 1 or -1.

    Copies of `v` one after the other are read in rows of one more or one less than its length: no
    gather is needed.
    """
    lead, n = v.aval.shape[:-1], v.aval.shape[-1]
    width = n + step
    if not rows or not columns:
        return lax.full((*lead, rows, columns), 0, v.aval.dtype)
    if rows == 1:
        return v[..., None, :columns]
    copies = -(-rows * width // n)
    flat = lax.reshape(broadcast_to(v[..., None, :], (*lead, copies, n)), (*lead, copies * n))
    return lax.reshape(flat[..., : rows * width], (*lead, rows, width))[..., :columns]


def toeplitz(c, r=None) -> Array:
    """Matrices constant along each diagonal, from their first column and first row.

    Args:
        c: the first column, in the last axis.
        r: the first row, whose first element is not read; `conj(c)` by default. Leading axes
            broadcast.

    Returns:
        Shape (..., len(c), len(r)).

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


def circulant(c) -> Array:
    """Square matrices whose columns are the first one, each moved down by one more place.

    Args:
        c: the first column, in the last axis.

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
    return _toeplitz(
        column, lax.concatenate([column[..., :1], lax.rev(column[..., 1:], (axis,))], axis)
    )


def hankel(c, r=None) -> Array:
    """Matrices constant along each antidiagonal, from their first column and last row.

    Args:
        c: the first column, in the last axis.
        r: the last row, whose first element is not read; zeros by default. Leading axes broadcast.

    Returns:
        Shape (..., len(c), len(r)).

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


def convolution_matrix(a, n, mode: str = "full") -> Array:
    """The matrices that multiply a vector of `n` elements as convolution with `a` does.

    Args:
        a: the vectors to convolve with, in the last axis, of one element at least.
        n: the number of columns.
        mode: "full", "same" or "valid", as for `numpy.convolve`.

    Raises:
        ValueError: `a` is empty, `n` is not positive, or the mode is unknown.

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


def companion(a) -> Array:
    """The companion matrices of polynomials: their eigenvalues are the roots.

    Args:
        a: coefficients from the highest power on, two at least, in the last axis; the first is not
            zero.

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
    if n < 2:
        raise ValueError(
            f"The length of `a` along the last axis must be at least 2; got shape {a.aval.shape}."
        )
    first = -a[..., 1:] / a[..., :1]
    below = broadcast_to(
        jnp.eye(n - 2, n - 1, dtype=first.aval.dtype), (*a.aval.shape[:-1], n - 2, n - 1)
    )
    return lax.concatenate(
        [first[..., None, :], convert(below, first.aval.dtype, first.aval.weak_type)],
        a.aval.ndim - 1,
    )


def fiedler(a) -> Array:
    """The matrices of distances `|aᵢ - aⱼ|`.

    Args:
        a: vectors, in the last axis.

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


def fiedler_companion(a) -> Array:
    """Companion matrices with five diagonals.

    M. Fiedler, "A note on companion matrices" (2003), has the coefficients of odd and even powers
    on two diagonals.

    Args:
        a: coefficients from the highest power on, in the last axis; the first is not zero.

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
    if n < 1:
        return jnp.zeros((*a.aval.shape[:-1], 0, 0), dtypes.to_inexact_dtype(a.aval.dtype))
    scaled = -a[..., 1:] / a[..., :1]
    ends = jnp.zeros((*a.aval.shape[:-1], 2), scaled.aval.dtype).at[..., 1].set(1)
    return jnp.take(jnp.concatenate([ends, scaled], -1), _fiedler_places(n), axis=-1)


def _fiedler_places(n: int) -> np.ndarray:
    """Where each element comes from: 0 is zero, 1 is one, and k + 1 the coefficient k."""
    places = np.zeros((n, n), np.int32)
    places[0, 0] = 2
    # of each pair of rows, the upper has two coefficients
    for k in range(0, n, 2):
        left = max(k - 1, 0)
        places[k, left] = k + 2
        if k + 1 < n:
            places[k, k + 1] = k + 3
            places[k + 1, left] = 1
        if k + 2 < n:
            places[k, k + 2] = 1
    return places


def leslie(f, s) -> Array:
    """Matrices that take a population by age to the next step: births in the first row, survival below the diagonal.

    Args:
        f: how many are born of each age, in the last axis; two ages at least.
        s: which part of each age but the last survives. Leading axes broadcast.

    Raises:
        ValueError: `f` has less than two elements along its last axis, or `s` not one less than
            `f`.

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
        raise ValueError(
            f"The length of f along the last axis must be at least 2; got shape {f.aval.shape}."
        )
    if s.aval.shape[-1] != n - 1:
        raise ValueError(
            "Incorrect lengths for f and s. The length of s along the last axis must be one less than "
            f"the length of f; got f shape {f.aval.shape} and s shape {s.aval.shape}."
        )
    f, s = _together("leslie", f, s)
    below = jnp.where(jnp.eye(n - 1, n, dtype=bool), s[..., :, None], np.zeros((), s.aval.dtype))
    return lax.concatenate([f[..., None, :], below], f.aval.ndim - 1)


def block_diag(*arrs) -> Array:
    """One matrix with the given matrices along its diagonal, and zeros elsewhere.

    Args:
        *arrs: matrices; a vector is a row, and a number a matrix of one element.

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
    xs = [
        lax.reshape(x, (1,) * (2 - x.aval.ndim) + x.aval.shape)
        for x in promote_dtypes("block_diag", *xs)
    ]
    dtype, width, left, bands = xs[0].aval.dtype, sum(x.aval.shape[1] for x in xs), 0, []
    for x in xs:
        right = width - left - x.aval.shape[1]
        bands.append(lax.pad(convert(x, dtype), np.zeros((), dtype), [(0, 0, 0), (left, right, 0)]))
        left += x.aval.shape[1]
    return lax.concatenate(bands, 0)
