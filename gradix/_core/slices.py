"""`ds`: an index for a part of known size, at a place that may be traced."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gradix._base.tree import register_pytree_node_class
from gradix._core.trace import is_unknown


@register_pytree_node_class
@dataclasses.dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, in steps of `stride`; `start` may be traced.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.experimental import pallas as pl
        >>> jnp.arange(10)[pl.Slice(1, 3, 2)]
        Array([1, 3, 5], dtype=int32)
        >>> pl.Slice.from_slice(slice(2, None), 6)
        Slice(start=2, size=4, stride=1)
    """

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self):
        for name in ("start", "size"):
            value = getattr(self, name)
            if isinstance(value, float) or np.dtype(getattr(value, "dtype", np.int32)).kind not in "iu":
                raise TypeError(
                    f"{name} of a slice must be an integer, got {value!r}. Use // in place of /, or .astype(int)."
                )
        for name in ("size", "stride"):
            value = getattr(self, name)
            if isinstance(value, (int, np.integer)) and value < (name == "stride"):
                raise ValueError(f"{name} of a slice must not be below {int(name == 'stride')}, got {value}.")

    is_dynamic_start = property(lambda self: not isinstance(self.start, (int, np.integer)))
    is_dynamic_size = property(lambda self: not isinstance(self.size, (int, np.integer)))

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The `Slice` that a Python slice selects of `size` elements."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"the step of a slice of a reference must be positive, got {slc}.")
        return cls(start, max((stop - start + step - 1) // step, 0), step)

    def tree_flatten(self):
        """The parts that are traced, and the others."""
        parts = (self.start, self.size)
        dynamic = tuple([p for p in parts if is_unknown(p)])
        return dynamic, (*[None if is_unknown(p) else p for p in parts], self.stride)

    @classmethod
    def tree_unflatten(cls, aux_data, children) -> Slice:
        """The slice of such parts."""
        given = iter(children)
        start, size = [next(given) if p is None else p for p in aux_data[:2]]
        new = object.__new__(cls)
        for name, value in (("start", start), ("size", size), ("stride", aux_data[2])):
            object.__setattr__(new, name, value)
        return new


def dslice(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """An index for `size` elements from `start` on; of one argument, for the first elements.

    Arrays, mutable arrays and the references of kernels take it. The start may be traced, as it
    does not determine a shape; elements beyond the end are as those of an index out of bounds.

    Args:
        start: an integer, which may be traced; None for a plain `slice(None, size, stride)`.
        size: the number of elements, an int.
        stride: the distance of elements, 1 by default.

    Raises:
        ValueError: `size` is negative, or `stride` is not positive.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.ds(2, 4)
        Slice(start=2, size=4, stride=1)
        >>> gradix.jit(lambda x, i: x[gradix.ds(i, 2)])(jnp.arange(5), 3)
        Array([3, 4], dtype=int32)
    """
    if start is None:
        return slice(None, None if size is None else size, stride)
    if size is None:
        if stride is not None:
            raise ValueError("Cannot specify stride with only size: write ds(0, size, stride).")
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


ds = dslice
