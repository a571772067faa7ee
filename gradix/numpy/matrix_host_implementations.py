"""Host rules of functions of matrices, by NumPy and LAPACK; see `host_implementations`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix.numpy.host_implementations import FLOATS, INEXACT, alike

# NumPy's functions of stacks of matrices, without the checks around them.
_linalg: Any = getattr(np.linalg, "_umath_linalg", None)
_threads: Any = lazy_module("gradix._base.one_thread")
_POOL = 24 * 24  # From this number of elements on, LAPACK starts other threads.
_lapack, _LETTERS = lazy_module("scipy.linalg.lapack"), {"f": "s", "d": "d", "F": "c", "D": "z"}


def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """For one matrix."""
    is_matrix = alike(FLOATS, a) and len(a.shape) == 2 and (axis1, axis2) == (0, 1)
    if not is_matrix or type(offset) is not int or dtype is not None:
        return None
    ones = np.ones(max(0, min(a.shape[0] + min(offset, 0), a.shape[1] - max(offset, 0))), a.dtype)
    return lambda x: np.dot(ones, x.diagonal(offset))


def _square(a, least: int = 1) -> bool:
    is_square = len(a.shape) >= 2 and a.shape[-1] == a.shape[-2] >= least
    return _linalg is not None and alike(INEXACT, a) and is_square and a.size > 0


def threaded(package: str) -> Callable:
    """A decorator of host rules that call LAPACK from `package`; it keeps LAPACK to one thread."""

    def kept(rule):
        @functools.wraps(rule)
        def of_types(a, *args, **kwargs):
            found = rule(a, *args, **kwargs)
            is_quick = found is None or a.size < _POOL
            return found if is_quick else _threads.on_one_thread(found, package)

        return of_types

    return kept


@threaded("scipy")
def det(a):
    """For one matrix of at least 4 rows, as smaller ones have a formula.

    NumPy's own determinant is the exponential of a sum of logarithms, and so less accurate.
    """
    if not _square(a, 4) or len(a.shape) != 2:
        return None
    factor, places = _routine("getrf", a.dtype), np.arange(a.shape[0])

    def product(x):
        factors, pivots, _ = factor(x)
        found = np.multiply.reduce(factors.diagonal())
        return -found if np.count_nonzero(np.not_equal(pivots, places)) & 1 else found

    return product


@threaded("numpy")
def slogdet(a, *, method=None):
    return _linalg.slogdet if _square(a) and method in (None, "lu") else None


@threaded("numpy")
def inv(a):
    return _inverse if _square(a) else None


def _inverse(x):
    found = _linalg.inv(x)
    # The inverse of a singular matrix is NaN.
    return found if np.count_nonzero(np.equal(found, found)) == found.size else NotImplemented


@threaded("numpy")
def eigvalsh(a, UPLO="L", *, symmetrize_input=True):
    """For matrices that are symmetrized; no eigenvectors are computed."""
    if not _square(a) or not symmetrize_input or UPLO not in (None, "L", "U"):
        return None
    half = a.dtype.type(0.5)
    return lambda x: _linalg.eigvalsh_lo(
        np.multiply(np.add(x, np.swapaxes(x, -1, -2).conj()), half)
    )


# -- one matrix, by the library that XLA calls, so that signs of vectors agree ---------------------


@threaded("scipy")
def cholesky(a, *, upper=False, symmetrize_input=True):
    if not _symmetric(a, symmetrize_input) or upper:
        return None
    factor, half = _routine("potrf", a.dtype), a.dtype.type(0.5)

    def lower(x):
        found, info = factor(_mean_of_triangles(x, half), lower=1, clean=1, overwrite_a=1)
        return NotImplemented if info else found  # The matrix may not be positive definite.

    return lower


@threaded("scipy")
def eigh(a, UPLO=None, symmetrize_input=True):
    if not _symmetric(a, symmetrize_input) or UPLO not in (None, "L"):
        return None
    solve, half = _routine("syevd", a.dtype), a.dtype.type(0.5)

    def values_and_vectors(x):
        values, vectors, info = solve(_mean_of_triangles(x, half), lower=1, overwrite_a=1)
        return NotImplemented if info else (values, vectors)

    return values_and_vectors


def _symmetric(a, symmetrize_input) -> bool:
    return _square(a) and a.dtype in FLOATS and len(a.shape) == 2 and symmetrize_input is True


def _mean_of_triangles(x, half):
    """The symmetrized matrix, marked as stored by columns, so that LAPACK does not copy it."""
    found = np.add(x, x.T)
    return np.multiply(found, half, found).T


@threaded("scipy")
def cond(x, p=None):
    """For one matrix: the ratio of its first and last singular value."""
    values = _singular_values(x) if p in (None, 2) else None
    if values is None:
        return None

    def ratio(x):
        s = values(x)
        return s if s is NotImplemented else s[0] / s[-1]

    return ratio


@threaded("scipy")
def matrix_rank(M, rtol=None, *, hermitian=False, tol=None):
    """For one matrix: the number of its singular values that are not negligible."""
    values = _singular_values(M)
    if values is None or not (rtol is tol is None) or hermitian:
        return None
    number = M.dtype.type
    part = number(max(M.shape) * float(np.finfo(M.dtype).eps))

    def rank(x):
        s = values(x)
        return s if s is NotImplemented else np.count_nonzero(np.greater(s, s[0] * part))

    return rank


def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """For one set of values; LAPACK drops the same singular values as the program does."""
    are_rows = alike(FLOATS, x, y) and len(x.shape) == 1 and x.shape == y.shape
    if not are_rows or type(deg) is not int or not 0 <= deg < min(x.size, 9):
        return None
    if (
        full is not False
        or w is not None
        or cov is not False
        or not (rcond is None or type(rcond) is float and rcond >= 0)
    ):
        return None
    dtype, order = x.dtype, deg + 1
    solve, number = _routine("gelsd", dtype), dtype.type
    work, whole, _ = [int(n) for n in _routine("gelsd_lwork", dtype)(x.size, order, 1)]
    least = x.size * float(np.finfo(dtype).eps) if rcond is None else rcond
    constant = number(math.sqrt(x.size))
    # The rows are powers of unit length, the highest first.
    start = np.full((order, x.size), number(1) / constant)

    def coefficients(x, y):
        powers, power, scales = start.copy(), x, [constant]
        for k in range(deg - 1, -1, -1):
            if scales[1:]:
                power = np.multiply(power, x)
            scales.append(number(math.sqrt(np.dot(power, power))))
            np.divide(power, scales[-1], powers[k])
        found, _, _, info = solve(powers.T, y, work, whole, least, overwrite_a=1)
        out = np.divide(found[:order], np.array(scales[::-1]))
        # A NaN reaches all coefficients.
        return out if not info and out[0] - out[0] == 0 else NotImplemented

    return coefficients


def _singular_values(a) -> Callable | None:
    if not alike(FLOATS, a) or len(a.shape) != 2 or not a.size:
        return None
    solve = _routine("gesdd", a.dtype)

    def values(x):
        _, s, _, info = solve(x, compute_uv=0)
        return NotImplemented if info else s

    return values


def _routine(name: str, dtype) -> Callable:
    return getattr(_lapack, _LETTERS[dtype.char] + name)
