"""Draws of distributions with floating parameters: the checks of arguments before the draw."""

from __future__ import annotations

from collections.abc import Callable

from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.random.draws import fitting, float_dtype, parameter_shape
from gradix.random.keys import take_key


def drawn(
    draw: Callable, name: str, key, params: tuple, shape, dtype, kinds: frozenset = dtypes.FLOAT, what: str = "float"
) -> Array:
    """`draw(key, *params, shape=shape, dtype=dtype)` for checked arguments.

    Args:
        draw: a `sampler`.
        name: the name of the public function, for messages.
        key: a single key, typed or raw.
        params: numbers or arrays that promote to `dtype`.
        shape: the shape of the result; None for the one to which the parameters broadcast.
        dtype: a dtype among `kinds`, which `what` names; None for the default floating one.

    Raises:
        TypeError: `key` is not a random key, or a parameter is not an array.
        ValueError: `dtype` is none of `kinds`, or the parameters do not broadcast to `shape`.
    """
    dtype = float_dtype(name, dtype, kinds, what, stacklevel=5)
    params = fitting(name, dtype, *params)
    shape = parameter_shape(name, shape, *params)
    return draw(take_key(name, key), *params, shape=shape, dtype=dtype)
