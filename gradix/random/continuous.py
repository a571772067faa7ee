"""Continuous distributions that are drawn by transforming uniform and normal numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from gradix import lax
from gradix._api.constraints import divided
from gradix._base import config
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.random.draws import (
    converted,
    float_dtype,
    number,
    of_one_rank,
    parameter,
    parameter_shape,
    sampler,
    shape_of,
    spread,
)
from gradix.random.floats import after_minus_one, draw_normal, draw_uniform, split_keys
from gradix.random.keys import take_key
from gradix.random.parametric import drawn

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

    class _Standard(Protocol):
        """What the functions made by `_standard` take."""

        def __call__(
            self,
            key: KeyLike,
            shape: Shape = (),
            dtype: DTypeLike | None = None,
            *,
            out_sharding: NamedSharding | PartitionSpec | None = None,
        ) -> Array: ...


_options = config.state


def _standard(draw, name: str, summary: str) -> _Standard:
    """The public function of a distribution without parameters."""

    def function(
        key: KeyLike,
        shape: Shape = (),
        dtype: DTypeLike | None = None,
        *,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array:
        if out_sharding is not None:
            return divided(function, out_sharding, key, shape, dtype)
        dtype, shape = float_dtype(name, dtype), shape_of(name, shape)
        return draw(take_key(name, key), shape=shape, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        An array of the given shape and dtype.

    Raises:
        ValueError: `dtype` is not floating, or `shape` is negative.

    Example:
        >>> from gradix import random
        >>> random.{name}(random.key(0), (3,)).shape
        (3,)
    """
    return function


def _unit(key, shape, dtype):
    return draw_uniform(key, number(0, dtype), number(1, dtype), shape=shape, dtype=dtype)


def _tiny(dtype):
    return number(float(dtypes.finfo(dtype).tiny), dtype)


# -- without parameters ----------------------------------------------------------------------------


@sampler
def _exponential(key, *, shape, dtype):
    return lax.neg(lax.log1p(lax.neg(_unit(key, shape, dtype))))


@sampler
def _laplace(key, *, shape, dtype):
    u = draw_uniform(key, after_minus_one(dtype), number(1, dtype), shape=shape, dtype=dtype)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@sampler
def _logistic(key, *, shape, dtype):
    x = draw_uniform(key, _tiny(dtype), number(1, dtype), shape=shape, dtype=dtype)
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


@sampler
def _cauchy(key, *, shape, dtype):
    u = draw_uniform(key, number(float(dtypes.finfo(dtype).eps), dtype), number(1, dtype), shape=shape, dtype=dtype)
    return lax.tan(lax.mul(number(math.pi, dtype), lax.sub(u, number(0.5, dtype))))


@sampler
def _maxwell(key, *, shape, dtype):
    x = draw_normal(key, shape=(*shape, 3), dtype=dtype)
    return lax.sqrt(lax.reduce_sum(lax.mul(x, x), (len(shape),)))


exponential = _standard(_exponential, "exponential", "Exponential random numbers, with density e⁻ˣ for x ≥ 0.")
laplace = _standard(_laplace, "laplace", "Laplace random numbers, with density e^(-|x|) / 2.")
logistic = _standard(_logistic, "logistic", "Logistic random numbers, with density e⁻ˣ / (1 + e⁻ˣ)².")
cauchy = _standard(_cauchy, "cauchy", "Cauchy random numbers, with density 1 / (π (1 + x²)).")
maxwell = _standard(_maxwell, "maxwell", "Maxwell random numbers, the lengths of standard normal vectors of size 3.")


