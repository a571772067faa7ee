"""Arrays as text; the options of printing are NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._core.array import ArrayImpl
from gradix._core.divisions import sums
from gradix._core.dtypes import KeyType

if TYPE_CHECKING:
    from gradix._core.operators import Array


def array_repr(
    arr: Array, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of an array as `repr` gives it.

    Args:
        arr: an array.
        max_line_width: the number of columns in a line; by default NumPy's print option.
        precision: the number of digits after the point; by default NumPy's print option.
        suppress_small: whether numbers near zero are printed as zero; by default NumPy's option.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array_repr(jnp.arange(3))
        'Array([0, 1, 2], dtype=int32)'
    """
    if type(arr) is not ArrayImpl:
        other: Any = arr
        return np.array_repr(other, max_line_width, precision, suppress_small)
    aval = arr.aval
    if aval.place is not None and sums(aval).unreduced:
        return f"Array(shape={aval.shape}, dtype={aval.dtype.name}, sharding={aval.place.sharding})"
    if _is_elsewhere(arr):
        return f"Array(shape={aval.shape}, dtype={aval.dtype.name})"
    if isinstance(aval.dtype, KeyType):
        return f"Array({aval.shape}, dtype={aval.dtype.name}) overlaying:\n{_words(arr)}"
    weak = ", weak_type=True" if aval.weak_type else ""
    tail = f"dtype={aval.dtype.name}{weak})"
    if not aval.size and aval.ndim:
        return f"Array([], shape={aval.shape}, {tail}"
    host = np.asarray(arr.host)
    text = np.array2string(host, max_line_width, precision, suppress_small, ", ", prefix="Array(", suffix=",")
    gap = " " if len(text) - text.rfind("\n") - 1 + len(tail) + 2 <= _width(max_line_width) else "\n" + " " * 6
    return f"Array({text},{gap}{tail}"


def _is_elsewhere(arr: ArrayImpl) -> bool:
    """Whether only other processes hold some of the values, or devices hold summands of them."""
    place = arr.aval.place
    if place is None or arr._host is not None:
        return False
    return not place.is_readable or bool(sums(arr.aval).unreduced)


def _width(given: int | None) -> int:
    return given or np.get_printoptions()["linewidth"]


def _words(keys: ArrayImpl) -> np.ndarray:
    """The 32-bit words of which each key consists."""
    host = np.ascontiguousarray(keys.host)
    made: Any = keys.aval.dtype
    return (
        host.reshape((*keys.aval.shape, 1))
        .view(np.uint32)[..., : made.words]
        .reshape((*keys.aval.shape, *made.key_shape))
    )


def array_str(
    a: Array, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The text of an array as `str` gives it.

    Args:
        a: an array.
        max_line_width: the number of columns in a line; by default NumPy's print option.
        precision: the number of digits after the point; by default NumPy's print option.
        suppress_small: whether numbers near zero are printed as zero; by default NumPy's option.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array_str(jnp.arange(3))
        '[0 1 2]'
    """
    if type(a) is ArrayImpl and (isinstance(a.aval.dtype, KeyType) or _is_elsewhere(a)):
        return array_repr(a)
    host: Any = np.asarray(a.host) if type(a) is ArrayImpl else a if hasattr(a, "shape") else np.asarray(a)
    return np.array_str(host, max_line_width, precision, suppress_small)


def get_printoptions() -> dict:
    """The options with which arrays are printed, which are NumPy's, as a dict.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.get_printoptions()["edgeitems"]
        3
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set options with which arrays are printed; the arguments are those of NumPy's function.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> Any:
    """A context in which arrays are printed with other options, given as to NumPy's function.

    Example:
        >>> import gradix.numpy as jnp
        >>> with jnp.printoptions(precision=2):
        ...     print(jnp.array([1.23456]))
        [1.23]
    """
    return np.printoptions(*args, **kwargs)
