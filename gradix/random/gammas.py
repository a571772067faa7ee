"""The gamma distribution, and those drawn with it: beta, chi-square, Dirichlet, F, Student's t."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

from gradix import lax
from gradix._api.constraints import divided
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.mapping.custom_batching import custom_vmap
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._ops.random.generators import draws_together
from gradix._ops.random.random import random_bits, random_split
from gradix.random.draws import (
    float_dtype,
    number,
    parameter,
    parameter_shape,
    rejection_sampler,
    shape_of,
    size_of,
    spread,
)
from gradix.random.floats import after_minus_one, draw_normal, floats_of, split_keys
from gradix.random.keys import take_key
from gradix.random.parametric import drawn

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

    class _GammaFunction(Protocol):
        """What the functions made by `_gamma_function` take."""

        def __call__(
            self,
            key: KeyLike,
            a: ArrayLike,
            shape: Shape | None = None,
            dtype: DTypeLike | None = None,
            *,
            out_sharding: NamedSharding | PartitionSpec | None = None,
        ) -> Array: ...


# -- one key for each number -----------------------------------------------------------------------


def lane_keys(keys, num: int):
    """A list of `num` arrays of new keys, one made of each key."""
    new, ndim = random_split(keys, (num,)), keys.aval.ndim
    return [lax.squeeze(lax.slice_in_dim(new, i, i + 1, axis=ndim), (ndim,)) for i in range(num)]


def lane_uniform(keys, dtype, low=None):
    """A uniform number in [low, 1), or by default in [0, 1), drawn with each key."""
    return floats_of(lambda width: random_bits(keys, width, ()), dtype, low)


def lane_normal(keys, dtype):
    """A standard normal number drawn with each key."""
    u = lane_uniform(keys, dtype, after_minus_one(dtype))
    return lax.mul(number(2**0.5, dtype), lax.erf_inv(u))


def repeat_while(cond, body, values):
    """`lax.while_loop`, which runs in Python as long as the values and the condition are known."""
    while state.stage is None and all(type(v) is ArrayImpl for v in values):
        goes_on = cond(values)
        if type(goes_on) is not ArrayImpl:  # The functions hold a tracer.
            break
        if not goes_on:
            return values
        values = body(values)
    return lax.while_loop(cond, body, values)


def is_any(mask):
    """Whether any element of a mask is true."""
    return lax.reduce_or(mask, tuple(range(mask.aval.ndim)))


# -- gamma -----------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _gammas(keys, a, log_space: bool):
    """Gamma numbers of shape `a`, drawn with keys of the shape of `a`, or their logarithms.

    The method is that of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
    variables" (2000): d·V with V = (1 + c·x)³ for normal x is accepted against a uniform number.
    For a < 1, a number for a + 1 is multiplied by u^(1/a) for uniform u (their section 6).
    """
    dtype = a.aval.dtype
    one = number(1, dtype)
    enough = lax.ge(a, one)
    alpha = lax.select_n(enough, lax.add(a, one), a)
    d = lax.sub(alpha, number(1 / 3, dtype))
    c = lax.mul(number(1 / 3, dtype), lax.rsqrt(d))
    keys, boost_keys = lane_keys(keys, 2)
    v = _accepted(keys, c, d)
    u = lane_uniform(boost_keys, dtype)
    if log_space:
        u = lax.log1p(lax.neg(u))
        boost = lax.mul(u, lax.div(one, a))
        no_boost = lax.bitwise_or(enough, lax.eq(u, number(0, dtype)))
        boost = lax.select_n(no_boost, boost, lax.full_like(boost, 0))
        return lax.add(lax.add(lax.log(d), lax.log(v)), boost)
    boost = lax.select_n(enough, lax.pow(lax.sub(one, u), lax.div(one, a)), lax.full_like(a, 1))
    return lax.mul(lax.mul(d, v), boost)


def _accepted(keys, c, d):
    """The V of the first proposal that is accepted, for each key."""
    dtype = d.aval.dtype

    def rejects(values):
        return is_any(values[0])

    def propose(values):
        open_, keys, old = values
        keys, x_keys, u_keys = lane_keys(keys, 3)
        x, v = _positive(open_, x_keys, c)
        square, v = lax.mul(x, x), lax.mul(lax.mul(v, v), v)
        u = lane_uniform(u_keys, dtype)
        squeeze = lax.sub(number(1, dtype), lax.mul(number(0.0331, dtype), lax.mul(square, square)))
        bound = lax.add(
            lax.mul(square, number(0.5, dtype)), lax.mul(d, lax.add(lax.sub(number(1, dtype), v), lax.log(v)))
        )
        again = lax.bitwise_and(lax.ge(u, squeeze), lax.ge(lax.log(u), bound))
        return lax.bitwise_and(open_, again), keys, lax.select_n(open_, old, v)

    return repeat_while(rejects, propose, (lax.full_like(d, True, dtype=bool), keys, lax.full_like(d, 1)))[2]


def _positive(open_, keys, c):
    """A normal x with 1 + c·x > 0, and this number, where `open_` is true."""
    dtype = c.aval.dtype

    def turn(values):
        open_, keys, x, v = values
        keys, x_keys = lane_keys(keys, 2)
        new = lane_normal(x_keys, dtype)
        above = lax.add(number(1, dtype), lax.mul(new, c))
        x, v = lax.select_n(open_, x, new), lax.select_n(open_, v, above)
        return lax.bitwise_and(open_, lax.le(above, number(0, dtype))), keys, x, v

    start = open_, keys, lax.full_like(c, 0), lax.full_like(c, 1)
    return repeat_while(lambda values: is_any(values[0]), turn, start)[2:]


@_gammas.defjvp
def _gammas_jvp(log_space, primals, tangents):
    """Implicit reparameterisation: the number changes with `a` so that its quantile stays."""
    (keys, a), (_, t) = primals, tangents
    drawn = _gammas(keys, a, log_space)
    if not log_space:
        return drawn, lax.mul(t, lax.random_gamma_grad(a, drawn))
    plain = lax.exp(drawn)
    zero = lax.lt(plain, _tiny(plain))
    safe = lax.select_n(zero, plain, lax.full_like(plain, 1))
    # P(a, x) → x^a / Γ(a + 1) for x → 0, and so ∂ log x/∂a = (ψ(a + 1) - log x) / a.
    limit = lax.div(lax.sub(lax.digamma(lax.add(a, number(1, a.aval.dtype))), drawn), a)
    slope = lax.select_n(zero, lax.div(lax.random_gamma_grad(a, safe), safe), limit)
    return drawn, lax.mul(t, slope)


def _tiny(x):
    return number(float(dtypes.finfo(x.aval.dtype).tiny), x.aval.dtype)


@functools.cache
def _one_by_one(log_space: bool):
    """`_gammas` for generators that draw for all keys with the first one.

    The numbers are drawn one after the other, also those of mapped examples.
    """

    @custom_vmap
    def draw(keys, a):
        lanes = random_split(keys, a.aval.shape[keys.aval.ndim :])
        drawn = lax.map(
            lambda lane: _gammas(*lane, log_space), (lax.reshape(lanes, (a.aval.size,)), lax.reshape(a, (a.aval.size,)))
        )
        return lax.reshape(drawn, a.aval.shape)

    @draw.def_vmap
    def _(size, mapped, keys, a):
        return draw(*[x if is_mapped else lax.broadcast(x, (size,)) for x, is_mapped in zip((keys, a), mapped)]), True

    return draw


@rejection_sampler
def draw_gamma(key, a, *, shape, dtype, log_space):
    # One long row lets the loops use vector instructions.
    a = lax.reshape(spread(a, dtype, shape), (size_of(shape),))
    if draws_together(key.aval.dtype):
        return lax.reshape(_one_by_one(log_space)(key, a), shape)
    return lax.reshape(_gammas(random_split(key, a.aval.shape), a, log_space), shape)


def _gamma_function(name: str, log_space: bool, summary: str) -> _GammaFunction:
    def function(
        key: KeyLike,
        a: ArrayLike,
        shape: Shape | None = None,
        dtype: DTypeLike | None = None,
        *,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array:
        if out_sharding is not None:
            return divided(function, out_sharding, key, a, shape, dtype)
        dtype, a = float_dtype(name, dtype), parameter(name, a)
        shape = parameter_shape(name, shape, a)
        return draw_gamma(take_key(name, key), a, shape=shape, dtype=dtype, log_space=log_space)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    The draw has a derivative in `a`, by implicit reparameterisation (Figurnov, Mohamed, Mnih 2018).

    Args:
        key: a key, typed or raw.
        a: the parameter of the distribution, a positive number or an array.
        shape: the shape of the result; by default that of `a`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        An array of the given shape and dtype.

    Raises:
        ValueError: `dtype` is not floating, or `a` does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.{name}(random.key(0), 2.0, (3,)).shape
        (3,)
    """
    return function