def gumbel(
    key: KeyLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Gumbel random numbers, with density exp(-x - e⁻ˣ).

    Args:
        key: a key, typed or raw.
        shape: the shape of the result.
        dtype: a floating dtype; the default one if None.
        mode: "low" (the default) takes one word of random bits for a number, "high" or "highest"
            two, which gives exact tails.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `mode` is unknown, or `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.gumbel(random.key(0), (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(gumbel, out_sharding, key, shape, dtype, mode)
    dtype, shape = float_dtype("gumbel", dtype), shape_of("gumbel", shape)
    return draw_gumbel(take_key("gumbel", key), shape=shape, dtype=dtype, mode=gumbel_mode(mode))


def gumbel_mode(mode: str | None) -> str:
    """The mode of Gumbel numbers, "high" or "low"; None is the one of the configuration."""
    if mode is None:
        return "high" if _options.jax_high_dynamic_range_gumbel else "low"
    if mode not in ("highest", "high", "low"):
        raise ValueError(f"gumbel: mode must be 'low', 'high', 'highest' or None, got {mode!r}.")
    return "low" if mode == "low" else "high"


@sampler
def _gumbel(key, *, shape, dtype, mode):
    one, tiny = number(1, dtype), _tiny(dtype)
    if mode == "low":
        x = draw_uniform(key, tiny, one, shape=shape, dtype=dtype)
        return lax.neg(lax.log(lax.neg(lax.log(x))))
    high, low = halves(_unit(key, (2, *shape), dtype))
    eps = number(float(dtypes.finfo(dtype).eps), dtype)
    fine = lax.add(lax.add(high, lax.mul(eps, low)), tiny)
    x = lax.select_n(lax.ge(high, number(0.5, dtype)), fine, high)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))


draw_gumbel = _gumbel


def halves(x):
    """The two parts of an array whose first axis has size 2."""
    return [lax.squeeze(lax.slice_in_dim(x, i, i + 1), (0,)) for i in (0, 1)]


# -- with parameters -------------------------------------------------------------------------------


def lognormal(
    key: KeyLike,
    sigma: ArrayLike = 1.0,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Log-normal random numbers, exp(sigma · x) for standard normal x.

    Args:
        key: a key, typed or raw.
        sigma: the standard deviation of the logarithm, a number or an array.
        shape: the shape of the result; by default that of `sigma`.
        dtype: a floating or complex dtype; the default floating one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `sigma` does not broadcast to `shape`, or `dtype` is an integer one.

    Example:
        >>> from gradix import random
        >>> random.lognormal(random.key(0), 0.5, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(lognormal, out_sharding, key, sigma, shape, dtype)
    return drawn(_lognormal, "lognormal", key, (sigma,), shape, dtype, dtypes.INEXACT, "float or complex")


@sampler
def _lognormal(key, sigma, *, shape, dtype):
    return lax.exp(lax.mul(draw_normal(key, shape=shape, dtype=dtype), spread(sigma, dtype, shape)))


def pareto(
    key: KeyLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Pareto random numbers, with density b / x^(b + 1) for x ≥ 1.

    Args:
        key: a key, typed or raw.
        b: the exponent, a number or an array.
        shape: the shape of the result; by default that of `b`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `b` does not broadcast to `shape`, or `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.pareto(random.key(0), 2.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(pareto, out_sharding, key, b, shape, dtype)
    return drawn(_pareto, "pareto", key, (b,), shape, dtype)


@sampler
def _pareto(key, b, *, shape, dtype):
    return lax.exp(lax.div(_exponential(key, shape=shape, dtype=dtype), converted(b, dtype, shape)))


def rayleigh(
    key: KeyLike,
    scale: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Rayleigh random numbers, with density x / scale² · exp(-x² / (2 scale²)).

    Args:
        key: a key, typed or raw.
        scale: the scale, a number or an array.
        shape: the shape of the result; by default that of `scale`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `scale` does not broadcast to `shape`, or `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.rayleigh(random.key(0), 1.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(rayleigh, out_sharding, key, scale, shape, dtype)
    return drawn(_rayleigh, "rayleigh", key, (scale,), shape, dtype)


@sampler
def _rayleigh(key, scale, *, shape, dtype):
    u = _unit(key, shape, dtype)
    return lax.mul(spread(scale, dtype, shape), lax.sqrt(lax.mul(lax.log(u), number(-2, dtype))))


def weibull_min(
    key: KeyLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Weibull random numbers, scale · x^(1 / concentration) for exponential x.

    Args:
        key: a key, typed or raw.
        scale, concentration: numbers or arrays, which broadcast with the exponential numbers.
        shape: the shape of the exponential numbers.
        dtype: a floating dtype; the default one if None. The result has a wider one if parameters
            do.

    Returns:
        An array of the shape to which `shape` and the parameters broadcast.

    Example:
        >>> from gradix import random
        >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).shape
        (3,)
    """
    dtype = float_dtype("weibull_min", dtype)
    scale, concentration = parameter("weibull_min", scale), parameter("weibull_min", concentration)
    return _weibull_min(
        take_key("weibull_min", key), scale, concentration, shape=shape_of("weibull_min", shape), dtype=dtype
    )


@sampler
def _weibull_min(key, scale, concentration, *, shape, dtype):
    x, power, scale = of_one_rank(_exponential(key, shape=shape, dtype=dtype), 1.0 / concentration, scale)
    return x**power * scale


def wald(
    key: KeyLike,
    mean: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Wald (inverse Gaussian) random numbers with a given mean and scale 1.

    The method is that of Michael, Schucany and Haas (1976).

    Args:
        key: a key, typed or raw.
        mean: the mean, a positive number or an array.
        shape: the shape of the result; by default that of `mean`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `mean` does not broadcast to `shape`, or `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.wald(random.key(0), 1.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(wald, out_sharding, key, mean, shape, dtype)
    return drawn(_wald, "wald", key, (mean,), shape, dtype)


@sampler
def _wald(key, mean, *, shape, dtype):
    normal_key, uniform_key = split_keys(key, 2)
    mean = spread(mean, dtype, shape)
    v = draw_normal(normal_key, shape=shape, dtype=dtype)
    z = _unit(uniform_key, shape, dtype)
    two = number(2, dtype)
    y, squared = lax.integer_pow(v, 2), lax.integer_pow(mean, 2)
    root = lax.sqrt(lax.add(lax.mul(lax.mul(number(4, dtype), mean), y), lax.mul(squared, lax.integer_pow(y, 2))))
    x = lax.sub(lax.add(mean, lax.div(lax.mul(squared, y), two)), lax.mul(lax.div(mean, two), root))
    return lax.select_n(lax.le(z, lax.div(mean, lax.add(mean, x))), lax.div(squared, x), x)


def triangular(
    key: KeyLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Random numbers in [left, right] whose density is a triangle with its peak at `mode`.

    Args:
        key: a key, typed or raw.
        left, mode, right: the ends and the place of the peak, numbers or arrays.
        shape: the shape of the result; by default the one to which the parameters broadcast.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: the parameters do not broadcast to `shape`, or `dtype` is not floating.

    Example:
        >>> from gradix import random
        >>> random.triangular(random.key(0), 0.0, 0.5, 1.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(triangular, out_sharding, key, left, mode, right, shape, dtype)
    return drawn(_triangular, "triangular", key, (left, mode, right), shape, dtype)


@sampler
def _triangular(key, left, mode, right, *, shape, dtype):
    left, mode, right = [spread(p, dtype, shape) for p in (left, mode, right)]
    width, rise, fall = lax.sub(right, left), lax.sub(mode, left), lax.sub(right, mode)
    u = _unit(key, shape, dtype)
    below = lax.add(left, lax.sqrt(lax.mul(lax.mul(u, width), rise)))
    rest = lax.mul(lax.sub(number(1, dtype), u), width)
    above = lax.sub(right, lax.sqrt(lax.mul(rest, fall)))
    return lax.select_n(lax.lt(u, lax.div(rise, width)), above, below)


def double_sided_maxwell(
    key: KeyLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None
) -> Array:
    """Random numbers loc + scale · s · x, for Maxwell numbers x and random signs s.

    Args:
        key: a key, typed or raw.
        loc, scale: the center and the scale, numbers or arrays.
        shape: the shape of the draws for each pair of `loc` and `scale`; by default the one to
            which they broadcast.
        dtype: a floating dtype; the default one if None. The result has a wider one if parameters
            do.

    Returns:
        An array of this shape, followed by the one to which the parameters broadcast.

    Example:
        >>> from gradix import random
        >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (3,)).shape
        (3,)
    """
    name = "double_sided_maxwell"
    dtype, loc, scale = float_dtype(name, dtype), parameter(name, loc), parameter(name, scale)
    common = parameter_shape(name, None, loc, scale)
    shape = (shape_of(name, shape) or common) + common
    return _double_sided_maxwell(take_key(name, key), loc, scale, shape=shape, dtype=dtype)


@sampler
def _double_sided_maxwell(key, loc, scale, *, shape, dtype):
    size_key, sign_key = split_keys(key, 2)
    size = _maxwell(size_key, shape=shape, dtype=dtype)
    toss = dtypes.python_scalar_dtype(float)
    heads = lax.lt(_unit(sign_key, shape, toss), number(0.5, toss))
    sign = lax.sub(lax.mul(number(2, dtype), lax.convert_element_type(heads, dtype)), number(1, dtype))
    x, scale, loc = of_one_rank(lax.mul(sign, size), scale, loc)
    return x * scale + loc
