"""The truncated normal distribution, whose tails are drawn by the logarithm of their probability."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from gradix import lax
from gradix._api.constraints import divided
from gradix._core.array import ArrayImpl
from gradix._core.operators import Array
from gradix._ops.basis import broadcast_to
from gradix.random.draws import converted, float_dtype, number, parameter, parameter_shape, raise_rank, sampler
from gradix.random.floats import after_minus_one, draw_uniform
from gradix.random.gammas import is_any
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

# From here outwards probabilities of one dtype are too coarse, by the digits of its mantissa.
_TAIL_FROM = {52: 7.0, 23: 4.0, 10: 2.5, 7: 2.0}
_FRACTIONS = 24  # of the continued fraction, which converges from 2 to the last bit of float32
_NEWTON_STEPS = 4
_FEW = 1 << 8  # so many bounds are looked at


def truncated_normal(
    key: KeyLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Standard normal random numbers that lie in the open interval (lower, upper).

    Args:
        key: a key, typed or raw.
        lower, upper: the bounds, numbers or arrays.
        shape: the shape of the result; by default the one to which the bounds broadcast.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating, or the bounds do not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> x = random.truncated_normal(random.key(0), -1.0, 1.0, (100,))
        >>> bool((abs(x) < 1).all())
        True
    """
    if out_sharding is not None:
        return divided(truncated_normal, out_sharding, key, lower, upper, shape, dtype)
    dtype = float_dtype("truncated_normal", dtype)
    lower, upper = parameter("truncated_normal", lower), parameter("truncated_normal", upper)
    shape = parameter_shape("truncated_normal", shape, lower, upper)
    draw = _draw_with_tails if _may_be_in_tail(lower, upper, dtype) else _truncated_normal
    return draw(take_key("truncated_normal", key), lower, upper, shape=shape, dtype=dtype)


def _tail_from(dtype) -> float:
    return _TAIL_FROM.get(ml_dtypes.finfo(dtype).nmant, 2.0)


def _may_be_in_tail(lower, upper, dtype) -> bool:
    """Whether an interval lies in a tail, or the bounds are not known."""
    if not all(type(x) is ArrayImpl and x.aval.size <= _FEW for x in (lower, upper)):
        return True
    start = _tail_from(dtype)
    low, high = np.asarray(lower.host, np.float64), np.asarray(upper.host, np.float64)
    return bool((low >= start).any() or (high <= -start).any())


@sampler
def _truncated_normal(key, lower, upper, *, shape, dtype):
    lower, upper = converted(lower, dtype, shape), converted(upper, dtype, shape)
    return _between(lower, upper, _by_erf(key, lower, upper, shape, dtype))


@sampler
def _draw_with_tails(key, lower, upper, *, shape, dtype):
    lower, upper = [
        broadcast_to(raise_rank(lax.convert_element_type(x, dtype), len(shape)), shape) for x in (lower, upper)
    ]
    start = _tail_from(dtype)
    above, below = lower >= start, upper <= -start
    tail, one = above | below, lax.full_like(lower, 1)
    near = _by_erf(key, lax.select(tail, -one, lower), lax.select(tail, one, upper), shape, dtype)
    least = lax.select(above, lower, lax.select(below, -upper, one * start))
    most = lax.select(above, upper, lax.select(below, -lower, one * (start + 1)))

    def far():
        u = draw_uniform(key, 0.0, 1.0, shape=shape, dtype=dtype)
        wide = np.float64 if dtype == np.float64 else np.float32
        out = _in_tail(*[lax.convert_element_type(x, wide) for x in (u, least, most)])
        out = lax.convert_element_type(out, dtype)
        return lax.select(above, out, -out)

    distant = lax.cond(is_any(tail), far, lambda: near)
    return _between(lower, upper, lax.select(tail, distant, near))


def _by_erf(key, lower, upper, shape, dtype):
    root = number(sqrt(2), dtype)
    a, b = lax.erf(lax.div(lower, root)), lax.erf(lax.div(upper, root))
    u = draw_uniform(key, a, b, shape=shape, dtype=dtype)
    least = after_minus_one(dtype)  # At ±1, to which sums are rounded, the inverse is infinite.
    return lax.mul(root, lax.erf_inv(lax.clamp(least, u, lax.neg(least))))


def _between(lower, upper, out):
    far = number(inf, out.aval.dtype)
    least = lax.nextafter(lax.stop_gradient(lower), far)
    most = lax.nextafter(lax.stop_gradient(upper), lax.neg(far))
    return lax.min(most, lax.max(least, out))


def _in_tail(u, low, high):
    """The number x of [low, high], for which the share u of the probability is below it.

    It solves `log S(x) - log S(low) = log v`, where `S` is the probability above x and `v` is
    1 - u (1 - S(high) / S(low)).
    """
    low = lax.min(low, lax.full_like(low, float(np.finfo(low.dtype).max) / 4))
    # Beyond that the probability is less than a rounding error, and infinities give NaN.
    high = lax.min(high, low + 60 / low)
    log_v = lax.log1p(u * lax.expm1(_log_share(low, high - low)))
    fixed_low, fixed_log_v = lax.stop_gradient(low), lax.stop_gradient(log_v)
    ahead = -2 * fixed_log_v
    step = ahead / (fixed_low + lax.sqrt(fixed_low * fixed_low + ahead))
    for _ in range(_NEWTON_STEPS):
        step = _improved(step, fixed_low, fixed_log_v)
    # The last step alone has the derivatives: those of the solution.
    return low + _improved(lax.stop_gradient(step), low, log_v)


def _improved(step, low, log_v):
    return step + (_log_share(low, step) - log_v) * lax.stop_gradient(_mills(low + step))


def _log_share(low, step):
    """log (S(low + step) / S(low))."""
    return lax.log(_mills(low + step) / _mills(low)) - step * (low + step / 2)


def _mills(x):
    """S(x) / φ(x), by its continued fraction."""
    value = x
    for n in range(_FRACTIONS, 0, -1):
        value = x + n / value
    return 1 / value
