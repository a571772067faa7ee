"""x·log(y) and the entropies made of it, with their values at zero."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradix import lax
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.promotion import inexact_operand, inexact_operands
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


@custom_jvp
def _xlogy(x, y):
    return where((x != 0) | (y != y), x * lax.log(y), 0.0)


@_xlogy.defjvp
def _xlogy_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return _xlogy(x, y), tx * lax.log(y) + ty * (x / y)


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x · log(y), and 0 where x is 0.

    Example:
        >>> from gradix.scipy import special
        >>> special.xlogy(0.0, 0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return _xlogy(*inexact_operands("xlogy", x, y))


@custom_jvp
def _xlog1py(x, y):
    return where((x != 0) | (y != y), x * lax.log1p(y), 0.0)


@_xlog1py.defjvp
def _xlog1py_jvp(primals, tangents):
    (x, y), (tx, ty) = primals, tangents
    return _xlog1py(x, y), tx * lax.log1p(y) + ty * (x / (1 + y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x · log(1 + y), and 0 where x is 0.

    Example:
        >>> from gradix.scipy import special
        >>> special.xlog1py(0.0, -1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    return _xlog1py(*inexact_operands("xlog1py", x, y))


@custom_jvp
def _xlogx(x):
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return _xlogx(x), t * (lax.log(x) + 1)


def entr(x: ArrayLike) -> Array:
    """−x · log(x): the term of an entropy; 0 at 0 and −∞ below.

    Example:
        >>> from gradix.scipy import special
        >>> special.entr(0.0)
        Array(-0., dtype=float32, weak_type=True)
    """
    value: Any = inexact_operand("entr", x)
    return where(value < 0, -math.inf, -_xlogx(value))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q): the term of a relative entropy; 0 where p is 0, ∞ outside of its domain.

    Raises:
        ValueError: an operand is complex.

    Example:
        >>> from gradix.scipy import special
        >>> special.rel_entr(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    operands: Any = inexact_operands("rel_entr", p, q)
    p, q = operands
    if p.dtype in dtypes.COMPLEX:
        raise ValueError(
            f"rel_entr does not support complex-valued inputs, got dtype {dtypes.dtype_name(p.dtype)}. "
            "Use the real parts, or abs."
        )
    inside, edge = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = where(inside, p, 1), where(inside, q, 1)
    return where(inside, _xlogx(safe_p) - _xlogy(safe_p, safe_q), where(edge, 0.0, math.inf))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p · log(p / q) − p + q.

    Example:
        >>> from gradix.scipy import special
        >>> special.kl_div(1.0, 1.0)
        Array(0., dtype=float32, weak_type=True)
    """
    p, q = inexact_operands("kl_div", p, q)
    return rel_entr(p, q) - p + q
