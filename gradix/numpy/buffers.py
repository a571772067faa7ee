"""Arrays read from buffers, texts and other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._base.errors import class_of
from gradix._core import dtypes
from gradix._core.operators import Array
from gradix.numpy.conversion import array, asarray
from gradix.numpy.placement import place

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the values of another library's array, read through the DLPack protocol.

    Args:
        x: an object with the methods `__dlpack__` and `__dlpack_device__`.
        device: the device to which the array goes.
        copy: False is refused, since values of other libraries are always copied.

    Returns:
        An array of the shape and dtype of `x`; 64-bit values are narrowed unless x64 is enabled.

    Raises:
        ValueError: `copy` is False.
        TypeError: `x` has no method `__dlpack__`.

    Example:
        >>> import numpy as np, gradix.numpy as jnp
        >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
        Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(x, Array):
        x = lax._separate(x) if copy else x
        return x if device is None else place(x, device, None)
    if copy is False:
        raise ValueError(
            "from_dlpack: copy=False is not possible, since arrays are immutable and the owner of "
            "the values may change them. Leave copy out."
        )
    if not hasattr(x, "__dlpack__"):
        raise TypeError(
            "from_dlpack: x must have the methods __dlpack__ and __dlpack_device__, got "
            f"{class_of(x)}. Use jnp.asarray for other values."
        )
    return array(np.from_dlpack(x), device=device)


def frombuffer(
    buffer: bytes | bytearray | memoryview, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """A vector of the numbers whose bytes a buffer holds.

    Args:
        buffer: bytes, or anything with the buffer interface.
        dtype: the dtype of the numbers; 64 bits are narrowed after reading unless x64 is enabled.
        count: how many numbers to read; -1 for all.
        offset: the byte at which to begin.

    Raises:
        ValueError: the buffer's size is not a multiple of the dtype's, or too small.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.frombuffer(b"abc", dtype="uint8")
        Array([97, 98, 99], dtype=uint8)
    """
    return _read(np.frombuffer(buffer, dtype=dtypes.as_dtype(dtype), count=count, offset=offset), dtype)


def _read(x: np.ndarray, dtype) -> Array:
    """Numbers read in the user's dtype; 64 bits are narrowed without a warning if not available."""
    return asarray(x, x.dtype if dtypes.keeps_explicit_x64() and dtype not in (float, int, complex) else None)


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers in a text.

    Args:
        string: the text.
        dtype: the dtype of the numbers.
        count: how many numbers to read; -1 for all.
        sep: the text that separates the numbers.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fromstring("1 2 3", int, sep=" ")
        Array([1, 2, 3], dtype=int32)
    """
    return _read(np.fromstring(string, dtype=dtypes.as_dtype(dtype), count=count, sep=sep), dtype)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Refused, since reading a file is an effect. Write `jnp.asarray(numpy.fromfile(...))`.

    Raises:
        NotImplementedError: always; the message tells what to write.

    Example:
        >>> import gradix.numpy as jnp, numpy, tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(bytes(3)) and file.seek(0)
        ...     jnp.asarray(numpy.fromfile(file, numpy.uint8))
        Array([0, 0, 0], dtype=uint8)
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented: a traced program would read the file once, not at each "
        "call. Write jnp.asarray(np.fromfile(...)) before tracing."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Refused, since iterating is an effect. Write `jnp.asarray(numpy.fromiter(...))`.

    Raises:
        NotImplementedError: always; the message tells what to write.

    Example:
        >>> import gradix.numpy as jnp, numpy
        >>> jnp.asarray(numpy.fromiter((n * n for n in range(3)), numpy.int32))
        Array([0, 1, 4], dtype=int32)
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented: a traced program would consume the iterator once, not "
        "at each call. Write jnp.asarray(np.fromiter(...)) before tracing."
    )
