"""Exchange of arrays with other libraries through the DLPack protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.errors import class_of
from gradix._base.listing import listing
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._runtime import xla
from gradix.numpy.buffers import from_dlpack as _from_numpy
from gradix.numpy.conversion import array

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike
    from gradix._core.operators import Array

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED = frozenset(
    [
        np.dtype(d)
        for d in (
            "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
        ).split()
    ]
    + [np.dtype(dtypes.bfloat16)]
)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype can be exchanged by `from_dlpack`.

    Example:
        >>> from gradix import dlpack
        >>> dlpack.is_supported_dtype("bfloat16"), dlpack.is_supported_dtype("int4")
        (True, False)
    """
    return np.dtype(getattr(dtypes, dtype, dtype) if isinstance(dtype, str) else dtype) in _SUPPORTED


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array with the values, shape and dtype of another library's array.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`, in memory of the CPU.
        device: the device or sharding of the array; by default the default device.
        copy: None or True to copy the values. False is an error, because arrays are immutable and
            the other library may change its values.

    Raises:
        TypeError: the object does not support the protocol, or its dtype is not supported.
        ValueError: `copy` is False.

    Example:
        >>> import numpy as np
        >>> from gradix import dlpack
        >>> dlpack.from_dlpack(np.arange(3, dtype=np.float32))
        Array([0., 1., 2.], dtype=float32)
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods, got "
            f"a {class_of(external_array)}. Pass the array itself instead of its capsule."
        )
    try:
        return _from_numpy(external_array, device=device, copy=copy)
    except (BufferError, RuntimeError):  # NumPy does not exchange bfloat16.
        if not str(external_array.dtype).endswith("bfloat16"):
            raise TypeError(
                f"from_dlpack takes arrays of the dtypes {sorted(map(str, _SUPPORTED))}, got "
                f"{external_array.dtype}. Convert the array first, or view it as unsigned integers."
            ) from None
        buffer = xla.from_dlpack(external_array.__dlpack__(), None, copy)
        buffer.aval = make_aval(tuple(external_array.shape), np.dtype(dtypes.bfloat16))
        shared = ArrayImpl(None, buffer.aval, buffer)
        return array(np.array(shared.host), device=device)


__dir__ = listing(__name__)
