"""Members of arrays that need values or the device: conversions to Python, exchange, placement."""

from __future__ import annotations

import operator
from math import prod
from typing import Any, Literal

import numpy as np

from gradix._base.errors import ConcretizationTypeError
from gradix._base.lazy import lazy_module
from gradix._core import dtypes, seams
from gradix._core.array import ArrayImpl, copied, is_shared
from gradix._core.aval import located, make_aval

_display = lazy_module("gradix._core.display")
_treescope = lazy_module("gradix._core.treescope_arrays")


def _concrete(x, member: str) -> ArrayImpl:
    if type(x) is not ArrayImpl:
        raise ConcretizationTypeError(x, f"The problem arose with `{member}` of an array.")
    return x


def _values(x, member: str) -> np.ndarray:
    """The numbers of a concrete array."""
    if dtypes.is_extended(_concrete(x, member).aval.dtype):
        raise TypeError(
            f"key array cannot be converted to numbers: the problem arose with `{member}` of an array of "
            f"dtype {x.aval.dtype}. Use gradix.random.key_data(keys) for the words of random keys."
        )
    return x.host


# -- Python scalars --------------------------------------------------------------------------------


def _scalar(x, member: str):
    """The value of an array without axes, as a NumPy scalar."""
    host = _values(x, member)
    if host.ndim:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got arr.ndim={host.ndim}. "
            "Use x.item() of an array with one element."
        )
    return host[()]


def _real_scalar(x, name: str):
    value = _scalar(x, f"__{name}__")
    if value.dtype.kind == "c":
        raise TypeError(f"{name}() argument must be a real number, not a complex one. Take x.real or abs(x) first.")
    return value


def truth(self) -> bool:
    """The truth value of an array with one element."""
    host = _values(self, "__bool__")
    if host.size == 1:
        return bool(host.item() if host.ndim else host)
    if not host.size:
        raise ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."
        )
    raise ValueError(
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all(). "
        f"Got an array of shape {host.shape}."
    )


def to_int(self) -> int:
    """The value of an array without axes as an int."""
    return int(_real_scalar(self, "int"))


def to_float(self) -> float:
    """The value of an array without axes as a float."""
    return float(_real_scalar(self, "float"))


def to_complex(self) -> complex:
    """The value of an array without axes as a complex number."""
    return complex(_scalar(self, "__complex__"))


def to_index(self) -> int:
    """The value of an integer array without axes, where Python needs an int."""
    host = _values(self, "__index__")
    if host.ndim or self.aval.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"Only integer scalar arrays can be converted to a scalar index, got shape {host.shape} and "
            f"dtype {self.aval.dtype}. Convert with int(x) if it is one number; to compute with the numbers "
            "of a list or a text, convert that first, jnp.asarray(values) or float(text)."
        )
    return int(host)


def item(self, *args):
    """An element as a Python number: the only one, or the one at the given index."""
    host = np.asarray(_values(self, "item"))
    if not args and host.size != 1:
        raise ValueError(
            f"can only convert an array of size 1 to a Python scalar, got shape {host.shape}. "
            "Give the index of the element: x.item(i, j)."
        )
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    return _python_value(host.item(*[operator.index(i) for i in args]))


def _python_value(x):
    # NumPy returns the small floats as they are, without a Python number
    if isinstance(x, np.generic):
        return float(x)
    return x if isinstance(x, (bool, int, float, complex)) else float(x)


def tolist(self):
    """The elements as nested lists of Python numbers."""
    host = np.asarray(_values(self, "tolist"))
    if host.dtype.kind == "V":
        host = host.astype(np.int64 if self.aval.dtype in dtypes.INTEGER else np.float64)
    return host.tolist()


