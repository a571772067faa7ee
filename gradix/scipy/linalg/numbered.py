"""Matrices given by their size: Hilbert, Pascal, Hadamard, Helmert and Fourier matrices."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._core import dtypes
from gradix._core.dimensions.expression import is_symbolic_dim, larger
from gradix._core.dtypes import COMPLEX
from gradix._core.operators import Array
from gradix.numpy.axes import known_int
from gradix.numpy.promotion import convert

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike

_INT32 = np.dtype("int32")


def _float() -> np.dtype:
    return dtypes.python_scalar_dtype(float)


def _places(n: int):
    """The row number and the column number of each element of a square matrix."""
    return lax.broadcasted_iota(_INT32, (n, n), 0), lax.broadcasted_iota(_INT32, (n, n), 1)


def _rounded(values, dtype):
    """Values computed on the host as an array; those beyond the range of the dtype are infinite."""
    with np.errstate(over="ignore"):
        return jnp.asarray(np.asarray(values, np.float64).astype(dtype))


def hilbert(n: int) -> Array:
    """The Hilbert matrix `1 / (i + j + 1)` of shape (n, n), where i and j count from 0.

    Args:
        n: the size.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.hilbert(2)
        Array([[1.        , 0.5       ],
               [0.5       , 0.33333334]], dtype=float32)
    """
    i, j = _places(known_int(n, "n"))
    return lax.reciprocal(convert(i + j + 1, _float()))


def invhilbert(n: int) -> Array:
    """The inverse of the Hilbert matrix, of shape (n, n), whose integer elements are rounded once.

    M.-D. Choi, "Tricks or treats with the Hilbert matrix" (1983):
    `(-1)ⁱ⁺ʲ (i + j + 1) C(n + i, n - j - 1) C(n + j, n - i - 1) C(i + j, i)²`.

    Args:
        n: the size.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.invhilbert(2)
        Array([[ 4., -6.],
               [-6., 12.]], dtype=float32)
    """
    n = known_int(n, "n")
    values = [[_inverse_of_hilbert(n, i, j) for j in range(n)] for i in range(n)]
    return _rounded(np.array(values).reshape(n, n), _float())


def _inverse_of_hilbert(n: int, i: int, j: int) -> float:
    value = (i + j + 1) * comb(n + i, n - j - 1) * comb(n + j, n - i - 1) * comb(i + j, i) ** 2
    return _as_float(-value if (i + j) % 2 else value)


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


_KINDS = ("symmetric", "lower", "upper")


def _kind(kind) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"Expected kind to be one of: {list(_KINDS)}; got {kind}.")
    return kind


def _lower_pascal(n: int) -> np.ndarray:
    """The binomial coefficients `C(i, j)` as floats, each row computed from the previous one."""
    out = np.zeros((n, n))
    for i in range(n):
        out[i, 0] = 1
        out[i, 1 : i + 1] = out[i - 1, 1 : i + 1] + out[i - 1, :i]
    return out


def _open_pascal(n, kind: str) -> Array:
    """Pascal's matrix of a symbolic size, computed row by row."""
    dtype = _float()
    if kind == "symmetric":
        row, following = jnp.ones(n, dtype), jnp.cumsum
    else:
        row = convert(lax.iota(_INT32, n) == 0, dtype)
        following = lambda row: row + jnp.roll(row, 1) * (lax.iota(_INT32, n) > 0)
    rows = lax.scan(lambda row, _: (following(row), row), row, None, length=n)[1]
    return rows.T if kind == "upper" else rows


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix of shape (n, n).

    Args:
        n: the size.
        kind: "symmetric", the default, for `C(i + j, i)`; "lower" for `C(i, j)`; "upper" for its
            transpose.

    Raises:
        ValueError: `kind` has another value.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.pascal(3)
        Array([[1., 1., 1.],
               [1., 2., 3.],
               [1., 3., 6.]], dtype=float32)
    """
    n, kind = known_int(n, "n"), _kind(kind)
    if is_symbolic_dim(n):
        return _open_pascal(n, kind)
    if kind == "symmetric":
        out = np.ones((n, n))
        for i in range(1, n):
            out[i] = np.cumsum(out[i - 1])
        return _rounded(out, _float())
    lower = _lower_pascal(n)
    return _rounded(lower if kind == "lower" else lower.T, _float())


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of the matrix `pascal(n, kind)`.

    Args:
        n: the size.
        kind: "symmetric", the default, "lower" or "upper".

    Raises:
        ValueError: `kind` has another value.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.invpascal(3, kind="lower")
        Array([[ 1.,  0.,  0.],
               [-1.,  1.,  0.],
               [ 1., -2.,  1.]], dtype=float32)
    """
    n, kind = known_int(n, "n"), _kind(kind)
    lower = _lower_pascal(n)
    # All terms of an element of the symmetric inverse have the same sign, so no digits cancel.
    out = {"lower": lower, "upper": lower.T, "symmetric": lower.T @ lower}[kind]
    i, j = np.indices((n, n))
    return _rounded(np.where((i + j) % 2, 0 - out, out), _float())


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """A Hadamard matrix of shape (n, n): 1 and -1 in orthogonal rows, as Sylvester built it.

    Args:
        n: the size, a power of two.
        dtype: a dtype with negative numbers.

    Raises:
        ValueError: `n` is not a power of two.
        TypeError: `dtype` is bool.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.hadamard(2)
        Array([[ 1,  1],
               [ 1, -1]], dtype=int32)
    """
    n = known_int(n, "n")
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    dtype = dtypes.requested_dtype(dtype, "hadamard")
    if dtype == np.dtype(bool):
        raise TypeError("hadamard does not accept dtype bool, which has no -1. Use an integer or floating dtype.")
    i, j = _places(n)
    # An element is -1 if i & j has an odd number of ones.
    return convert(1 - 2 * (lax.population_count(i & j) & 1), dtype)


