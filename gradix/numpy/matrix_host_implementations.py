"""Host rules of functions of matrices, by NumPy and LAPACK; see `host_implementations`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix.numpy.host_implementations import INEXACT, alike

# NumPy's functions of stacks of matrices, without the checks around them.
_linalg: Any = getattr(np.linalg, "_umath_linalg", None)
_threads: Any = lazy_module("gradix._base.one_thread")
_POOL = 24 * 24  # From this number of elements on, LAPACK starts other threads.
_lapack, _LETTERS = lazy_module("scipy.linalg.lapack"), {"f": "s", "d": "d", "F": "c", "D": "z"}


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
    factor, places = getattr(_lapack, f"{_LETTERS[a.dtype.char]}getrf"), np.arange(a.shape[0])

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
