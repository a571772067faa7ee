"""Interpolation of images at coordinates, as in `scipy.ndimage`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gradix import lax, numpy as jnp
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX, INEXACT, INTEGER
from gradix._core.operators import Array
from gradix.numpy.promotion import as_operand, convert

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

__all__ = ["map_coordinates"]

_INT = np.dtype("int32")


def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """The values of an array at coordinates, which may be between its elements.

    Args:
        input: the array.
        coordinates: a sequence with an array of indices for each axis of `input`; these arrays are
            broadcast.
        order: 0 for the nearest element, 1 for linear interpolation.
        mode: the values beyond the edge: "constant" for `cval`, "nearest" for the last element,
            "wrap" for the array repeated, and "mirror" or "reflect" for it reversed, without or with
            the edge repeated.
        cval: the value beyond the edge for "constant".

    Returns:
        An array of the shape of the coordinates and the dtype of `input`. For integers the values
        are rounded.

    Raises:
        NotImplementedError: `order` or `mode` has another value.
        ValueError: the number of coordinates is not the number of axes, or an axis is empty.
        TypeError: coordinates are not real numbers, or `cval` is complex for a real array.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.scipy import ndimage
        >>> ndimage.map_coordinates(jnp.array([0.0, 10.0, 20.0]), [jnp.array([0.5, 1.25])], order=1)
        Array([ 5. , 12.5], dtype=float32)
    """
    x = jnp.asarray(input)
    if order not in (0, 1):
        raise NotImplementedError(f"map_coordinates requires order 0 or 1, got {order}.")
    if mode not in _PLACES and mode != "constant":
        raise NotImplementedError(
            f"map_coordinates does not support mode {mode!r}. Use one of 'constant', "
            f"{', '.join(map(repr, _PLACES))}, where 'wrap' and 'constant' are SciPy's 'grid-wrap' and "
            "'grid-constant'."
        )
    places = [as_operand("map_coordinates", jnp.asarray(c), i) for i, c in enumerate(coordinates)]
    if len(places) != x.aval.ndim:
        raise ValueError(f"coordinates must be a sequence of length input.ndim, but {len(places)} != {x.aval.ndim}.")
    if not places:
        return x
    for i, c in enumerate(places):
        if c.aval.dtype in COMPLEX or c.aval.dtype == bool:
            raise TypeError(f"map_coordinates: coordinates must be real numbers, got {c.aval.dtype} for axis {i}.")
        if not x.aval.shape[i] and c.aval.size:
            raise ValueError(f"map_coordinates: axis {i} of input has no elements, got shape {x.aval.shape}.")
    places = jnp.broadcast_arrays(*places)
    if not places[0].aval.size:
        return jnp.zeros(places[0].aval.shape, x.aval.dtype)
    return _rounded(_interpolated(x, places, order, mode, _fill(cval, x.aval.dtype)), x.aval.dtype)


def _fill(cval, dtype):
    value = jnp.asarray(cval)
    if value.aval.dtype in COMPLEX and dtype not in COMPLEX:
        raise TypeError(
            f"map_coordinates: cval must be real for an input of dtype {dtypes.dtype_name(dtype)}, got "
            f"{cval!r}. Convert the input to a complex dtype, or take the real part."
        )
    return convert(value, dtype)


def _interpolated(x, places, order: int, mode: str, fill):
    neighbours = [(_nearest if order == 0 else _beside)(c) for c in places]
    total = None
    for corner in itertools.product(*neighbours):
        indices = [index for index, _ in corner]
        value = _read(x, indices, mode, fill)
        for _, weight in corner:
            value = value if weight is None else value * weight
        total = value if total is None else total + value
    return total


def _nearest(place):
    if place.aval.dtype in INTEGER:
        return [(convert(place, _INT), None)]
    return [(convert(lax.round(place, lax.RoundingMethod.AWAY_FROM_ZERO), _INT), None)]


def _beside(place):
    """The indices before and after a coordinate, each with its weight."""
    if place.aval.dtype in INTEGER:
        return [(convert(place, _INT), None)]
    low = lax.floor(place)
    part = place - low
    index = convert(low, _INT)
    return [(index, 1 - part), (index + 1, part)]


def _read(x, indices, mode: str, fill):
    if mode != "constant":
        inside = [_PLACES[mode](i, n) for i, n in zip(indices, x.aval.shape)]
        return x.at[tuple(inside)].get(mode="promise_in_bounds")
    valid = None
    for i, n in zip(indices, x.aval.shape):
        here = (i >= 0) & (i < n)
        valid = here if valid is None else valid & here
    inside = [jnp.clip(i, 0, n - 1) for i, n in zip(indices, x.aval.shape)]
    return jnp.where(valid, x.at[tuple(inside)].get(mode="promise_in_bounds"), fill)


def _mirrored(i, n: int):
    last = n - 1
    return abs((i + last) % (2 * last) - last) if last else i * 0


_PLACES = {
    "nearest": lambda i, n: jnp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirrored,
    "reflect": lambda i, n: (_mirrored(2 * i + 1, 2 * n + 1) - 1) // 2,
}


def _rounded(x, dtype):
    if dtype in INEXACT or x.aval.dtype not in INEXACT:
        return convert(x, dtype)
    return convert(lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), dtype)


__dir__ = listing(__name__)
