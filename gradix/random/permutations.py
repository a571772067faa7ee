"""Random permutations and random samples."""

from __future__ import annotations

import functools
import math
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.constraints import divided
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.dimensions.expression import SymbolicDim, is_count, is_symbolic_shape, may_have
from gradix._core.operators import Array
from gradix._ops.canonicalization import canonical_axis
from gradix._ops.random.generators import draws_together
from gradix._ops.random.random import random_bits
from gradix._ops.sorting.sort import take_along
from gradix.numpy.indexing import getitem
from gradix.random.continuous import draw_gumbel, gumbel_mode
from gradix.random.draws import number, parameter, sampler, shape_of
from gradix.random.floats import draw_uniform, split_keys
from gradix.random.integers import draw_integers
from gradix.random.keys import take_key

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, KeyLike, Shape
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec


def permutation(
    key: KeyLike,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The parts of an array along an axis, or the numbers below an integer, in random order.

    Args:
        key: a key, typed or raw.
        x: an array, or an integer n for the numbers 0 to n - 1.
        axis: the axis along which the array is reordered.
        independent: whether each row along the axis is reordered on its own.
        out_sharding: the sharding of the result.

    Returns:
        An array of the shape and dtype of `x`, or a vector of n integers.

    Raises:
        TypeError: `x` is a scalar that is not an integer.

    Example:
        >>> from gradix import random
        >>> random.permutation(random.key(0), 5).shape
        (5,)
    """
    if out_sharding is not None:
        return divided(permutation, out_sharding, key, x, axis, independent)
    if is_symbolic_shape((x,)):
        return _shuffled_numbers(take_key("permutation", key), x)
    x = parameter("permutation", x)
    if not x.aval.shape:
        if x.aval.dtype not in dtypes.INTEGER:
            raise TypeError(
                "permutation: x must be an integer or have at least one axis, got a scalar of "
                f"dtype {dtypes.dtype_name(x.aval.dtype)}."
            )
        return _shuffled_numbers(take_key("permutation", key), max(index(x), 0))  # type: ignore[arg-type]
    axis = canonical_axis(axis, x.aval.ndim)
    key = take_key("permutation", key)
    if independent or x.aval.ndim == 1:
        return _shuffle(key, x, shape=x.aval.shape, axis=axis)
    if not x.aval.shape[axis]:
        return x
    return _take(x, _shuffled_numbers(key, x.aval.shape[axis]), axis)


def _shuffled_numbers(key, n: Any):
    dtype = dtypes.python_scalar_dtype(int)
    if _is_sorted_at_once(key, (n,)):
        return lax.convert_element_type(_order(key, shape=(n,)), dtype)
    return _shuffle(key, lax.iota(dtype, n), shape=(n,), axis=0)


def _take(x, where, axis: int):
    return getitem(x, (*[slice(None)] * canonical_axis(axis, x.aval.ndim), where))


_ROUND = math.log(np.iinfo(np.uint32).max) / 3


def _rounds(shape) -> int:
    """How many times to sort by 32 random bits; ties keep their order, and must be rare enough."""
    return math.ceil(math.log(max(1, math.prod(shape))) / _ROUND)


def _is_sorted_at_once(key, shape) -> bool:
    """Whether `_order` applies: to several rounds on a vector, with keys that draw on their own."""
    if is_symbolic_shape(shape):
        return False
    return len(shape) == 1 and _rounds(shape) > 1 and shape[0] < 1 << 31 and not draws_together(key.aval.dtype)


@sampler
def _shuffle(key, x, *, shape, axis):
    if is_symbolic_shape(shape):
        return _shuffle_openly(key, x, shape, axis)
    if _is_sorted_at_once(key, shape):
        return take_along(x, _order(key, shape=shape), axis)
    for _ in range(_rounds(shape)):
        key, subkey = split_keys(key, 2)
        _, x = lax.sort_key_val(random_bits(subkey, 32, shape), x, axis)
    return x


def _shuffle_openly(key, x, shape, axis: int):
    """A shuffle of a symbolic size, which gives the number of rounds, up to three, when it runs."""
    size = lax.convert_element_type(math.prod(shape).__jax_array__(), np.float32)

    def sorted_once(subkey, x):
        return lax.sort_key_val(random_bits(subkey, 32, shape), x, axis)[1]

    for i in range(3):
        key, subkey = split_keys(key, 2)
        x = lax.cond(lax.gt(size, np.float32(math.exp(i * _ROUND))), sorted_once, lambda _, x: x, subkey, x)
    return x


@sampler
def _order(key, *, shape):
    """The order after all rounds; these do not depend on each other, so they are sorted as rows."""
    subkeys = []
    for _ in range(_rounds(shape)):
        key, subkey = split_keys(key, 2)
        subkeys.append(lax.reshape(subkey, (1,)))
    bits = random_bits(lax.concatenate(subkeys, 0), 32, shape)
    _, places = lax.sort_key_val(bits, lax.broadcasted_iota(np.int32, bits.aval.shape, 1))
    rows = [lax.squeeze(lax.slice_in_dim(places, i, i + 1), (0,)) for i in range(len(subkeys))]
    return functools.reduce(lambda order, row: take_along(order, row, 0), rows)


def choice(
    key: KeyLike,
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """A random sample of the elements of an array, or of its parts along an axis.

    Args:
        key: a key, typed or raw.
        a: an array, or an integer n for the numbers 0 to n - 1.
        shape: the shape of the sample.
        replace: whether an element may be drawn again.
        p: a vector of the probabilities of the elements; they are equal by default.
        axis: the axis along which the elements lie.
        mode: the mode of the Gumbel numbers for `p` without replacement, "low", "high" or None.

    Returns:
        An array of the dtype and shape of `a`, with `shape` in the place of the axis.

    Raises:
        ValueError: `p` does not fit the elements, or there are too few elements to draw.

    Example:
        >>> from gradix import random
        >>> random.choice(random.key(42), 10, (3,))
        Array([4, 4, 1], dtype=int32)
    """
    size = a if type(a) is SymbolicDim else None
    a = parameter("choice", a)
    shape = shape_of("choice", shape)
    count = math.prod(shape)
    own = a.aval.shape
    elements = own[canonical_axis(axis, len(own))] if own else size or _population(a)
    _check_population(elements, count, replace)
    if not count:
        return lax.full(shape, 0, a.aval.dtype if a.aval.shape else dtypes.python_scalar_dtype(int))
    key = take_key("choice", key)
    if p is not None:
        where = _weighted(key, _weights(p, elements, axis), elements, shape, count, replace, mode=mode)
    elif replace:
        where = draw_integers(key, 0, elements, shape=shape, dtype=dtypes.python_scalar_dtype(int))
    else:
        return _first_of_permutation(key, a, elements, shape, count, axis)
    return where if not a.aval.shape else _take(a, where, axis)


def _population(a) -> int:
    """The number of elements to choose from, as a Python integer; it is not traced."""
    return int(a.host) if type(a) is ArrayImpl and a.aval.dtype.kind in "biuf" else index(a)


def _check_population(elements: int, count: int, replace: bool) -> None:
    if count and not may_have(elements, 1):
        raise ValueError(
            f"choice: a must be greater than 0, or have elements, to draw {count} of them, got {elements}."
        )
    if not replace and not may_have(elements, count):
        raise ValueError(
            f"choice: without replacement, the sample (size {count}) must not be larger than the "
            f"population (size {elements}). Draw fewer, or pass replace=True."
        )


def _weights(p, elements: int, axis: int):
    p = parameter("choice", p)
    if p.aval.dtype not in dtypes.INEXACT:
        p = lax.convert_element_type(p, dtypes.to_inexact_dtype(p.aval.dtype))
    if p.aval.shape != (elements,):
        raise ValueError(
            f"choice: p must be None or a vector with a probability for each of the {elements} "
            f"elements, got shape {p.aval.shape}."
        )
    return p


def _weighted(key, p, elements, shape, count, replace, *, mode):
    dtype, integer = p.aval.dtype, dtypes.python_scalar_dtype(int)
    if not replace:
        noise = draw_gumbel(key, shape=(elements,), dtype=dtype, mode=gumbel_mode(mode))
        return lax.convert_element_type(lax.reshape(lax.top_k(lax.add(noise, lax.log(p)), count)[1], shape), integer)
    ends = lax.cumsum(p)
    total = lax.squeeze(lax.slice_in_dim(ends, elements - 1, elements), (0,))
    u = draw_uniform(key, number(0, dtype), number(1, dtype), shape=shape, dtype=dtype)
    found = jnp.searchsorted(ends, lax.mul(total, lax.sub(number(1, dtype), u)))
    return lax.convert_element_type(found, integer)


def _first_of_permutation(key, a, elements, shape, count, axis):
    if not a.aval.shape:
        return lax.reshape(_first(_shuffled_numbers(key, elements), count, 0), shape)
    axis = canonical_axis(axis, a.aval.ndim)
    if a.aval.ndim == 1:
        drawn = _shuffle(key, a, shape=a.aval.shape, axis=0)
    else:
        drawn = _take(a, _shuffled_numbers(key, elements), axis)
    own = a.aval.shape
    return lax.reshape(_first(drawn, count, axis), own[:axis] + shape + own[axis + 1 :])


def _first(x, count: int, axis: int):
    """The first elements, which are arbitrary where values decide that there are fewer."""
    if is_count(x.aval.shape[axis]):
        return _take(x, lax.iota(np.dtype("int32"), count), axis)
    return lax.slice_in_dim(x, 0, count, axis=axis)
