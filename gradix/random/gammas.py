"""The gamma distribution, and those made of it: beta, chi-square, Dirichlet, F and Student's t."""

from __future__ import annotations

import functools
from collections.abc import Callable

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

# -- one key for each number -----------------------------------------------------------------------


def lane_keys(keys, num: int):
    """`num` new keys from each key."""
    new, ndim = random_split(keys, (num,)), keys.aval.ndim
    return [lax.squeeze(lax.slice_in_dim(new, i, i + 1, axis=ndim), (ndim,)) for i in range(num)]


def lane_uniform(keys, dtype, low=None):
    """A uniform number in [low, 1) from each key; from [0, 1) by default."""
    return floats_of(lambda width: random_bits(keys, width, ()), dtype, low)


def lane_normal(keys, dtype):
    """A standard normal number from each key."""
    u = lane_uniform(keys, dtype, after_minus_one(dtype))
    return lax.mul(number(2**0.5, dtype), lax.erf_inv(u))


def repeat_while(cond, body, values):
    """`lax.while_loop`, stepped in Python as long as the values are known, and whether it goes on is."""
    while state.stage is None and all(type(v) is ArrayImpl for v in values):
        goes_on = cond(values)
        if type(goes_on) is not ArrayImpl:  # the functions hold a tracer
            break
        if not goes_on:
            return values
        values = body(values)
    return lax.while_loop(cond, body, values)


def is_any(mask):
    """Whether any element holds."""
    return lax.reduce_or(mask, tuple(range(mask.aval.ndim)))


# -- gamma -----------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _gammas(keys, a, log_space: bool):
    """Gamma numbers of shape `a` from keys of the shape of `a`, or their logarithms.

    G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000): d·V with
    V = (1 + c·x)³ for normal x, accepted against a uniform number. Below a = 1 a number of shape a
    + 1 times u^(1/a), their section 6.
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
    """V of the first proposal accepted, for each key."""
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
            lax.mul(square, number(0.5, dtype)),
            lax.mul(d, lax.add(lax.sub(number(1, dtype), v), lax.log(v))),
        )
        again = lax.bitwise_and(lax.ge(u, squeeze), lax.ge(lax.log(u), bound))
        return lax.bitwise_and(open_, again), keys, lax.select_n(open_, old, v)

    return repeat_while(
        rejects, propose, (lax.full_like(d, True, dtype=bool), keys, lax.full_like(d, 1))
    )[2]


def _positive(open_, keys, c):
    """A normal x with 1 + c·x > 0, and that number; where `open_` holds."""
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
    """Implicit reparameterisation: the number moves with `a` so that its place in the distribution stays."""
    (keys, a), (_, t) = primals, tangents
    drawn = _gammas(keys, a, log_space)
    if not log_space:
        return drawn, lax.mul(t, lax.random_gamma_grad(a, drawn))
    plain = lax.exp(drawn)
    zero = lax.lt(plain, _tiny(plain))
    safe = lax.select_n(zero, plain, lax.full_like(plain, 1))
    # P(a, x) → x^a / Γ(a + 1) for x → 0, so ∂ log x/∂a = (ψ(a + 1) - log x) / a
    limit = lax.div(lax.sub(lax.digamma(lax.add(a, number(1, a.aval.dtype))), drawn), a)
    slope = lax.select_n(zero, lax.div(lax.random_gamma_grad(a, safe), safe), limit)
    return drawn, lax.mul(t, slope)


def _tiny(x):
    return number(float(dtypes.finfo(x.aval.dtype).tiny), x.aval.dtype)


@functools.cache
def _one_by_one(log_space: bool):
    """`_gammas` of keys of which the first would draw for all: one after another, also those of all mapped examples."""

    @custom_vmap
    def draw(keys, a):
        lanes = random_split(keys, a.aval.shape[keys.aval.ndim :])
        drawn = lax.map(
            lambda lane: _gammas(*lane, log_space),
            (lax.reshape(lanes, (a.aval.size,)), lax.reshape(a, (a.aval.size,))),
        )
        return lax.reshape(drawn, a.aval.shape)

    @draw.def_vmap
    def _(size, mapped, keys, a):
        return draw(
            *[
                x if is_mapped else lax.broadcast(x, (size,))
                for x, is_mapped in zip((keys, a), mapped)
            ]
        ), True

    return draw


@rejection_sampler
def _gamma(key, a, *, shape, dtype, log_space):
    # loops over short rows would have no vectors
    a = lax.reshape(spread(a, dtype, shape), (size_of(shape),))
    if draws_together(key.aval.dtype):
        return lax.reshape(_one_by_one(log_space)(key, a), shape)
    return lax.reshape(_gammas(random_split(key, a.aval.shape), a, log_space), shape)


draw_gamma = _gamma


def _gamma_function(name: str, log_space: bool, summary: str) -> Callable[..., Array]:
    def function(key, a, shape=None, dtype=None, *, out_sharding=None):
        if out_sharding is not None:
            return divided(function, out_sharding, key, a, shape, dtype)
        dtype, a = float_dtype(name, dtype), parameter(name, a)
        shape = parameter_shape(name, shape, a)
        return _gamma(take_key(name, key), a, shape=shape, dtype=dtype, log_space=log_space)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    The draw has a derivative in `a`, by implicit reparameterisation (Figurnov, Mohamed and Mnih 2018).

    Args:
        key: a key, typed or raw.
        a: the shape of the distribution, a positive number or an array.
        shape: the result's shape; that of `a` by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `dtype` is no float, or `shape` does not go with that of `a`.

    Example:
        >>> from gradix import random
        >>> random.{name}(random.key(0), 2.0, (3,)).shape
        (3,)
    """
    return function


