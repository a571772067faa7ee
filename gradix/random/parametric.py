"""Draws of distributions with float parameters: what such a sampler does before it draws."""

from __future__ import annotations

from collections.abc import Callable

from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.random.draws import fitting, float_dtype, parameter_shape
from gradix.random.keys import take_key


def drawn(
    draw: Callable,
    name: str,
    key,
    params: tuple,
    shape,
    dtype,
    kinds: frozenset = dtypes.FLOAT,
    what: str = "float",
) -> Array:
    """`draw(key, *params, shape=shape, dtype=dtype)` of the checked arguments of the public function `name`.

    Args:
        draw: a `sampler`.
        key: a single key, typed or raw.
        params: numbers or arrays that promote to `dtype`.
        shape: the result's shape; None for the common shape of the parameters.
        dtype: of one of `kinds`, `what` in words; None for the default float.

    Raises:
        TypeError: `key` is no key, or a parameter is no array.
        ValueError: `dtype` is of another kind, or the parameters do not broadcast to `shape`.
    """
    dtype = float_dtype(name, dtype, kinds, what, stacklevel=5)
    params = fitting(name, dtype, *params)
    shape = parameter_shape(name, shape, *params)
    return draw(take_key(name, key), *params, shape=shape, dtype=dtype)
