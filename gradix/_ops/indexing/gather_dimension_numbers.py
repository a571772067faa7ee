"""Shared by gather and scatter: dimension numbers, modes, and the windows of an operand."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any, NamedTuple

import numpy as np


class GatherDimensionNumbers(NamedTuple):
    """Says which axes of operand, indices and result of a gather correspond.

    Attributes:
        offset_dims: axes of the result that run within a window.
        collapsed_slice_dims: axes of the operand, of window size 1, that the result lacks.
        start_index_map: the operand axis each entry of an index vector is for; index vectors lie
            along the last axis.
        operand_batching_dims: axes of the operand that go with `start_indices_batching_dims`,
            position by position.
        start_indices_batching_dims: the axes of the indices they go with.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> rows = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, slice_sizes=(1, 2))
        Array([[4, 5],
               [0, 1]], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Says which axes of operand, indices and updates of a scatter correspond.

    Attributes:
        update_window_dims: axes of the updates that run within a window.
        inserted_window_dims: axes of the operand, of window size 1, that the updates lack.
        scatter_dims_to_operand_dims: the operand axis each entry of an index vector is for.
        operand_batching_dims: axes of the operand that go with `scatter_indices_batching_dims`.
        scatter_indices_batching_dims: the axes of the indices they go with.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> places = lax.ScatterDimensionNumbers(
        ...     update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
        ... )
        >>> lax.scatter_add(jnp.zeros(3), jnp.array([[2], [0], [2]]), jnp.ones(3), places)
        Array([1., 0., 2.], dtype=float32)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """What gather and scatter do with windows that reach outside the operand.

    CLIP moves them inside; FILL_OR_DROP reads a fill value, and drops updates; PROMISE_IN_BOUNDS
    leaves it open, for indices known to be in bounds; ONE_HOT reads zeros.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> jnp.zeros(2).at[5].add(1.0, mode=lax.GatherScatterMode.FILL_OR_DROP)
        Array([0., 0.], dtype=float32)
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()
    # as CLIP, for what `vmap` makes of slices, whose starts nobody asked to move
    CLIP_STARTS = enum.auto()
    # as FILL_OR_DROP, where it is asked for: then it is no fault that an index is out of bounds
    FILL_AS_ASKED = enum.auto()

    def __str__(self) -> str:
        return f"GatherScatterMode.{'CLIP' if self in CLIPPING else 'FILL_OR_DROP' if self.fills else self.name}"

    @property
    def fills(self) -> bool:
        """Whether windows outside read a fill value, and updates there are dropped."""
        return self in FILLING

    @staticmethod
    def asked(s) -> GatherScatterMode:
        """As `from_any`, for what a caller asks for: by "fill" or "drop", indices may be out of bounds."""
        is_asked = isinstance(s, str) and s in ("fill", "drop")
        return GatherScatterMode.FILL_AS_ASKED if is_asked else GatherScatterMode.from_any(s)

    @staticmethod
    def from_any(s) -> GatherScatterMode:
        """A mode from itself, its name ("clip", "fill", "drop", "promise_in_bounds", …) or None."""
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _MODES[s]
        except (KeyError, TypeError):
            raise ValueError(
                f'Unknown gather mode "{s}". Modes are "clip", "fill", "drop", "promise_in_bounds" and "one_hot".'
            ) from None


CLIPPING = frozenset([GatherScatterMode.CLIP, GatherScatterMode.CLIP_STARTS])
FILLING = frozenset([GatherScatterMode.FILL_OR_DROP, GatherScatterMode.FILL_AS_ASKED])
_MODES = {
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    None: GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class Windows:
    """How windows lie in a C-contiguous operand seen as `rows` rows of `inner` elements.

    `shape` is the shape of all windows together: of the result of a gather, of the updates of a
    scatter. Its trailing axes, from `lead` on, hold the `inner` elements of one row.
    """

    __slots__ = ("shape", "rows", "inner", "limits", "strides", "slots", "terms", "lead", "direct", "single")

    def __init__(self, operand_shape, indices_shape, dnums, slice_sizes):
        offset, dropped, index_map, batching, batching_at = dnums
        ndim = len(operand_shape)
        out_ndim = len(indices_shape) - 1 + len(offset)
        batch_axes = [i for i in range(out_ndim) if i not in offset]
        kept = [d for d in range(ndim) if d not in dropped and d not in batching]
        place = dict(zip(kept, offset))  # operand axis -> axis of the result
        trailing = 0  # how many trailing axes windows take whole
        while trailing < len(kept):
            d = ndim - 1 - trailing
            if place.get(d) != out_ndim - 1 - trailing or slice_sizes[d] != operand_shape[d]:
                break
            trailing += 1
        self.inner = prod(operand_shape[ndim - trailing :])
        self.rows = prod(operand_shape[: ndim - trailing])
        stride = [prod(operand_shape[d + 1 : ndim - trailing]) for d in range(ndim)]
        self.limits = tuple([operand_shape[d] - slice_sizes[d] for d in index_map])
        self.strides = tuple([stride[d] if d < ndim - trailing else 0 for d in index_map])
        self.lead = out_ndim - trailing
        full = self.shape = windows_shape(operand_shape, indices_shape, dnums, slice_sizes)
        self.slots = tuple([full[a] if a in batch_axes else 1 for a in range(self.lead)])
        self.terms = []
        for d, axis in place.items():
            if d < ndim - trailing and slice_sizes[d] > 1:
                self.terms.append(_along(axis, self.lead, np.arange(slice_sizes[d]) * stride[d]))
        for d, i in zip(batching, batching_at):
            self.terms.append(_along(batch_axes[i], self.lead, np.arange(operand_shape[d]) * stride[d]))
        self.direct = not self.terms and self.strides == (1,) and self.limits[0] + 1 == self.rows
        self.single = prod(indices_shape[:-1]) == 1 and not batching

    def positions(self, indices):
        """The operand row that each row of the windows reads, clamped inside.

        The result has the shape `shape[:lead]`.
        """
        flat = None
        for j, (limit, stride) in enumerate(zip(self.limits, self.strides)):
            if not stride:
                continue
            at = inside(indices[..., j], limit).reshape(self.slots)
            if stride != 1:
                at = at * stride
            flat = at if flat is None else flat + at
        for term in self.terms:
            flat = term if flat is None else flat + term
        shape = self.shape[: self.lead]
        if flat is None:
            return np.zeros(shape, np.intp)
        return flat if flat.shape == shape else np.broadcast_to(flat, shape)

    def valid(self, indices):
        """For each index vector, whether its window lies inside the operand.

        The result is None where all windows do.
        """
        ok = None
        for j, limit in enumerate(self.limits):
            column = indices[..., j]
            good = (column >= 0) & (column <= limit) if column.dtype.kind == "i" else column <= limit
            ok = good if ok is None else ok & good
        return None if ok is None or ok.all() else ok

    def corner(self, operand_shape, indices, dnums, slice_sizes):
        """The slices of the operand that the only window of a `single` gather reads."""
        starts = [0] * len(operand_shape)
        for j, d in enumerate(dnums.start_index_map):
            starts[d] = min(max(int(indices[..., j].item()), 0), self.limits[j])
        return tuple([slice(a, a + n) for a, n in zip(starts, slice_sizes)])


def windows_shape(operand_shape, indices_shape, dnums, slice_sizes) -> tuple:
    """The shape of all windows together: a gather's result, a scatter's updates."""
    offset, dropped, _, batching, _ = dnums
    inner = iter([n for d, n in enumerate(slice_sizes) if d not in dropped and d not in batching])
    outer = iter(indices_shape[:-1])
    return tuple([next(inner) if i in offset else next(outer) for i in range(len(indices_shape) - 1 + len(offset))])


def inside(column, limit):
    """Indices clamped to [0, limit], as NumPy's index type."""
    if column.dtype.kind == "u":
        return np.minimum(column, min(limit, np.iinfo(column.dtype).max)).astype(np.intp)
    return np.minimum(np.maximum(column.astype(np.intp, copy=False), 0), limit)


def _along(axis, ndim, x):
    return x.reshape([-1 if i == axis else 1 for i in range(ndim)])


@lru_cache(2048)
def windows(operand_shape, indices_shape, dnums, slice_sizes) -> Windows:
    """The plan for these shapes."""
    return Windows(operand_shape, indices_shape, dnums, slice_sizes)


def canonical_numbers(dnums, kind):
    """Dimension numbers that can be hashed: five tuples."""
    if not isinstance(dnums, tuple):
        raise TypeError(f"dimension_numbers must be a lax.{kind.__name__}, got {dnums!r}.")
    for d in dnums:
        if type(d) is not tuple:
            return kind(*[tuple([index(i) for i in d]) for d in dnums])
    return dnums if type(dnums) is kind else kind(*dnums)


def gather_numbers(dnums: tuple[Any, ...]) -> GatherDimensionNumbers:
    """The dimension numbers of the gather that reads the windows a scatter writes."""
    return GatherDimensionNumbers(*dnums)


@lru_cache(4096)
def window_sizes(operand_shape, updates_shape, dnums: ScatterDimensionNumbers) -> tuple:
    """The size of a scatter's windows along each operand axis."""
    sizes = iter([updates_shape[i] for i in dnums.update_window_dims])
    ones = {*dnums.inserted_window_dims, *dnums.operand_batching_dims}
    return tuple([1 if d in ones else next(sizes) for d in range(len(operand_shape))])


# -- mapping over an axis --------------------------------------------------------------------------


def shifted(dnums, offset=0, operand=0, indices=0):
    """Dimension numbers where result, operand or indices have a new first axis (shift 1)."""

    def up(xs, by):
        return tuple([x + by for x in xs])

    a, b, c, d, e = dnums
    return type(dnums)(up(a, offset), up(b, operand), up(c, operand), up(d, operand), up(e, indices))


def with_window_axis(dnums):
    """Dimension numbers for a new first axis of operand and windows, whole in every window."""
    moved = shifted(dnums, 1, 1, 0)
    return moved._replace(**{moved._fields[0]: (0, *moved[0])})


def with_batching_axis(dnums):
    """Dimension numbers for a new first axis of operand, indices and windows: a batch axis."""
    a, b, c, d, e = shifted(dnums, 1, 1, 1)
    return type(dnums)(a, b, c, (0, *d), (0, *e))


def axes_by_name(axes: dict, index_axis: int) -> str:
    """Dimension numbers as StableHLO writes them; empty lists are omitted."""
    fields = [f"{name} = [{', '.join(map(str, dims))}]" for name, dims in axes.items() if len(dims)]
    return ", ".join([*fields, f"index_vector_dim = {index_axis}"])
