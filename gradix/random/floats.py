"""Random bits, uniform floats, and the normal distributions."""

from __future__ import annotations

import functools
from math import isinf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import ml_dtypes
import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_number
from gradix._core.aval import make_aval
from gradix._core.key_flow import accounted
from gradix._core.operators import Array
from gradix._ops.random.random import generator_of, random_bits, random_bits_p, random_split
from gradix.random.draws import QUICK, float_dtype, number, on_host, parameter, raise_rank, sampler, shape_of
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_F32, _F64 = np.dtype("float32"), np.dtype("float64")


# -- bits ------------------------------------------------------------------------------------------


def bits(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform random unsigned integers: each bit is 0 or 1 with equal probability.

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: uint8, uint16, uint32 or uint64; the default unsigned dtype if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not an unsigned integer dtype.

    Example:
        >>> from gradix import random
        >>> random.bits(random.key(42), (2,), "uint8")
        Array([162, 217], dtype=uint8)
    """
    if out_sharding is not None:
        return divided(bits, out_sharding, key, shape, dtype)
    dtype = (
        dtypes.requested_dtype("uint64" if dtypes.python_scalar_dtype(int).itemsize == 8 else "uint32")
        if dtype is None
        else dtypes.requested_dtype(dtype, "bits")
    )
    if dtype not in dtypes.UNSIGNED:
        raise ValueError(
            f"bits: dtype must be an unsigned int dtype, got {dtypes.dtype_name(dtype)}. Use "
            "random.randint for integers in a range."
        )
    shape = shape_of("bits", shape)
    return accounted(random_bits, take_key("bits", key), 8 * dtype.itemsize, shape)


# -- uniform ---------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """How uniform floats are made of bits: the mantissa of a number in [1, 2), minus 1."""

    bit_width: int
    words: np.dtype
    shift: np.ndarray
    one_bits: np.ndarray
    one: np.ndarray


_layouts: dict[np.dtype, _Layout] = {}


def _layout(dtype) -> _Layout:
    found = _layouts.get(dtype)
    if found is None:
        info = ml_dtypes.finfo(dtype)
        width = 8 if info.nmant < 8 else info.bits
        words = np.dtype(f"uint{info.bits}")
        one = np.asarray(1, dtype)
        found = _layouts[dtype] = _Layout(width, words, np.asarray(width - info.nmant, words), one.view(words), one)
    return found


_FEW = 1 << 8  # so many bounds are looked at
_ZERO, _ONE = 0.0, 1.0  # These are the default bounds, which are recognised by identity.


def uniform(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = _ZERO,
    maxval: ArrayLike = _ONE,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Uniform random numbers in [minval, maxval).

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: a floating dtype; the default one if None.
        minval, maxval: the bounds, numbers or arrays that broadcast to `shape`. If this is (), bounds
            with axes of size 1 give these to the result.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating.
        TypeError: a bound does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.uniform(random.key(42), (3,))
        Array([0.48870957, 0.6797972 , 0.6162715 ], dtype=float32)
        >>> random.uniform(random.key(42), (1000,), minval=-1.0, maxval=3.0).mean().round(1)
        Array(1.1, dtype=float32)

    See also:
        `random.randint`, for integers; `random.normal`, `random.bernoulli`, `random.split`.
    """
    if out_sharding is not None:
        return divided(uniform, out_sharding, key, shape, dtype, minval, maxval)
    dtype = float_dtype("uniform", dtype)
    shape = shape_of("uniform", shape)
    key = take_key("uniform", key)
    if minval is _ZERO and maxval is _ONE:
        return draw_uniform(key, minval, maxval, shape=shape, dtype=dtype)
    minval, maxval = parameter("uniform", minval), parameter("uniform", maxval)
    bounds = _bounds(minval.aval.shape, maxval.aval.shape, shape)
    if bounds != shape:
        flat = uniform(key, shape, dtype, lax.reshape(minval, ()), lax.reshape(maxval, ()))
        return lax.reshape(flat, bounds)
    draw = _uniform_of_any_range if _may_overflow(minval, maxval, dtype) else draw_uniform
    return draw(key, minval, maxval, shape=shape, dtype=dtype)


def _may_overflow(low, high, dtype) -> bool:
    """Whether bounds are further apart than the largest number, or too many, or not known."""
    if any(type(x) is ArrayImpl and x.aval.size > _FEW for x in (low, high)):
        return True
    low, high = _host_bound(low, dtype), _host_bound(high, dtype)
    if low is None or high is None:
        return True
    with np.errstate(all="ignore"):
        return bool(np.isinf(np.asarray(high, dtype) - np.asarray(low, dtype)).any())


def _bounds(low: tuple, high: tuple, shape: tuple) -> tuple:
    """The shape of numbers of this shape between bounds; that of a number may have axes of size 1."""
    for name, own in (("minval", low), ("maxval", high)):
        fits = len(own) <= len(shape) and all(m in (1, n) for m, n in zip(own[::-1], shape[::-1]))
        if not fits and (shape or any(m != 1 for m in own)):
            raise TypeError(
                f"uniform got incompatible shapes for broadcasting: {name} of shape {own} does not "
                f"broadcast to shape={shape}. Give shape={own}, or reshape {name}."
            )
    return shape or (1,) * max(len(low), len(high))


@functools.partial(sampler, quick=QUICK)
def _uniform(key, minval, maxval, *, shape, dtype):
    if on_host(key):
        low, high = _host_bound(minval, dtype), _host_bound(maxval, dtype)
        if low is not None and high is not None:
            return _host_uniform(key, low, high, shape, dtype)
    low = raise_rank(lax.convert_element_type(minval, dtype), len(shape))
    high = raise_rank(lax.convert_element_type(maxval, dtype), len(shape))
    floats = floats_of(lambda width: random_bits(key, width, shape), dtype)
    return lax.max(low, lax.add(lax.mul(floats, lax.sub(high, low)), low))


@sampler
def _uniform_of_any_range(key, minval, maxval, *, shape, dtype):
    """A range that overflows is drawn at half its size; else the factors are 1, which is exact."""
    low = raise_rank(lax.convert_element_type(minval, dtype), len(shape))
    high = raise_rank(lax.convert_element_type(maxval, dtype), len(shape))
    floats = floats_of(lambda width: random_bits(key, width, shape), dtype)
    wide = lax.eq(lax.abs(lax.sub(high, low)), number(np.inf, dtype))
    shrink = lax.select(wide, lax.full_like(wide, 0.5, dtype), lax.full_like(wide, 1, dtype))
    small = lax.mul(low, shrink)
    drawn = lax.add(lax.mul(floats, lax.sub(lax.mul(high, shrink), small)), small)
    return lax.max(low, lax.mul(drawn, lax.div(number(1, dtype), shrink)))


def floats_of(draw, dtype, low=None):
    """Uniform floats in [0, 1), or [low, 1), from the bits `draw(bit_width)`."""
    width, words, shift, one_bits, one = _layout(dtype)
    drawn = draw(width)
    if drawn.aval.dtype != words:
        drawn = lax.convert_element_type(drawn, words)
    drawn = lax.bitwise_or(lax.shift_right_logical(drawn, _scalar(shift)), _scalar(one_bits))
    floats = lax.sub(lax.bitcast_convert_type(drawn, dtype), _scalar(one))
    if low is None:
        return floats
    return lax.max(low, lax.add(lax.mul(floats, lax.sub(_scalar(one), low)), low))


draw_uniform = _uniform


def _scalar(x: np.ndarray) -> ArrayImpl:
    return as_number(ArrayImpl(x, make_aval((), x.dtype)))


def _host_bound(x, dtype) -> np.ndarray | None:
    if type(x) is float:
        return x  # type: ignore[return-value]
    return np.asarray(x.host, dtype) if type(x) is ArrayImpl else None


def _host_uniform(key, low, high, shape, dtype) -> ArrayImpl:
    width, words, shift, one_bits, one = _layout(dtype)
    drawn = random_bits_p.host(key.host, bit_width=width, shape=shape, **generator_of(key))
    if drawn.dtype != words:
        drawn = drawn.astype(words)
    np.right_shift(drawn, shift, out=drawn)
    np.bitwise_or(drawn, one_bits, out=drawn)
    floats = drawn.view(dtype)
    np.subtract(floats, one, out=floats)
    if low is not _ZERO or high is not _ONE:
        with np.errstate(all="ignore"):
            low, high = np.asarray(low, dtype), np.asarray(high, dtype)
            floats = np.asarray(np.maximum(low, _within(floats, low, high)), dtype)
    return ArrayImpl(floats, make_aval(shape, dtype))


def _within(x, low, high):
    span = high - low
    if not (isinf(span) if span.ndim == 0 else np.isinf(span).any()):
        return _scaled(x, span, low)
    shrink = np.where(np.isinf(span), 0.5, 1).astype(x.dtype)
    return _scaled(x, high * shrink - low * shrink, low * shrink) / shrink


def _scaled(x, span, low):
    """x·span + low, rounded once, as in compiled programs, where it is fused."""
    if x.dtype == _F64:
        return _fused64(x, span, low)
    if x.dtype == _F32:
        return (np.multiply(x, span, dtype=_F64) + low).astype(_F32)
    return x * span + low


def _fused64(x, y, z):
    """x·y + z in float64 with one rounding, by error-free transformations (Dekker 1971)."""
    p = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    low = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
    s = p + z
    t = s - p
    return s + (((p - (s - t)) + (z - t)) + low)


def _halves(x):
    c = 134217729.0 * x  # 2²⁷ + 1
    high = c - (c - x)
    return high, x - high


# -- normal ----------------------------------------------------------------------------------------

_below_one: dict[np.dtype, ArrayImpl] = {}


def after_minus_one(dtype) -> ArrayImpl:
    """The smallest number of `dtype` above -1."""
    found = _below_one.get(dtype)
    if found is None:
        found = _below_one[dtype] = _scalar(np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype))
    return found