def tobytes(self, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
    """The elements' bytes, in row-major order."""
    return np.asarray(_values(self, "tobytes")).tobytes(order)


# -- iteration -------------------------------------------------------------------------------------


def rows(self):
    """The parts of a concrete array along its first axis."""
    host = np.asarray(self.host)
    aval = self.aval
    place = aval.place.of_rank(aval.ndim - 1) if aval.place is not None and aval.place.device is not None else None
    inner = located(make_aval(aval.shape[1:], aval.dtype, aval.weak_type), place)
    return [ArrayImpl(row if isinstance(row, np.ndarray) else np.asarray(row, host.dtype), inner) for row in host]


# -- exchange with other libraries -----------------------------------------------------------------


def dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule of the values in main memory."""
    host = _on_one_device(self, "__dlpack__")
    options = {} if max_version is None else {"max_version": max_version}
    if copy is not None:
        options["copy"] = copy
    view = host.view()
    if max_version is None or tuple(max_version) < (1, 0):
        # the older protocol cannot say that values are read-only
        view = host.copy()
    return view.__dlpack__(**options)


def dlpack_device(self) -> tuple:
    """The device of the values of `__dlpack__`, which is main memory."""
    return _on_one_device(self, "__dlpack_device__").__dlpack_device__()


def _on_one_device(x, member: str) -> np.ndarray:
    """The values of an array that a capsule can hold."""
    place = _concrete(x, member).aval.place
    if place is not None and place.sharding.num_devices > 1:
        raise BufferError(
            "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an array "
            f"with a Sharding over {place.sharding.num_devices} devices was provided: "
            f"{x.aval.str_short()}. Gather it with np.asarray(x), or pass x.addressable_data(0)."
        )
    return np.asarray(_values(x, member))


def formatted(self, spec: str) -> str:
    """The array for f-strings; a format is applied to the value of an array without axes."""
    if type(self) is not ArrayImpl or dtypes.is_extended(self.aval.dtype):
        return format(repr(self), spec)
    if self.aval.place is not None and not self.aval.place.is_readable:
        return format(repr(self), spec)
    host = np.asarray(self.host)
    if not host.ndim:
        value = host[()]
        if host.dtype.isbuiltin != 1:  # these types do not support format strings
            value = float(value) if host.dtype in dtypes.FLOAT else int(value)
        return format(value, spec)
    if spec:
        raise TypeError(
            f"unsupported format string {spec!r} passed to an array of shape {host.shape}: formats apply "
            "to arrays without axes. Print with gradix.numpy.printoptions, or format the elements."
        )
    return str(host)


# -- placement -------------------------------------------------------------------------------------


def is_deleted(self) -> bool:
    """Whether the array's memory has been freed."""
    return _concrete(self, "is_deleted")._host is None and (self._buffer is None or self._buffer.is_deleted())


def _buffer_of(self):
    if self._buffer is None:
        _ = self.host  # raises, and says that the array has been deleted
    return self._buffer


def is_ready(self) -> bool:
    """Whether the values have been computed, as those in main memory always have."""
    _concrete(self, "is_ready")
    return self._host is not None or bool(_buffer_of(self).is_ready())


def delete(self) -> None:
    """Free the array's memory; the array must not be used again. Shared numbers are kept."""
    if not is_shared(_concrete(self, "delete")):
        self._host = self._buffer = None


def block_until_ready(self):
    """Wait until the values have been computed, and return the array."""
    # A buffer with a value on the host too may be on its way to the device.
    if type(self) is ArrayImpl and (self._host is None or self._buffer is not None):
        _buffer_of(self).block_until_ready()
    return self


def copy_to_host_async(self) -> None:
    """Begin to copy the values to main memory."""
    if type(self) is ArrayImpl and self._host is None:
        seams.runtime.copy_to_host_async(_buffer_of(self))


def on_device_size_in_bytes(self) -> int:
    """The number of bytes that the array takes on all its devices together."""
    x = _concrete(self, "on_device_size_in_bytes")
    place = x.aval.place
    if place is None or place.device is not None:
        return x.nbytes
    part = prod(place.sharding.shard_shape(x.aval.shape))
    return part * x.aval.dtype.itemsize * place.sharding.num_devices


def clone(self) -> ArrayImpl:
    """Another array with the same values, which stays when this one is deleted."""
    x = _concrete(self, "clone")
    return ArrayImpl(x._host, x.aval, x._buffer)


def platform(self) -> str:
    """The platform of the array's device: "cpu", "cuda", ..."""
    _concrete(self, "platform")
    return next(iter(self.devices())).platform


def unsafe_buffer_pointer(self) -> int:
    """The address of the values in memory, valid only while the array is alive and not deleted.

    When the array is donated, a result may live there.
    """
    x = _concrete(self, "unsafe_buffer_pointer")
    if not is_shared(x):
        take_memory(x)
    return x._host.ctypes.data if x._host is not None else _buffer_of(x).unsafe_buffer_pointer()


def take_memory(x: ArrayImpl) -> None:
    """Move values that lie in NumPy's memory to a buffer to which XLA may write."""
    host = x._host
    if host is not None and not is_fetched(host):
        runtime = seams.runtime
        if x._buffer is None or runtime.is_at(x._buffer, host):
            x._buffer = runtime.put(host, x.aval)
        x._host = None


def is_fetched(host: np.ndarray) -> bool:
    """Whether the array is a view of a buffer's memory, and not the other way round."""
    base: Any = host
    while isinstance(base, np.ndarray):
        base = base.base
    return base is not None


def html(self) -> str:
    """The array for notebooks: type, bytes, devices, a summary of its numbers, values."""
    return _display.array(self)


def treescope_adapter(self) -> Any:
    """What treescope asks of the array; it calls this method where it is installed."""
    return _treescope.Adapter()


def treescope_repr(self, path: str | None, subtree_renderer: Any) -> Any:
    """The array as treescope shows it among others."""
    return _treescope.shown(self, path, subtree_renderer)


MEMBERS = {
    "_repr_html_": html,
    "__treescope_ndarray_adapter__": treescope_adapter,
    "__treescope_repr__": treescope_repr,
    "__bool__": truth,
    "__int__": to_int,
    "__float__": to_float,
    "__complex__": to_complex,
    "__index__": to_index,
    "item": item,
    "tolist": tolist,
    "tobytes": tobytes,
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
    "__format__": formatted,
    "is_deleted": is_deleted,
    "is_ready": is_ready,
    "delete": delete,
    "block_until_ready": block_until_ready,
    "copy_to_host_async": copy_to_host_async,
    "on_device_size_in_bytes": on_device_size_in_bytes,
    "clone": clone,
    "platform": platform,
    "unsafe_buffer_pointer": unsafe_buffer_pointer,
    "__copy__": lambda self: copied(self),
    "__deepcopy__": lambda self, memo: copied(self),
}
