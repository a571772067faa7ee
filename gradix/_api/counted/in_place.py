"""The elements that a mask selects, where they are in the whole array.

To sum the elements that a mask selects, they need not be moved to the front. What is computed from
them element by element is computed of all elements here; reductions leave out the others, and
updates of an array are selected. So the program needs no places, and costs what a selection costs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gradix._core.dimensions.expression import SymbolicDim
from gradix._core.trace import bind
from gradix._ops.arithmetic import add_p
from gradix._ops.basis import add_any_p, broadcast_in_dim, broadcast_in_dim_p, reduce_sum_p, transpose_p
from gradix._ops.comparison import lt_p
from gradix._ops.convert import convert_element_type_p
from gradix._ops.counted import prefix_p
from gradix._ops.creation import iota
from gradix._ops.dot import dot_general_p
from gradix._ops.families import Elementwise
from gradix._ops.indexing.gather import gather_p
from gradix._ops.indexing.true_places import true_places_p
from gradix._ops.reductions import Reduction
from gradix._ops.select import select_n_p
from gradix._ops.shape import squeeze_p

_BY_ELEMENT = frozenset([convert_element_type_p, select_n_p, add_any_p, broadcast_in_dim_p, transpose_p, squeeze_p])


class Elements(NamedTuple):
    """An array of which a mask selects the true elements, along one axis."""

    array: Any
    axis: int
    mask: Any

    def selected(self):
        """The mask in the shape of the array."""
        return broadcast_in_dim(self.mask, self.array.aval.shape, (self.axis,))


def elements(S, v) -> Elements | None:
    """The elements of a variable where they were before a mask selected them, if that is known."""
    frame = S.frame
    if v in frame._known:
        return frame._known[v]
    axes = S.open(v.aval.shape)
    found = None
    if len(axes) == 1:
        (axis,) = axes
        mask = frame.mask_of(v.aval.shape[axis])
        if mask is not None and type(mask.aval.shape[0]) is int:
            array = _array(S, v, mask)
            found = None if array is None else Elements(array, axis, mask)
    frame._known[v] = found
    return found


def _array(S, v, mask):
    frame, n = S.frame, mask.aval.shape[0]
    e = frame.maker(v)
    if e is None:
        return None
    prim, p = e.primitive, e.params
    shape = tuple([n if S.is_open(d) else d for d in v.aval.shape])
    if prim is prefix_p:
        made = frame.maker(e.invars[0])
        is_places = made is not None and made.primitive is true_places_p
        return iota(v.aval.dtype, n) if is_places else None
    if prim is gather_p:
        whole = frame.value(e.invars[0])
        is_rows = whole.aval.shape == shape and _picks_rows(S, e)
        return whole if is_rows and is_places_of(S, e.invars[1]) else None
    if isinstance(prim, Elementwise) or prim in _BY_ELEMENT or _is_by_rows(S, e):
        operands = _operands(S, e)
        return None if operands is None else bind(prim, operands, S.params(p))
    return None


def _is_by_rows(S, e) -> bool:
    """Whether each row of the result depends on the same row of operands only."""
    prim = e.primitive
    if prim is dot_general_p:
        contracted, _ = e.params["dimension_numbers"]
        return not any(S.open(v.aval.shape, axes) for v, axes in zip(e.invars, contracted))
    is_reduction = prim is reduce_sum_p or isinstance(prim, Reduction)
    return is_reduction and not S.open(e.invars[0].aval.shape, e.params["axes"])


def _operands(S, e):
    """The operands of an equation where they are in whole arrays; None if one is not known."""
    out = []
    for v in e.invars:
        if not S.open(v.aval.shape):
            out.append(S.frame.value(v))
            continue
        found = elements(S, v)
        if found is None:
            return None
        out.append(found.array)
    return out


def _picks_rows(S, e) -> bool:
    """Whether a gather takes rows of the first axis, which stand along the first axis of its result."""
    numbers, rank = e.params["dimension_numbers"], e.invars[0].aval.ndim
    sizes, shape = e.params["slice_sizes"], e.invars[0].aval.shape
    return (
        numbers.offset_dims == tuple(range(1, rank))
        and numbers.collapsed_slice_dims == (0,)
        and numbers.start_index_map == (0,)
        and not numbers.operand_batching_dims
        and tuple(sizes) == (1, *shape[1:])
        and not S.open(shape)
    )


def is_places_of(S, v) -> bool:
    """Whether indices are the places at which a mask is true, one in each row."""
    if v.aval.ndim != 2 or v.aval.shape[1] != 1:
        return False
    frame = S.frame
    e = frame.maker(v)
    while e is not None:
        prim = e.primitive
        if prim is prefix_p:
            made = frame.maker(e.invars[0])
            return made is not None and made.primitive is true_places_p
        if prim is broadcast_in_dim_p and e.params["broadcast_dimensions"] == (0,) or prim is convert_element_type_p:
            v = e.invars[0]
        elif prim is select_n_p and _is_from_the_front(frame, e):
            v = e.invars[1]
        else:
            return False
        e = frame.maker(v)
    return False


def _is_from_the_front(frame, e) -> bool:
    """Whether a selection adds the size to indices that are negative, of which places have none."""
    which, kept, moved = e.invars if len(e.invars) == 3 else (None, None, None)
    below, sum_ = frame.maker(which), frame.maker(moved)
    return (
        below is not None
        and below.primitive is lt_p
        and below.invars[0] is kept
        and sum_ is not None
        and sum_.primitive is add_p
        and sum_.invars[0] is kept
    )


def selected_rows(S, e) -> Elements | None:
    """The updates of a scatter to the rows that a mask selects, in the shape of its operand."""
    numbers, operand, updates = e.params["dimension_numbers"], e.invars[0], e.invars[2]
    rank = operand.aval.ndim
    is_by_rows = (
        numbers.update_window_dims == tuple(range(1, rank))
        and numbers.inserted_window_dims == (0,)
        and numbers.scatter_dims_to_operand_dims == (0,)
        and not numbers.operand_batching_dims
        and updates.aval.ndim == rank
        and rank > 0
        and type(updates.aval.shape[0]) is SymbolicDim
        and not S.open(operand.aval.shape)
        and is_places_of(S, e.invars[1])
    )
    found = elements(S, updates) if is_by_rows else None
    return found if found is not None and found.array.aval.shape == operand.aval.shape else None
