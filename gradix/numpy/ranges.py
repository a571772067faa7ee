"""Ranges of numbers: arange, linspace, logspace, geomspace."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from gradix import lax
from gradix._api.jit.replay import replayed
from gradix._base.errors import ConcretizationTypeError, class_of
from gradix._core import dtypes
from gradix._core.array import wrap_host
from gradix._core.dimensions.expression import is_symbolic_shape, larger
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix._core.trace import is_unknown
from gradix.numpy.arithmetic import power
from gradix.numpy.axes import axis_of, known_int
from gradix.numpy.elementary import log10
from gradix.numpy.placement import place
from gradix.numpy.promotion import (
    broadcast_to,
    common_shape,
    convert,
    number,
    number_of,
    promote_dtypes_inexact,
    value_of,
    working_dtype,
)
from gradix.numpy.selection import where

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Device, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec, Sharding


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The numbers from `start` up to but not including `stop`, in equal steps.

    Args:
        start: the first number; if it is the only argument, the end, and 0 the first number.
        stop: the end, which is not included.
        step: the distance between neighbours; 1 by default.
        dtype: the dtype; by default that of the arguments.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Returns:
        A vector of size ⌈(stop - start) / step⌉, or of size 0 if that is negative.

    Raises:
        ConcretizationTypeError: an argument is traced, so that the size is not known.
        ValueError: an argument is complex, or has axes.
        TypeError: an argument is a list, `stop` is None, or the dtype is boolean.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.arange(1, 7, 2)
        Array([1, 3, 5], dtype=int32)
        >>> jnp.arange(0.0, 1.0, 0.25)
        Array([0.  , 0.25, 0.5 , 0.75], dtype=float32)

    See also:
        `jnp.linspace`, for a given number of steps; `lax.iota`,
        `jnp.indices`.
    """
    if type(start) is int and stop is None and step is None and dtype is None:
        x = lax.iota(dtypes.python_scalar_dtype(int), start if start > 0 else 0)
        return x if device is None and out_sharding is None else place(x, device, out_sharding)
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "arange", stacklevel=3)
    if stop is None:
        start, stop = None, start
    start, stop, step = (value_of(end) for end in (start, stop, step))
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        _check_end(name, value)
    if stop is None:
        raise TypeError("arange: stop is None. Write arange(stop) or arange(start, stop).")
    x = _arange(start, stop, step, dtype)
    return x if device is None and out_sharding is None else place(x, device, out_sharding)


def _check_end(name: str, value) -> None:
    if value is None:
        return
    if is_unknown(value):
        raise ConcretizationTypeError(value, f"The {name} argument of jnp.arange determines a shape.")
    if isinstance(value, (list, tuple)):
        raise TypeError(f"arange: {name} must be a number, got {class_of(value)}.")
    if np.ndim(value):
        raise ValueError(f"arange: the arguments must be scalars, got {name}={value}.")
    if np.iscomplexobj(value) or (isinstance(value, Array) and value.dtype in COMPLEX):
        raise ValueError(f"arange: {name} must not be complex, got {value}. Use jnp.linspace.")


def _plain(value):
    """A scalar as a Python number."""
    return value.item() if isinstance(value, (Array, np.ndarray, np.generic)) else value


def _arange(start, stop, step, dtype):
    if dtype is None:
        given = [v for v in (start, stop, step) if v is not None]
        dtype = dtypes.result_type(*given)
        for v in given:
            if type(v) is int and dtype in INTEGER:
                dtypes.check_python_int(v, dtype)
    if dtype in dtypes.BOOL:
        raise TypeError("arange: the dtype must not be boolean. Name a dtype such as int, or use jnp.array.")
    first, last, by = (_plain(v) for v in (start, stop, step))
    size = _count(0 if first is None else first, last, 1 if by is None else by)
    x = lax.iota(dtype, size)
    if by is not None:
        x = lax.mul(_end(by, dtype), x)
    return x if first is None else lax.add(_end(first, dtype), x)


