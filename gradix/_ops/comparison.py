"""Comparisons: eq, ne, lt, le, gt, ge, their total-order forms, and is_finite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core.dtypes import BOOL, COMPLEX, FLOAT, KEYS, NUMERIC, KeyType
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.families import Elementwise, NonDifferentiable
from gradix._ops.operands import operands
from gradix._ops.random.storage import emit_halves, halves, is_wide

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_BOOL = np.dtype(bool)


class Comparison(NonDifferentiable, Elementwise):
    """A comparison; `total` orders NaN and the signed zeros too."""

    def __init__(self, name, host, direction, dtypes, total=False):
        super().__init__(name, host, hlo=self._emit, dtypes=dtypes, out=lambda dtype: _BOOL)
        self.direction, self.total = direction, total

    def _emit(self, em, out, x, y):
        floating = x.aval.dtype.kind not in "biuc" and self.total
        return em.compare(x, y, self.direction, **({"kind": "TOTALORDER"} if floating else {}))


_SIGNED_WORDS = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}
_LARGEST = {n: np.array(np.iinfo(d).max, d) for n, d in _SIGNED_WORDS.items()}


def total_order_key(x):
    """Integers ordered as the floats `x` are in IEEE total order."""
    if x.dtype.kind in "biu":
        return x
    size = x.dtype.itemsize
    bits = x.view(_SIGNED_WORDS[size])
    # Flip the bits below the sign of negative numbers, which are in reverse order.
    return np.bitwise_xor(bits, np.bitwise_and(np.right_shift(bits, 8 * size - 1), _LARGEST[size]))


def _total(ufunc):
    return lambda x, y: ufunc(total_order_key(x), total_order_key(y))


_KEYS = BOOL | NUMERIC
_WIDE_KEYS = frozenset([k for k in KEYS.values() if is_wide(k)])
_NARROW_KEYS = frozenset(KEYS.values()) - _WIDE_KEYS


class Equality(Comparison):
    """Whether numbers are the same, or keys of one or two words, those of users' generators too."""

    def check_dtypes(self, avals):
        if not _are_keys(avals, wide=False):
            super().check_dtypes(avals)


def _are_keys(avals, wide: bool) -> bool:
    """Whether all are keys of one generator."""
    dtype = avals[0].dtype
    return type(dtype) is KeyType and is_wide(dtype) is wide and all(a.dtype == dtype for a in avals)


def _is_wide_key(dtype) -> bool:
    return type(dtype) is KeyType and is_wide(dtype)


eq_p = Equality("eq", np.equal, "EQ", _KEYS | _NARROW_KEYS)
ne_p = Equality("ne", np.not_equal, "NE", _KEYS | _NARROW_KEYS)


class WideKeyComparison(NonDifferentiable, Elementwise):
    """Compare keys of four words by the bits of their halves, which as numbers may be NaN."""

    def __init__(self, name, ufunc, direction, join):
        super().__init__(
            name,
            lambda x, y: getattr(np, join)(*np.moveaxis(ufunc(halves(x), halves(y)), -1, 0)),
            hlo=self._emit,
            dtypes=_WIDE_KEYS,
            out=lambda dtype: _BOOL,
        )
        self.direction, self.join = direction, join.removeprefix("logical_")

    def check_dtypes(self, avals):
        if not _are_keys(avals, wide=True):
            super().check_dtypes(avals)

    def _emit(self, em, out, x, y):
        return em.op(
            self.join, out, *[em.compare(a, b, self.direction) for a, b in zip(emit_halves(em, x), emit_halves(em, y))]
        )


eq_keys_p = WideKeyComparison("eq", np.equal, "EQ", "logical_and")
ne_keys_p = WideKeyComparison("ne", np.not_equal, "NE", "logical_or")
lt_p = Comparison("lt", np.less, "LT", _KEYS - COMPLEX)
le_p = Comparison("le", np.less_equal, "LE", _KEYS - COMPLEX)
gt_p = Comparison("gt", np.greater, "GT", _KEYS - COMPLEX)
ge_p = Comparison("ge", np.greater_equal, "GE", _KEYS - COMPLEX)
eq_to_p = Comparison("eq_to", _total(np.equal), "EQ", FLOAT, total=True)
lt_to_p = Comparison("lt_to", _total(np.less), "LT", _KEYS - COMPLEX, total=True)
le_to_p = Comparison("le_to", _total(np.less_equal), "LE", _KEYS - COMPLEX, total=True)


class _IsFinite(NonDifferentiable, Elementwise):
    """Whether an element is finite. The result is discrete, so it has no tangent."""


is_finite_p = _IsFinite("is_finite", np.isfinite, hlo="is_finite", dtypes=FLOAT, out=lambda dtype: _BOOL)


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """`x == y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.eq(1, 1)
        Array(True, dtype=bool, weak_type=True)
    """
    x, y = operands("eq", x, y)
    return bind(eq_keys_p if _is_wide_key(x.aval.dtype) else eq_p, (x, y), {})


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """`x != y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.ne(1, 1)
        Array(False, dtype=bool, weak_type=True)
    """
    x, y = operands("ne", x, y)
    return bind(ne_keys_p if _is_wide_key(x.aval.dtype) else ne_p, (x, y), {})


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """`x < y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.lt(1, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return bind(lt_p, operands("lt", x, y), {})


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """`x <= y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.le(2, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return bind(le_p, operands("le", x, y), {})


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """`x > y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.gt(1, 2)
        Array(False, dtype=bool, weak_type=True)
    """
    return bind(gt_p, operands("gt", x, y), {})


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """`x >= y`, elementwise, as booleans.

    Example:
        >>> from gradix import lax
        >>> lax.ge(2, 2)
        Array(True, dtype=bool, weak_type=True)
    """
    return bind(ge_p, operands("ge", x, y), {})


def is_finite(x: ArrayLike) -> Array:
    """Whether `x` is neither infinite nor NaN.

    Example:
        >>> from gradix import lax
        >>> lax.is_finite(float("inf"))
        Array(False, dtype=bool, weak_type=True)
    """
    return bind(is_finite_p, operands("is_finite", x), {})