gamma = _gamma_function("gamma", False, "Gamma random numbers with scale 1, with density x^(a-1) e⁻ˣ / Γ(a).")
loggamma = _gamma_function("loggamma", True, "The logarithms of gamma random numbers, also where these underflow.")


# -- drawn with gamma numbers ----------------------------------------------------------------------


def beta(
    key: KeyLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Beta random numbers in [0, 1], with density proportional to x^(a-1) (1-x)^(b-1).

    The draw has derivatives in `a` and `b`.

    Args:
        key: a key, typed or raw.
        a, b: the parameters of the distribution, positive numbers or arrays.
        shape: the shape of the result; by default the one to which `a` and `b` broadcast.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating, or `a` and `b` do not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.beta(random.key(0), 2.0, 3.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(beta, out_sharding, key, a, b, shape, dtype)
    return drawn(_beta, "beta", key, (a, b), shape, dtype)


@rejection_sampler
def _beta(key, a, b, *, shape, dtype):
    a_key, b_key = split_keys(key, 2)
    log_a = draw_gamma(a_key, a, shape=shape, dtype=dtype, log_space=True)
    log_b = draw_gamma(b_key, b, shape=shape, dtype=dtype, log_space=True)
    largest = lax.max(log_a, log_b)
    x, y = lax.exp(lax.sub(log_a, largest)), lax.exp(lax.sub(log_b, largest))
    return lax.div(x, lax.add(x, y))


def chisquare(
    key: KeyLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Chi-square random numbers, distributed as sums of `df` squares of standard normal numbers.

    Args:
        key: a key, typed or raw.
        df: the degrees of freedom, a positive number or an array.
        shape: the shape of the result; by default that of `df`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating, or `df` does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.chisquare(random.key(0), 3.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(chisquare, out_sharding, key, df, shape, dtype)
    return drawn(_chisquare, "chisquare", key, (df,), shape, dtype)


@rejection_sampler
def _chisquare(key, df, *, shape, dtype):
    two = number(2, dtype)
    half = lax.div(lax.convert_element_type(df, dtype), two)
    return lax.mul(lax.exp(draw_gamma(key, half, shape=shape, dtype=dtype, log_space=True)), two)


def f(
    key: KeyLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """F random numbers: ratios of two chi-square numbers, each divided by its degrees of freedom.

    Args:
        key: a key, typed or raw.
        dfnum, dfden: the degrees of freedom of numerator and denominator, positive numbers or
            arrays.
        shape: the shape of the result; by default the one to which the degrees broadcast.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating, or the degrees do not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.f(random.key(0), 3.0, 4.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(f, out_sharding, key, dfnum, dfden, shape, dtype)
    return drawn(_f, "f", key, (dfnum, dfden), shape, dtype)


@rejection_sampler
def _f(key, dfnum, dfden, *, shape, dtype):
    below_key, above_key = split_keys(key, 2)
    dfnum, dfden = spread(dfnum, dtype, shape), spread(dfden, dtype, shape)
    above = lax.div(_chisquare(above_key, dfnum, shape=shape, dtype=dtype), dfnum)
    return lax.div(above, lax.div(_chisquare(below_key, dfden, shape=shape, dtype=dtype), dfden))


def t(
    key: KeyLike,
    df: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Student's t random numbers, with density proportional to (1 + x²/df)^(-(df+1)/2).

    Args:
        key: a key, typed or raw.
        df: the degrees of freedom, a positive number or an array.
        shape: the shape of the result; by default that of `df`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Raises:
        ValueError: `dtype` is not floating, or `df` does not broadcast to `shape`.

    Example:
        >>> from gradix import random
        >>> random.t(random.key(0), 3.0, (3,)).shape
        (3,)
    """
    if out_sharding is not None:
        return divided(t, out_sharding, key, df, shape, dtype)
    return drawn(_t, "t", key, (df,), shape, dtype)


@rejection_sampler
def _t(key, df, *, shape, dtype):
    normal_key, gamma_key = split_keys(key, 2)
    half = lax.div(spread(df, dtype, shape), number(2, dtype))
    square = lax.div(half, draw_gamma(gamma_key, half, shape=shape, dtype=dtype, log_space=False))
    return lax.mul(draw_normal(normal_key, shape=shape, dtype=dtype), lax.sqrt(square))


def dirichlet(
    key: KeyLike,
    alpha: ArrayLike,
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """Dirichlet random vectors, whose elements are non-negative and have the sum 1.

    Args:
        key: a key, typed or raw.
        alpha: an array of positive concentrations along the last axis, of shape (..., n).
        shape: the shape of the result without the last axis; by default the other axes of `alpha`.
        dtype: a floating dtype; the default one if None.
        out_sharding: the sharding of the result.

    Returns:
        An array of shape (*shape, n).

    Raises:
        ValueError: `alpha` is a scalar, `dtype` is not floating, or the other axes of `alpha` do
            not broadcast to `shape`.

    Example:
        >>> from gradix import random, numpy as jnp
        >>> random.dirichlet(random.key(0), jnp.ones(3), (2,)).shape
        (2, 3)
    """
    if out_sharding is not None:
        return divided(dirichlet, out_sharding, key, alpha, shape, dtype)
    dtype, alpha = float_dtype("dirichlet", dtype), parameter("dirichlet", alpha)
    own = alpha.aval.shape
    if not own:
        raise ValueError("dirichlet: alpha must have an axis of concentrations (alpha.ndim >= 1), got a scalar.")
    shape = own[:-1] if shape is None else batch_shape("dirichlet", shape, own[:-1], f"alpha of shape {own}")
    return _dirichlet(take_key("dirichlet", key), alpha, shape=(*shape, own[-1]), dtype=dtype)


def batch_shape(name: str, shape, own: tuple, whose: str) -> tuple:
    """The argument `shape` of a draw, checked against the axes `own` of a parameter.

    Raises:
        ValueError: these axes do not broadcast to `shape`.
    """
    shape = shape_of(name, shape)
    if own and (len(own) > len(shape) or any(m not in (1, n) for m, n in zip(own[::-1], shape[::-1]))):
        raise ValueError(
            f"{name}: the axes {own} of {whose} do not broadcast to shape={shape}. Give a shape that ends with {own}."
        )
    return shape


@rejection_sampler
def _dirichlet(key, alpha, *, shape, dtype):
    logs = draw_gamma(key, alpha, shape=shape, dtype=dtype, log_space=True)
    last = len(shape) - 1
    largest = lax.expand_dims(lax.stop_gradient(lax.reduce_max(logs, (last,))), (last,))
    weights = lax.exp(lax.sub(logs, largest))
    return lax.div(weights, lax.expand_dims(lax.reduce_sum(weights, (last,)), (last,)))
