"""Arrays with elements replaced by position: put, put_along_axis, place, fill_diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix import lax
from gradix._core.operators import Array
from gradix.numpy.at import IndexUpdateHelper
from gradix.numpy.axes import axis_of
from gradix.numpy.cumulative import cumsum
from gradix.numpy.division import remainder
from gradix.numpy.indexing import take_index
from gradix.numpy.promotion import as_operand, convert, number
from gradix.numpy.rearrangement import resize
from gradix.numpy.selection import where
from gradix.numpy.shapes import ravel
from gradix.numpy.taking import integer_indices

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_INT = np.dtype("int32")


def _not_in_place(name: str, inplace: bool, error=ValueError) -> None:
    """Refuse to change an array in place."""
    if inplace:
        raise error(
            f"{name} cannot change an array in place, as arrays are immutable. Pass inplace=False, "
            "and it returns the changed array."
        )


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """The array with the elements at indices into it as one row set to values.

    Args:
        a: an array.
        ind: an array of integers.
        v: an array of values, which are repeated as needed.
        mode: how to treat integers out of bounds: "clip", by which those below 0 name the first element,
            "wrap", or None (the default), by which they count from the end, and are clipped beyond it.
        inplace: it must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: `mode` is unknown, or `inplace` is True.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), 5, inplace=False)
        Array([5., 0., 5., 0.], dtype=float32)
    """
    _not_in_place("put", inplace)
    x, i, v = as_operand("put", a), ravel(as_operand("put", ind, 1)), ravel(as_operand("put", v, 2))
    if not x.aval.size or not i.aval.size or not v.aval.size:
        return x
    if mode == "wrap":
        i = lax._wide_index(i, x.aval.size)
        i = remainder(i, number(x.aval.size, i.aval.dtype))
    elif mode == "clip":  # which numbers below 0 are the first element for, as in NumPy
        i = lax.max(i, number(0, i.aval.dtype))
    elif mode is not None:
        raise ValueError(f"put: mode must be 'clip' or 'wrap', got {mode!r}.")
    v = v if v.aval.size == i.aval.size else resize(v, (i.aval.size,))
    out = IndexUpdateHelper(ravel(x))[i].set(v, mode="clip")
    return lax.reshape(out, x.aval.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """The array with the elements that indices name along an axis set to values.

    Args:
        arr: an array.
        indices: an integer array of the rank of `arr`; all axes but `axis` broadcast with those of
            `arr`.
        values: an array that broadcasts to the shape of `indices`.
        axis: the axis; None takes the array as one row.
        inplace: it must be False, since arrays are immutable.
        mode: how to treat integers out of bounds, as in `x.at[...].set`.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ValueError: the indices and the array differ in rank, or `inplace` is True.
        TypeError: `indices` are not integers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[0], [1]]), 5.0, axis=1, inplace=False)
        Array([[5., 0.],
               [0., 5.]], dtype=float32)
    """
    _not_in_place("put_along_axis", inplace)
    x, i = as_operand("put_along_axis", arr), integer_indices("put_along_axis", indices, TypeError)
    shape = x.aval.shape
    if axis is None:
        x, axis = ravel(x), 0
    axis = axis_of(axis, x.aval.ndim)
    if x.aval.ndim != i.aval.ndim:
        raise ValueError(
            "put_along_axis: indices and arr must have the same rank, got shapes "
            f"{i.aval.shape} and {x.aval.shape}. indices[:, None] adds an axis."
        )
    index: list = []
    for d, n in enumerate(x.aval.shape):
        place = [1] * x.aval.ndim
        place[d] = n
        index.append(i if d == axis else lax.reshape(lax.iota(np.int32, n), tuple(place)))
    return lax.reshape(IndexUpdateHelper(x)[tuple(index)].set(values, mode=mode), shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """The array with the elements at which a mask is true set to values, one after the other.

    Args:
        arr: an array.
        mask: an array of booleans with the size of `arr`.
        vals: an array of values, which are repeated as needed.
        inplace: it must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ValueError: `arr` and `mask` differ in size, there are no values, or `inplace` is True.

    Example:
        >>> import gradix.numpy as jnp
        >>> x = jnp.arange(5)
        >>> jnp.place(x, x > 1, jnp.array([7, 8]), inplace=False)
        Array([0, 1, 7, 8, 7], dtype=int32)
    """
    _not_in_place("place", inplace)
    x, m, v = (as_operand("place", arr), as_operand("place", mask, 1), ravel(as_operand("place", vals, 2)))
    if m.aval.size != x.aval.size:
        raise ValueError(f"place: arr and mask must have the same size, got shapes {x.aval.shape} and {m.aval.shape}.")
    if not v.aval.size:
        raise ValueError("place: vals must not be empty, got size 0.")
    flat = ravel(m)
    flat = flat if flat.aval.dtype == bool else lax.ne(flat, number(0, flat.aval.dtype))
    turn = remainder(lax.sub(cumsum(convert(flat, _INT)), number(1, _INT)), v.aval.size)
    out = where(flat, convert(take_index(v, turn), x.aval.dtype), ravel(x))
    return lax.reshape(out, x.aval.shape)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with its main diagonal set to a value, or to values.

    Args:
        a: an array with at least two axes; if it has more, they must have the same size.
        val: a scalar, or an array of values, which are repeated as needed.
        wrap: only False is supported; for True, NumPy's diagonal of a tall matrix begins anew.
        inplace: it must be False, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: the array has less than two axes, or more with different sizes.
        NotImplementedError: `wrap` or `inplace` is True.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 3, inplace=False)
        Array([[3., 0.],
               [0., 3.]], dtype=float32)
    """
    _not_in_place("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported. Leave wrap out.")
    x, v = as_operand("fill_diagonal", a), as_operand("fill_diagonal", val, 1)
    shape = x.aval.shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal: a must have at least two axes, got shape {shape}.")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(f"fill_diagonal: more than two axes must have equal sizes, got shape {shape}.")
    n = min(shape)
    i = lax.iota(np.int32, n)
    v = v if v.aval.size == 1 and not v.aval.ndim else resize(ravel(v), (n,))
    return IndexUpdateHelper(x)[(i,) * len(shape)].set(v)
