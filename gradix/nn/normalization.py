"""Sums of exponentials, softmax and standardisation, each with a mask; one-hot vectors.

The functions take axes of the array, names of mapped axes (`vmap(..., axis_name=)`), and tuples of
both.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.implicit import stop_gradient
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.canonicalization import canonical_axis
from gradix.nn.composition import fused
from gradix.numpy.axes import axes_of, known_int, positions_and_names
from gradix.numpy.extremes import max_of_numbers
from gradix.numpy.moments import count_of
from gradix.numpy.promotion import as_operand, convert, inexact_operand, inexact_operands
from gradix.numpy.selection import where as choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Axes, DTypeLike

_INF = math.inf
_F16, _F32, _F16_MAX = np.dtype("float16"), np.dtype("float32"), 65504


@replayed
def logsumexp(
    a: ArrayLike,
    axis: Axes | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """The logarithm log Σ b·eᵃ over axes; the exponentials do not overflow.

    Args:
        a: an array of exponents.
        axis: the axis, or axes, of the sum; all by default. Mapped axes are given by name.
        b: an array of factors, which may be negative and broadcast with `a`.
        keepdims: whether the axes of the sum stay, with size 1.
        return_sign: whether to return the sign of the sum too; without it, negative sums give NaN.
        where: booleans that broadcast to the shape of `a` and tell which elements count.

    Returns:
        An array in a floating or complex dtype, with the shape of `a` without the axes; or with
        `return_sign` a pair of the logarithm of the sum's absolute value, and its sign.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.logsumexp(jnp.array([1000.0, 1000.0]))
        Array(1000.6932, dtype=float32)
    """
    if b is None:
        a = inexact_operand("logsumexp", a)
    else:
        a, b = inexact_operands("logsumexp", a, b)
        a = choose(b != 0, a, -_INF)
    axes, everything = _axes(axis, a.aval.ndim)
    dtype = dtypes.real_dtype(a.aval.dtype)
    a = _countable(a, everything)
    if where is not None:
        a = choose(where, a, 0)
    shift = stop_gradient(_finite(max_of_numbers(lax.real(a) if _is_complex(a) else a, everything, -_INF, where)))
    terms = lax.exp(a - lax.convert_element_type(shift, a.aval.dtype))
    total = jnp.sum(terms if b is None else terms * b, axis=everything, keepdims=keepdims, where=where)
    shift = shift if keepdims else lax.squeeze(shift, axes)
    if return_sign:
        size = lax.log(abs(total)) + lax.convert_element_type(shift, dtypes.real_dtype(a.aval.dtype))
        sign = lax.sign(total)
        return _in_dtype(size, dtype), sign if _is_complex(a) else _in_dtype(sign, dtype)
    if _is_complex(a):
        return lax.log(total) + lax.convert_element_type(shift, total.aval.dtype)
    out = _in_dtype(lax.log(abs(total)) + shift, dtype)
    return out if b is None else choose(total < 0, math.nan, out)


def _axes(axis, ndim: int) -> tuple[tuple, tuple]:
    """The axes as numbers from 0 on, and these followed by the names of mapped axes."""
    positions, names = positions_and_names(axis)
    axes = axes_of(positions, ndim)
    return axes, axes + names


def _countable(x, axes):
    """`x`, in float32 if it is float16 and has more elements along the axes than that can count."""
    if x.aval.dtype != _F16:
        return x
    count = _count(x, axes)
    many = type(count) is int and count > _F16_MAX
    return convert(x, _F32) if many else x


def _in_dtype(x, dtype):
    return x if x.aval.dtype == dtype else convert(x, dtype)


def _finite(x):
    return choose(lax.is_finite(x), x, 0.0)


def _is_complex(x) -> bool:
    return x.aval.dtype in dtypes.COMPLEX


@fused
def logmeanexp(x: ArrayLike, axis: Axes | None = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """The logarithm of the mean of eˣ over axes; the exponentials do not overflow.

    Args:
        x: an array of exponents.
        axis: the axis, or axes, of the mean; all by default. Mapped axes are given by name.
        where: booleans that broadcast to the shape of `x` and tell which elements count.
        keepdims: whether the axes stay, with size 1.

    Returns:
        An array in a floating or complex dtype, with the shape of `x` without the axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.logmeanexp(jnp.array([1000.0, 1000.0]))
        Array(1000., dtype=float32)
    """
    x = inexact_operand("logmeanexp", x)
    total = logsumexp(x, axis=axis, keepdims=keepdims, where=where)
    if where is None:
        return total - lax.log(lax.full((), _count(x, axis), total.aval.dtype))
    counted = jnp.sum(
        jnp.broadcast_to(where, x.aval.shape), axis=axis, dtype=dtypes.real_dtype(x.aval.dtype), keepdims=keepdims
    )
    return total - lax.log(counted)


def _count(x, axis) -> int:
    axis, names = positions_and_names(axis)
    return count_of(x.aval.shape, axes_of(axis, x.aval.ndim), names)


@replayed
def softmax(x: ArrayLike, axis: Axes | None = -1, where: ArrayLike | None = None) -> Array:
    """The quotients eˣ / Σ eˣ along axes, positive numbers with the sum 1.

    Args:
        x: an array of exponents.
        axis: the axis, or axes, of the sum; None for all. Mapped axes are given by name.
        where: booleans that broadcast with `x` and tell which elements count; the others become 0.

    Returns:
        An array of the shape of `x`, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.softmax(jnp.array([0.0, 0.0]))
        Array([0.5, 0.5], dtype=float32)
    """
    x = inexact_operand("softmax", x)
    dtype, axes = x.aval.dtype, _axes(axis, x.aval.ndim)[1]
    terms, total, _ = _exponentials(_countable(x, axes), axes, where)
    out = _in_dtype(terms / total, dtype)
    return out if where is None else choose(where, out, 0)


def _exponentials(x, axes, where):
    """The exponentials of x minus its maximum, their sum, and the exponents."""
    shift = stop_gradient(max_of_numbers(x, axes, -_INF, where))  # The exponentials keep NaN.
    exponents = (x if where is None else choose(where, x, -_INF)) - shift
    terms = lax.exp(exponents)
    return terms, jnp.sum(terms, axis=axes, keepdims=True, where=where), exponents


@fused
def log_softmax(x: ArrayLike, axis: Axes | None = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, x − log Σ eˣ along axes.

    Args:
        x: an array of exponents.
        axis: the axis, or axes, of the sum; None for all. Mapped axes are given by name.
        where: booleans that broadcast with `x` and tell which elements count; the others become −∞.

    Returns:
        An array of the shape of `x`, in a floating dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.log_softmax(jnp.array([0.0, 0.0]))
        Array([-0.6931472, -0.6931472], dtype=float32)
    """
    x = inexact_operand("log_softmax", x)
    dtype, axes = x.aval.dtype, _axes(axis, x.aval.ndim)[1]
    _, total, exponents = _exponentials(_countable(x, axes), axes, where)
    out = _in_dtype(exponents - lax.log(total), dtype)
    return out if where is None else choose(where, out, -_INF)


