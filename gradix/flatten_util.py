"""`ravel_pytree`, which makes one vector of a pytree of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix import lax
from gradix._api.boundary import arrays
from gradix._base.listing import listing
from gradix._base.tree import tree_flatten
from gradix._core import dtypes
from gradix._core.array import as_array, typeof

__all__ = ["ravel_pytree"]


class _Unravel:
    """The function from a vector to a pytree.

    Two of them are equal if structure and types are, so that jit recognises an equal argument.
    """

    __slots__ = ("tree", "avals", "dtype")

    def __init__(self, tree, avals: tuple, dtype):
        self.tree, self.avals, self.dtype = tree, avals, dtype

    def __eq__(self, other) -> bool:
        return isinstance(other, _Unravel) and (self.tree, self.avals, self.dtype) == (
            other.tree,
            other.avals,
            other.dtype,
        )

    def __hash__(self) -> int:
        return hash((self.tree, self.avals, self.dtype))

    def __call__(self, flat):
        flat, size = as_array(flat), sum(a.size for a in self.avals)
        mixed = any(a.dtype != self.dtype for a in self.avals)
        if mixed and flat.aval.dtype != self.dtype:
            raise TypeError(
                f"unravel function given array of dtype {flat.aval.dtype}, but expected dtype "
                f"{self.dtype}, because the leaves have several dtypes. Convert it with "
                f".astype({str(self.dtype)!r})."
            )
        if flat.aval.size != size:
            raise ValueError(
                f"unravel function given array of shape {flat.aval.shape}, but expected {size} elements, "
                "as many as the leaves have."
            )
        flat, leaves, start = lax.reshape(flat, (size,)), [], 0
        for aval in self.avals:
            part = lax.reshape(lax.slice_in_dim(flat, start, start + aval.size), aval.shape)
            start += aval.size
            if mixed:
                is_real = aval.dtype not in dtypes.COMPLEX
                part = lax.real(part) if is_real and part.aval.dtype in dtypes.COMPLEX else part
                part = lax.convert_element_type(part, aval.dtype)
            leaves.append(part)
        return self.tree.unflatten(leaves)


def ravel_pytree(pytree: Any) -> tuple[Any, Callable]:
    """A pytree of arrays as one vector, and the function that makes a pytree of such a vector.

    Args:
        pytree: a pytree of arrays and numbers.

    Returns:
        The vector, whose dtype is the promoted dtype of the leaves, or float32 if there are none;
        and the function. The function takes vectors of another dtype only if all leaves have the
        same dtype.

    Raises:
        TypeError: a leaf is not an array or a number; or by the function, the dtype does not fit.
        ValueError: by the function, the size does not fit.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.flatten_util import ravel_pytree
        >>> flat, unravel = ravel_pytree({"w": jnp.ones((2, 1)), "b": jnp.zeros(1)})
        >>> flat
        Array([0., 1., 1.], dtype=float32)
        >>> unravel(2 * flat)["w"].shape
        (2, 1)
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        return lax.full((0,), 0, np.float32), _Unravel(tree, (), np.dtype("float32"))
    leaves = arrays("ravel_pytree", leaves, tree, "leaf ")
    # Dtypes and not types are promoted, so that weak types do not count.
    dtype = dtypes.result_type(*[x.aval.dtype for x in leaves])
    flat = [lax.reshape(lax.convert_element_type(x, dtype), (x.aval.size,)) for x in leaves]
    return lax.concatenate(flat, 0), _Unravel(tree, tuple([typeof(x).strip_weak_type() for x in leaves]), dtype)


__dir__ = listing(__name__)