def normal(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Standard normal random numbers; complex ones have independent parts of variance 1/2.

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: a floating or complex dtype; the default floating one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is neither floating nor complex.

    Example:
        >>> from gradix import random
        >>> random.normal(random.key(42), (3,))
        Array([-0.02830462,  0.46713185,  0.29570296], dtype=float32)
        >>> random.normal(random.key(42), (2, 2), dtype="bfloat16").dtype
        dtype(bfloat16)

    See also:
        `random.truncated_normal`, `random.multivariate_normal`, `random.uniform`,
        `random.split`.
    """
    if out_sharding is not None:
        return divided(normal, out_sharding, key, shape, dtype)
    dtype = float_dtype("normal", dtype, dtypes.INEXACT, "float or complex")
    shape = shape_of("normal", shape)
    return draw_normal(take_key("normal", key), shape=shape, dtype=dtype)


@sampler
def _normal(key, *, shape, dtype):
    if dtype not in dtypes.COMPLEX:
        return _normal_real(key, shape=shape, dtype=dtype)
    real_key, imag_key = split_keys(key, 2)
    part = dtypes.real_dtype(dtype)
    real = lax.convert_element_type(_normal_real(real_key, shape=shape, dtype=part), dtype)
    imag = lax.convert_element_type(_normal_real(imag_key, shape=shape, dtype=part), dtype)
    return lax.div(lax.add(real, lax.mul(number(1j, dtype), imag)), number(sqrt(2), dtype))


@sampler
def _normal_real(key, *, shape, dtype):
    u = draw_uniform(key, after_minus_one(dtype), number(1, dtype), shape=shape, dtype=dtype)
    return lax.mul(number(sqrt(2), dtype), lax.erf_inv(u))


draw_normal = _normal


def split_keys(key, num: int):
    """A list of new keys, for the parts of one draw."""
    keys = random_split(key, (num,))
    return [lax.squeeze(lax.slice_in_dim(keys, i, i + 1), (0,)) for i in range(num)]
