"""ragged_all_to_all: slices of different sizes exchanged along a named axis."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gradix._api.mapping.collective_moves import all_gather
from gradix._api.mapping.collectives import axis_index, axis_size
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._ops.arithmetic import add, mul, sub
from gradix._ops.basis import broadcast_in_dim
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import ge, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota, iota
from gradix._ops.indexing.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from gradix._ops.linalg.lu import take_rows
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.reductions import reduce_max
from gradix._ops.select import choose
from gradix._ops.shape import reshape

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_INT = np.dtype("int32")


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Hashable,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:
    """Send slices of `operand` along a named axis, and write the received slices into `output`.

    With K slices and an axis of size S, slice i goes to the member `i // (K // S)`. It consists of
    `send_sizes[i]` rows of `operand` that begin at row `input_offsets[i]`; the receiver writes them
    to its `output` from row `output_offsets[i]` on. `recv_sizes` holds the sizes of the slices that
    are received, in the order of their senders.

    Args:
        operand: the rows to send, of shape (N, ...).
        output: the rows that are kept where nothing is received, of shape (M, ...).
        input_offsets, send_sizes, output_offsets, recv_sizes: integers of shape (K,).
        axis_name: the name of the axis.
        axis_index_groups: lists of members' indices that partition the axis, all of one size; each
            group exchanges its own slices. None is one group.

    Returns:
        An array of the shape and dtype of `output`. It is computed from all members' rows, which
        are gathered.

    Raises:
        TypeError, ValueError: dtypes or shapes do not fit.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> from gradix import lax
        >>> one, starts = jnp.array([1, 1]), jnp.array([0, 1])
        >>> def swap(x, i):
        ...     return lax.ragged_all_to_all(x, x * 0, starts, one, jnp.array([i, i]), one, axis_name="i")
        >>> gradix.vmap(swap, axis_name="i")(jnp.array([[1, 2], [3, 4]]), jnp.arange(2))
        Array([[1, 3],
               [2, 4]], dtype=int32)
    """
    operand, output = (as_operand("ragged_all_to_all", operand), as_operand("ragged_all_to_all", output))
    numbers = [as_operand("ragged_all_to_all", x) for x in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    members = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    count = _check(operand.aval, output.aval, [x.aval for x in numbers], members)
    starts, _, places, sizes = (convert_element_type(x, _INT) for x in numbers)
    rows, width = operand.aval.shape[0], prod(operand.aval.shape[1:])
    if not output.aval.size:
        return output
    me = _position(axis_name, axis_index_groups)
    starts, places = (_mine(x, axis_name, axis_index_groups, me, count // members) for x in (starts, places))
    all_rows = reshape(all_gather(operand, axis_name, axis_index_groups=axis_index_groups), (members * rows, width))
    # the slice that writes each row of the result: the last one, if there are several
    shape = (output.aval.shape[0], count)
    row, slot = broadcasted_iota(_INT, shape, 0), broadcasted_iota(_INT, shape, 1)
    spread = [broadcast_in_dim(x, shape, (1,)) for x in (places, sizes)]
    inside = bitwise_and(ge(row, spread[0]), lt(row, add(*spread)))
    which = reduce_max(choose(inside, broadcast_in_dim(scalar_like(slot, -1), shape, ()), slot), (1,))
    found = ge(which, np.int32(0))
    at = choose(found, mul(which, np.int32(0)), which)
    source = add(_taken(_first_rows(starts, places, rows, members), at), iota(_INT, shape[0]))
    source = choose(found, mul(source, np.int32(0)), source)
    received = reshape(take_rows(all_rows, source, unique=False), output.aval.shape)
    return choose(broadcast_in_dim(found, output.aval.shape, (0,)), output, received)


def _check(operand, output, numbers, members: int) -> int:
    if operand.dtype != output.dtype or operand.shape[1:] != output.shape[1:] or not operand.ndim:
        raise TypeError(
            f"ragged_all_to_all needs an output of the dtype and row shape of the operand, got {operand} and {output}."
        )
    shapes = {x.shape for x in numbers}
    if len(shapes) > 1 or numbers[0].ndim != 1 or any(x.dtype not in dtypes.INTEGER for x in numbers):
        raise ValueError(
            "ragged_all_to_all needs offsets and sizes that are integers of one shape (K,), got "
            f"{', '.join(map(str, numbers))}."
        )
    count = numbers[0].shape[0]
    if count % members or not count:
        raise ValueError(
            f"ragged_all_to_all needs the same number of slices for each member: {count} slices cannot be "
            f"divided among {members} members."
        )
    return count


def _position(axis_name, groups):
    """The index along the axis, within its group."""
    me = convert_element_type(axis_index(axis_name), _INT)
    if groups is None:
        return me
    table = np.empty(sum(map(len, groups)), _INT)
    for group in groups:
        table[list(group)] = range(len(group))
    return dynamic_index_in_dim(as_operand("ragged_all_to_all", table), me, 0, keepdims=False)


def _mine(x, axis_name, groups, me, each: int):
    """The numbers that all members give for the slices they send here, joined."""
    every = all_gather(x, axis_name, axis_index_groups=groups)
    return reshape(dynamic_slice_in_dim(every, mul(me, np.int32(each)), each, 1), (every.aval.shape[0] * each,))


def _first_rows(starts, places, rows: int, members: int):
    """For each slice, the place among all rows that row 0 of the result would have."""
    sender = np.repeat(np.arange(members, dtype=_INT) * rows, starts.aval.shape[0] // members)
    return sub(add(starts, sender), places)


def _taken(x, at):
    return reshape(take_rows(reshape(x, (*x.aval.shape, 1)), at, unique=False), at.aval.shape)