@fused
def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """The array brought to mean 0 and variance 1 along axes: (x − mean) / √(variance + epsilon).

    Args:
        x: an array.
        axis: the axis, or axes, of mean and variance. Mapped axes are given by name.
        mean, variance: the mean and the variance, if they are known.
        epsilon: a number that keeps the divisor from being zero.
        where: booleans that tell of which elements mean and variance are taken.
        algorithm: how the variance is computed: "fast" for the mean of the squares minus the square
            of the mean, "stable" for the mean of squared differences.

    Returns:
        An array of the shape of `x`, in a floating dtype.

    Raises:
        ValueError: `algorithm` is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.standardize(jnp.array([-1.0, 1.0]))
        Array([-0.999995,  0.999995], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}.")
    x = inexact_operand("standardize", x)
    _, axes = _axes(axis, x.aval.ndim)
    if mean is None:
        mean = jnp.mean(x, axis=axes, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            squares = jnp.mean(lax.square(x), axis=axes, keepdims=True, where=where)
            variance = jnp.clip(squares - lax.square(mean), min=0)
        else:
            variance = jnp.var(x, axis=axes, keepdims=True, where=where)
    return (x - mean) * lax.rsqrt(inexact_operand("standardize", variance + epsilon))


@replayed
def one_hot(
    x: ArrayLike | Sequence[int], num_classes: int, *, dtype: DTypeLike | None = None, axis: int | str = -1
) -> Array:
    """Vectors with a 1 at given places and 0 elsewhere; they are 0 for a place out of bounds.

    Args:
        x: an array of integers, the places.
        num_classes: the size of the vectors.
        dtype: the dtype of the result; the default floating one if None.
        axis: the axis of the vectors in the result; or the name of a mapped axis of their size, on
            which their elements are distributed.

    Returns:
        An array of the shape of `x` with the new axis of size `num_classes`, or of the shape of `x`
        for a named axis.

    Raises:
        ValueError: `num_classes` is not the size of a named axis.
        ConcretizationTypeError: `num_classes` is traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import nn
        >>> nn.one_hot(jnp.array([0, 2]), 3)
        Array([[1., 0., 0.],
               [0., 0., 1.]], dtype=float32)
    """
    if isinstance(num_classes, Tracer):
        raise ConcretizationTypeError(
            num_classes, "one_hot: num_classes must be known, as it is a size of the result; make it a static argument."
        )
    classes = known_int(num_classes, "argument num_classes of one_hot")
    x = jnp.asarray(x)
    if x.aval.dtype not in dtypes.INTEGER and x.aval.dtype not in dtypes.BOOL:
        warnings.warn(
            f"one_hot: x holds places, which should be integers; got dtype {x.aval.dtype}. Convert "
            "it with x.astype(int).",
            DeprecationWarning,
            stacklevel=2,
        )
    dtype = dtypes.python_scalar_dtype(float) if dtype is None else dtypes.requested_dtype(dtype, "one_hot")
    if isinstance(axis, str):
        size = lax.axis_size(axis)
        if size != classes:
            raise ValueError(f"one_hot: num_classes must be the size {size} of the axis {axis!r}, got {classes}.")
        return lax.convert_element_type(x == lax.axis_index(axis), dtype)
    ndim = x.aval.ndim
    place = canonical_axis(axis, ndim + 1)
    shape = [1] * (ndim + 1)
    shape[place] = classes
    if x.aval.dtype in dtypes.INTEGER:
        x = lax._wide_index(x, classes)
    numbers = lax.broadcasted_iota(x.aval.dtype if x.aval.dtype not in dtypes.BOOL else np.dtype("int32"), shape, place)
    return lax.convert_element_type(lax.expand_dims(as_operand("one_hot", x), (place,)) == numbers, dtype)