def _count(first, last, by):
    """How many numbers there are from `first` up to but not including `last`."""
    if not is_symbolic_shape((by,)) and not by:
        raise ZeroDivisionError(
            f"arange: division by the step, which must not be zero: got start={first}, stop={last}, step={by}."
        )
    if not is_symbolic_shape((first, last, by)):
        return max(0, math.ceil((last - first) / by))
    if not all(isinstance(end, int) or is_symbolic_shape((end,)) for end in (first, last, by)):
        raise TypeError(
            "arange: beside a symbolic dimension, the arguments must be integers, got "
            f"start={first}, stop={last}, step={by}."
        )
    return larger(-((first - last) // by), 0)


def _end(value, dtype):
    if type(value) is int and dtype in INTEGER:
        word = np.dtype(dtype).itemsize * 8
        return wrap_host(np.asarray(value & ((1 << word) - 1), f"uint{word}").astype(dtype))
    return number(value, dtype)


@overload
def linspace(
    start,
    stop,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype=None,
    axis: int = 0,
    *,
    device=None,
) -> Array: ...


@overload
def linspace(
    start, stop, num: int = 50, endpoint: bool = True, *, retstep: Literal[True], dtype=None, axis: int = 0, device=None
) -> tuple[Array, Array]: ...


@overload
def linspace(
    start, stop, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype=None, axis: int = 0, *, device=None
) -> Any: ...


@replayed
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | Sharding | None = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`.

    Args:
        start: the first number, or an array of first numbers.
        stop: the last number, or an array of last numbers.
        num: how many numbers.
        endpoint: whether `stop` is the last number; if not, it would be the next one.
        retstep: whether to return the distance between neighbours too.
        dtype: the dtype; by default that of the arguments, made floating. Integers are rounded
            down.
        axis: the place of the new axis, if `start` and `stop` are arrays.
        device: the device, or sharding, to which the array goes.

    Returns:
        An array of the broadcast shape of `start` and `stop` with a new axis of size `num`; or a
        pair of it and the distance.

    Raises:
        ValueError: `num` is negative, or the shapes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.linspace(0, 1, 5)
        Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = known_int(num, "num argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"linspace: num must be non-negative, got {num}.")
    want = None if dtype is None else dtypes.requested_dtype(dtype, "linspace", stacklevel=3)
    first, last = promote_dtypes_inexact("linspace", start, stop)
    own = first.aval.dtype
    want = own if want is None else want
    work = dtypes.to_inexact_dtype(dtypes.joined_dtype(own, want)) if want in INEXACT else own
    wide = working_dtype(work)
    first, last = convert(first, wide), convert(last, wide)
    shape = common_shape("linspace", first, last)
    out, step = _spaced(broadcast_to(first, shape), broadcast_to(last, shape), num, endpoint, wide)
    if want in INTEGER and own not in INTEGER:
        out = lax.floor(out)
    out = convert(_moved_axis(out, axis), want)
    out = out if device is None else place(out, device, None)
    if not retstep:
        return out
    if not is_symbolic_shape((num,)) and num <= endpoint:  # there is no neighbour
        return out, number(math.nan, work)
    return out, convert(step, work)


def _spaced_openly(first, last, num, endpoint: bool, dtype):
    """As `_spaced`, for a symbolic number of numbers, which may be 1."""
    shape, real = first.aval.shape, dtypes.real_dtype(dtype)
    step = lax.div(lax.sub(last, first), number_of(num - 1 if endpoint else num, dtype))
    places = lax.iota(real, num)
    t = lax.div(places, lax.max(number_of(num - 1 if endpoint else num, real), number(1.0, real)))
    t = convert(lax.reshape(t, (num, *(1,) * len(shape))), dtype)
    head, tail = (lax.reshape(v, (1, *shape)) for v in (first, last))
    out = lax.add(lax.mul(head, lax.sub(number(1.0, dtype), t)), lax.mul(tail, t))
    return (where(lax.eq(t, number(1.0, dtype)), tail, out) if endpoint else out), step


def _spaced(first, last, num: int, endpoint: bool, dtype):
    """The evenly spaced numbers along a new first axis, and their distance."""
    shape = first.aval.shape
    parts = num - 1 if endpoint else num
    if is_symbolic_shape((num,)):
        return _spaced_openly(first, last, num, endpoint, dtype)
    if num > 1:
        gap = number(float(parts), dtype)
        step = lax.div(lax.sub(last, first), gap)
        rows = num - 1 if endpoint else num
        t = lax.div(lax.iota(dtypes.real_dtype(dtype), rows), number(float(parts), dtypes.real_dtype(dtype)))
        t = convert(lax.reshape(t, (rows, *(1,) * len(shape))), dtype)
        head, tail = (lax.reshape(v, (1, *shape)) for v in (first, last))
        out = lax.add(lax.mul(head, lax.sub(number(1.0, dtype), t)), lax.mul(tail, t))
        if endpoint:
            out = lax.concatenate([out, tail], 0)
        return out, step
    if num == 1:
        step = lax.full(shape, number(math.nan, dtype)) if endpoint else lax.sub(last, first)
        return lax.reshape(first, (1, *shape)), step
    return lax.full((0, *shape), number(0.0, dtype)), lax.full(shape, number(math.nan, dtype))


def _moved_axis(x, axis: int):
    """`x` with its first axis moved to `axis`."""
    axis = axis_of(axis, x.aval.ndim)
    if not axis:
        return x
    order = list(range(1, x.aval.ndim))
    order.insert(axis, 0)
    return lax.transpose(x, tuple(order))


@replayed
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers evenly spaced on a logarithmic scale, from `baseˢᵗᵃʳᵗ` to `baseˢᵗᵒᵖ`.

    Args:
        start: the first exponent, or an array of first exponents.
        stop: the last exponent, or an array of last exponents.
        num: how many numbers.
        endpoint: whether `base ** stop` is the last number.
        base: the base of the powers.
        dtype: the dtype; by default that of the arguments, made floating.
        axis: the place of the new axis, if `start` and `stop` are arrays.

    Returns:
        An array of the broadcast shape of `start` and `stop` with a new axis of size `num`.

    Raises:
        ValueError: `num` is negative, or the shapes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.logspace(0, 2, 3)
        Array([  1.,  10., 100.], dtype=float32)
    """
    want = None if dtype is None else dtypes.requested_dtype(dtype, "logspace", stacklevel=3)
    # The powers are computed in the dtype asked for.
    inner = want if want in INEXACT else None
    exponents = linspace(start, stop, num, endpoint=endpoint, dtype=inner, axis=axis)
    out = power(base, exponents)
    return out if want is None else convert(out, want)


@replayed
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before it.

    Args:
        start: the first number, or an array of first numbers.
        stop: the last number, or an array of last numbers; no number may be zero.
        num: how many numbers.
        endpoint: whether `stop` is the last number.
        dtype: the dtype; by default that of the arguments, made floating.
        axis: the place of the new axis, if `start` and `stop` are arrays.

    Returns:
        An array of the broadcast shape of `start` and `stop` with a new axis of size `num`.

    Raises:
        ValueError: `num` is negative, or the shapes do not broadcast.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.geomspace(1, 100, 3)
        Array([  1.,  10., 100.], dtype=float32)
    """
    want = None if dtype is None else dtypes.requested_dtype(dtype, "geomspace", stacklevel=3)
    first, last = promote_dtypes_inexact("geomspace", start, stop)
    shape = common_shape("geomspace", first, last)
    dtype = first.aval.dtype
    first, last = (convert(broadcast_to(v, shape), dtype) for v in (first, last))
    one = number(1.0, dtype)
    if dtype in COMPLEX:
        # After scaling, the first number is positive and real, where log has no branch cut.
        scale = lax.sign(first)
    else:
        both = lax.bitwise_and(lax.lt(first, number(0.0, dtype)), lax.lt(last, number(0.0, dtype)))
        scale = where(both, number(-1.0, dtype), one)
    first, last = lax.div(first, scale), lax.div(last, scale)
    out = logspace(log10(first), log10(last), num, endpoint, 10.0, None, 0)
    rest = lax.slice_in_dim(out, 1, None) if num else out
    head = lax.reshape(first, (1, *shape))
    if num > 1 and endpoint:
        rest = lax.concatenate([lax.slice_in_dim(out, 1, num - 1), lax.reshape(last, (1, *shape))], 0)
    out = lax.concatenate([head, rest], 0) if num else out
    out = _moved_axis(lax.mul(broadcast_to(lax.reshape(scale, (1, *scale.aval.shape)), out.aval.shape), out), axis)
    return out if want is None else convert(out, want)
