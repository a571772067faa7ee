"""Windows by which signals are multiplied: bartlett, blackman, hamming, hanning, kaiser."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradix import lax
from gradix._core import dtypes
from gradix._core.dimensions.expression import is_symbolic_shape, larger
from gradix._core.operators import Array
from gradix.numpy.axes import known_int
from gradix.numpy.elementary import i0
from gradix.numpy.promotion import as_operand, convert, number, number_of
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def _window(name: str, M, formula):
    M = known_int(int(M) if type(M) is float else M, f"M argument of jnp.{name}")
    dtype = dtypes.python_scalar_dtype(float)
    if is_symbolic_shape((M,)):
        points = formula(lax.iota(dtype, M), larger(M - 1, 1), lambda v: number(v, dtype))
        return where(lax.le(number_of(M, dtype), number(1.0, dtype)), number(1.0, dtype), points)
    if M <= 1:
        return lax.full((max(M, 0),), number(1.0, dtype))
    return formula(lax.iota(dtype, M), M - 1, lambda v: number(v, dtype))


def _cosines(n, last, num, *weights):
    """A weighted sum of cosines of multiples of the angle 2πn / last, from 0 times on."""
    out = None
    for i, w in enumerate(weights):
        angle = lax.div(lax.mul(num(2 * math.pi * i), n), number_of(last, n.dtype))
        part = lax.mul(num(w), lax.cos(angle)) if i else num(w)
        out = part if out is None else lax.add(out, part)
    return out


def bartlett(M: int) -> Array:
    """The Bartlett window of `M` points, a triangle that ends at zero, as a floating vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.bartlett(3)
        Array([0., 1., 0.], dtype=float32)
    """
    return _window(
        "bartlett",
        M,
        lambda n, last, num: lax.sub(
            num(1.0),
            lax.abs(lax.div(lax.sub(lax.mul(num(2.0), n), number_of(last, n.dtype)), number_of(last, n.dtype))),
        ),
    )


def blackman(M: int) -> Array:
    """The Blackman window of `M` points, as a floating vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.blackman(3).round(3)
        Array([-0.,  1., -0.], dtype=float32)
    """
    return _window("blackman", M, lambda n, last, num: _cosines(n, last, num, 0.42, -0.5, 0.08))


def hamming(M: int) -> Array:
    """The Hamming window of `M` points, as a floating vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.hamming(3)
        Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _window("hamming", M, lambda n, last, num: _cosines(n, last, num, 0.54, -0.46))


def hanning(M: int) -> Array:
    """The Hann window of `M` points, as a floating vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.hanning(3)
        Array([0., 1., 0.], dtype=float32)
    """
    return _window("hanning", M, lambda n, last, num: _cosines(n, last, num, 0.5, -0.5))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window of `M` points with the parameter `beta`, as a floating vector.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.kaiser(1, 2.0)
        Array([1.], dtype=float32)
    """
    dtype = dtypes.python_scalar_dtype(float)
    beta = convert(as_operand("kaiser", beta, 1), dtype)

    def formula(n, last, num):
        half = lax.mul(num(0.5), number_of(last, n.dtype))
        side = lax.sub(num(1.0), lax.square(lax.div(lax.sub(n, half), half)))
        return lax.div(i0(lax.mul(beta, lax.sqrt(side))), i0(beta))

    return _window("kaiser", M, formula)