gamma = _gamma_function(
    "gamma", False, "Gamma random numbers of scale 1, with density x^(a-1) e⁻ˣ / Γ(a)."
)
loggamma = _gamma_function(
    "loggamma", True, "The logarithms of gamma random numbers, exact where those underflow."
)


# -- made of gamma numbers -------------------------------------------------------------------------


def beta(key, a, b, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Beta random numbers, in [0, 1], with density proportional to x^(a-1) (1-x)^(b-1).

    The draw has derivatives in `a` and `b`.

    Args:
        key: a key, typed or raw.
        a, b: the shape of the distribution, positive numbers or arrays.
        shape: the result's shape; the common shape of `a` and `b` by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `dtype` is no float, or `shape` does not go with those of `a` and `b`.

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
    log_a = _gamma(a_key, a, shape=shape, dtype=dtype, log_space=True)
    log_b = _gamma(b_key, b, shape=shape, dtype=dtype, log_space=True)
    largest = lax.max(log_a, log_b)
    x, y = lax.exp(lax.sub(log_a, largest)), lax.exp(lax.sub(log_b, largest))
    return lax.div(x, lax.add(x, y))


def chisquare(key, df, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Chi-square random numbers: the sum of `df` squares of standard normal numbers.

    Args:
        key: a key, typed or raw.
        df: the degrees of freedom, a positive number or an array.
        shape: the result's shape; that of `df` by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `dtype` is no float, or `shape` does not go with that of `df`.

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
    return lax.mul(lax.exp(_gamma(key, half, shape=shape, dtype=dtype, log_space=True)), two)


def f(key, dfnum, dfden, shape=None, dtype=None, *, out_sharding=None):
    """F random numbers: the ratio of two chi-square numbers, each over its degrees of freedom.

    Args:
        key: a key, typed or raw.
        dfnum, dfden: the degrees of freedom above and below, positive numbers or arrays.
        shape: the result's shape; the common shape of the degrees by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `dtype` is no float, or `shape` does not go with those of the degrees.

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


def t(key, df, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Student's t random numbers.

    Args:
        key: a key, typed or raw.
        df: the degrees of freedom, a positive number or an array.
        shape: the result's shape; that of `df` by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `dtype` is no float, or `shape` does not go with that of `df`.

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
    square = lax.div(half, _gamma(gamma_key, half, shape=shape, dtype=dtype, log_space=False))
    return lax.mul(draw_normal(normal_key, shape=shape, dtype=dtype), lax.sqrt(square))


def dirichlet(key, alpha, shape=None, dtype=None, *, out_sharding=None) -> Array:
    """Dirichlet random vectors: not negative, of sum 1 along the last axis.

    Args:
        key: a key, typed or raw.
        alpha: the concentrations, positive, along the last axis.
        shape: the result's shape without that axis; the other axes of `alpha` by default.
        dtype: a float dtype; the default float by default.

    Raises:
        ValueError: `alpha` has no axis, `dtype` is no float, or `shape` does not go with that of
            `alpha`.

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
        raise ValueError(
            "dirichlet requires alpha.ndim >= 1, got a scalar: give the concentrations as a vector."
        )
    shape = (
        own[:-1]
        if shape is None
        else batch_shape("dirichlet", shape, own[:-1], f"alpha of shape {own}")
    )
    return _dirichlet(take_key("dirichlet", key), alpha, shape=(*shape, own[-1]), dtype=dtype)


def batch_shape(name: str, shape, own: tuple, whose: str) -> tuple:
    """A draw's `shape=`, which the axes `own` of a parameter must fit.

    Raises:
        ValueError: they do not.
    """
    shape = shape_of(name, shape)
    if own and (
        len(own) > len(shape) or any(m not in (1, n) for m, n in zip(own[::-1], shape[::-1]))
    ):
        raise ValueError(
            f"{name} got shape={shape} for {whose}, whose axes {own} do not broadcast to it. Give a "
            f"shape that ends with {own}."
        )
    return shape


@rejection_sampler
def _dirichlet(key, alpha, *, shape, dtype):
    logs = _gamma(key, alpha, shape=shape, dtype=dtype, log_space=True)
    last = len(shape) - 1
    largest = lax.expand_dims(lax.stop_gradient(lax.reduce_max(logs, (last,))), (last,))
    weights = lax.exp(lax.sub(logs, largest))
    return lax.div(weights, lax.expand_dims(lax.reduce_sum(weights, (last,)), (last,)))