def helmert(n: int, full: bool = False) -> Array:
    """The Helmert matrix, whose orthonormal rows compare an element with the mean of previous ones.

    Args:
        n: the number of columns.
        full: whether to include a constant first row, of `1/√n`.

    Returns:
        An array of shape (n - 1, n), or (n, n) with `full`.

    Raises:
        ValueError: `n` is not positive.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.helmert(2)
        Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = known_int(n, "n")
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")
    i, j = np.indices((n, n))
    size = np.sqrt(np.where(i, i * (i + 1.0), n))
    out = np.where((j < i) | (i == 0), 1 / size, np.where(i == j, -i / size, 0))
    return _rounded(out if full else out[1:], _float())


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform, `exp(-2πi jk/n)`, of shape (n, n).

    Args:
        n: the size.
        scale: None for no factor, "sqrtn" for the factor `1/√n`, which makes the matrix unitary, or
            "n" for the factor `1/n`.
        dtype: a complex dtype; by default complex64, or complex128 if 64 bits are enabled.

    Raises:
        ValueError: `scale` has another value, or `dtype` is not complex.

    Example:
        >>> from gradix.scipy import linalg
        >>> linalg.dft(2).round(3).real
        Array([[ 1.,  1.],
               [ 1., -1.]], dtype=float32)
    """
    n = larger(known_int(n, "n"), 0)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    dtype = dtypes.requested_dtype(complex if dtype is None else dtype, "dft")
    if dtype not in COMPLEX:
        raise ValueError(f"dtype must be a complex floating-point type; got {dtypes.dtype_name(dtype)}.")
    if is_symbolic_dim(n):
        i = lax.broadcasted_iota(_INT32, (n, n), 0) * lax.broadcasted_iota(_INT32, (n, n), 1) % n
        size = {None: 1.0, "sqrtn": jnp.sqrt(jnp.asarray(n, float)), "n": n}[scale]
        return convert(jnp.exp(-2j * np.pi * (i / n)) / size, dtype)
    size = {None: 1.0, "sqrtn": np.sqrt(n), "n": float(n)}[scale]
    roots = np.exp(-2j * np.pi * np.arange(n) / max(n, 1)) / max(size, 1.0)
    i, j = np.indices((n, n))
    return jnp.asarray(roots.astype(dtype)[i * j % max(n, 1)] if n else np.zeros((0, 0), dtype))
