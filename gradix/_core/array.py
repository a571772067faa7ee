"""The concrete array: a read-only NumPy array, a device buffer, or both."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from gradix._base import source
from gradix._base.config import guards_transfers
from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module
from gradix._core import dtypes, library_values as _library_values, seams
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.trace import state

transfers = lazy_module("gradix._base.transfers")
_elsewhere = lazy_module("gradix._base.elsewhere")


# What `__buffer__` last raised, and the place that asked for the buffer. NumPy asks for it first, drops any exception,
# an interrupt of the user too, and asks `__array__` next, from the same place, which raises it then.
_dropped: tuple[BaseException, int, int] | None = None


def _raise_dropped(caller: FrameType) -> None:
    """Raise what NumPy dropped, if `caller` is the frame that met it and is still at the same instruction."""
    global _dropped
    if _dropped is not None:
        (error, *place), _dropped = _dropped, None
        if place == [id(caller), caller.f_lasti]:
            raise error.with_traceback(None)


class ArrayImpl(Array):
    """A concrete array, held as a NumPy array, as a device buffer, or as both.

    `_host` is a private NumPy array (of the physical dtype), `_buffer` the runtime's device array;
    the missing one is made when it is first needed, and kept. `_extra` is set only on arrays with a
    rare property (a committed device, a consumed key), and `_is_number` only on those that
    `as_number` marks.
    """

    __slots__ = ("aval", "_host", "_buffer", "_extra", "_is_number")
    _host: np.ndarray | None
    _buffer: Any
    _extra: Any
    _is_number: bool

    def __init__(self, host, aval, buffer=None):
        self._host, self.aval, self._buffer = host, aval, buffer

    @property
    def host(self) -> np.ndarray:
        """The value as a NumPy array, copied from the device if it is not on the host yet."""
        h = self._host
        if h is None:
            h = self._host = seams.fetch(self)
        return h

    def __array__(self, dtype=None, copy=None):
        """A read-only view as a NumPy array; a copy if `dtype` or `copy` requires one."""
        if isinstance(self.aval.dtype, dtypes.KeyType):
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                "gradix.random.key_data(keys) for the words of the keys."
            )
        if _dropped is not None:
            _raise_dropped(sys._getframe(1))
        view = np.asarray(self.host)[...]
        if copy or (dtype is not None and dtype != view.dtype):
            return np.array(view, dtype or view.dtype, copy=True if copy is None else copy)
        view.flags.writeable = False
        return view

    def __buffer__(self, flags: int, /) -> memoryview:
        """The read-only memory of the array, from Python 3.12 on: `memoryview(x)`, `bytes(x)`."""
        global _dropped
        try:
            return memoryview(self.__array__())
        except ValueError:
            raise BufferError(
                f"Python's buffers have no format for {dtypes.dtype_name(self.aval.dtype)}. Convert "
                "with .astype('float32')."
            ) from None
        except BaseException as error:
            caller = sys._getframe(1)
            _dropped = error, id(caller), caller.f_lasti
            raise

    def __reduce__(self):
        return _rebuild, (np.asarray(self.host), self.aval.dtype, self.aval.weak_type)


# Messages name arrays by their public type, Python's messages too; pickles go by `__qualname__`.
ArrayImpl.__name__ = "Array"


class OnlyType:
    """Marks an array whose value is not known: programs can be traced with it, but not run."""

    __slots__ = ()


def without_value(aval) -> ArrayImpl:
    """An array of this type without a value; reading its value raises an error."""
    out = ArrayImpl(None, aval)
    out._extra = OnlyType()
    return out


def _rebuild(host, dtype, weak):
    kept = dtypes.canonicalize_dtype(dtype, True)  # of 64 bits only where they are enabled
    if kept != dtype:
        host = host.astype(kept)
    return ArrayImpl(host, make_aval(host.shape, kept, weak))


_SCALARS: dict[tuple, ArrayImpl] = {}
_SCALARS_LIMIT = 4096
_shared: set[int] = set()  # the ids of arrays that live as long as the process


def scalar_array(x, dtype, weak: bool) -> ArrayImpl:
    """A Python number as a 0-d array; the same number gives the same object."""
    key = x, dtype, weak
    found = _SCALARS.get(key) if x else None  # zeros are not cached, because 0.0 == -0.0
    if found is not None:
        return found
    a = as_number(ArrayImpl(np.asarray(x, dtype), make_aval((), dtype, weak)))
    if x and len(_SCALARS) < _SCALARS_LIMIT:
        _SCALARS[key] = shared(a)
    return a


def as_number(a: ArrayImpl) -> ArrayImpl:
    """Mark a scalar as made of a number that stands in the program, and return it.

    Programs that are shown hold such a scalar as a literal, wherever it is used; an array that
    the user made is a constant of the programs inside of the one in which it was made.
    """
    a._is_number = True
    return a


def is_number(a: ArrayImpl) -> bool:
    """Whether a scalar was made of a number that stands in the program."""
    return getattr(a, "_is_number", False)


def folded(of: ArrayImpl, a: ArrayImpl) -> bool:
    """Whether a scalar computed while tracing takes the place of the operation on the scalar `of`.

    It does if it can be a literal where that one can; a constant of a shown program is an operand.
    """
    if is_number(of):
        a._is_number = True
        return True
    made = getattr(state.stage, "made_scalars", None)
    if made is None:
        return True
    _, trace = made.get(id(of), (None, None))
    if trace is not None:
        made[id(a)] = a, trace
    return trace is not None


def as_made(a: ArrayImpl) -> ArrayImpl:
    """A scalar as the user holds it: an array of its own, which belongs to the program being traced."""
    if is_number(a) or is_shared(a):
        a = copied(a)
    made = getattr(state.stage, "made_scalars", None)
    if made is not None:
        made[id(a)] = a, state.stage
    return a


def shared(a: ArrayImpl) -> ArrayImpl:
    """Mark an array as shared: it has many owners, and must not be deleted. Returns the array."""
    _shared.add(id(a))
    return a


def is_shared(a: ArrayImpl) -> bool:
    """Whether the array is shared, as those of cached numbers are, so that its memory must stay."""
    return id(a) in _shared


def copied(a: ArrayImpl) -> ArrayImpl:
    """A copy of `a` with memory of its own, which may be deleted or donated."""
    buffer = a._buffer
    host = a.host if buffer is None else a._host
    return ArrayImpl(host, a.aval, None if buffer is None else seams.runtime.copied(buffer))


def wrap_host(x: np.ndarray, weak: bool = False) -> ArrayImpl:
    """An array that uses a NumPy array without copying it; no one else may write to it."""
    return ArrayImpl(x, make_aval(x.shape, x.dtype, weak))


def as_numpy(x) -> np.ndarray:
    """Anything array-like as a NumPy array.

    Unlike `np.asarray(x)` it loses no interrupt: NumPy drops also what a signal's handler raises on entry of
    `__buffer__`, where nothing can catch it.
    """
    return x.__array__() if isinstance(x, ArrayImpl) else np.asarray(x)


def as_array(x) -> Array:
    """Anything array-like as an `Array`: Python numbers are weakly typed, NumPy arrays are copied.

    Raises:
        TypeError: `x` is not array-like; the message names its type.
    """
    if isinstance(x, Array):
        return x
    t = type(x)
    if t is float or t is int or t is bool or t is complex:
        dtype, weak = dtypes.scalar_type(t)
        if t is int:
            dtypes.check_python_int(x, dtype)
        return scalar_array(x, dtype, weak)
    if isinstance(x, (np.ndarray, np.generic)):
        # the type is tested first, since NumPy imports `np.ma` when it is first read
        if t is not np.ndarray and isinstance(x, np.ndarray) and isinstance(x, np.ma.MaskedArray):
            raise ValueError(
                "numpy masked arrays are not supported, since their masks would be lost. Use "
                "x.filled(value), or pass x.data and x.mask."
            )
        if state.stage is None and guards_transfers():
            return _guarded(x)
        return host_array(x)
    convert = getattr(x, "__jax_array__", None)
    if convert is not None:
        return as_array(convert())
    if isinstance(x, (bool, int, float, complex)):
        return as_array(_plain_number(x))
    if t in _library_values.converters:
        return as_array(_library_values.converters[t](x))
    advice = "Convert it with gradix.numpy.asarray(...), or pass numbers, NumPy arrays or gradix arrays."
    if hasattr(x, "__dict__") and t.__module__.partition(".")[0] not in ("builtins", "types", "functools", "gradix"):
        advice = _elsewhere.of_object(t)
    raise TypeError(f"Value '{_short_repr(x)}' of type {class_of(x)} is not a valid array type. {advice}")


def check_number(x, converters: tuple[str, ...] | None = None) -> None:
    """Log or refuse the transfer of a Python number that the user passed, if it is guarded.

    Numbers that this package writes itself are no transfers: with `converters`, files of functions
    that convert for others, the function they convert for must have been called from outside.
    """
    if type(x) not in _NUMBERS or state.stage is not None:
        return
    if converters is not None:
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and caller.f_code.co_filename in converters:
            caller = caller.f_back
        caller = caller and caller.f_back
        while caller is not None and source.is_inside(caller.f_code.co_filename):
            if caller.f_code.co_name not in ("__call__", "call"):
                return
            caller = caller.f_back
    transfers.check("host_to_device", f"an operand of type {type(x).__name__}")


_NUMBERS = frozenset((bool, int, float, complex))


def _guarded(x) -> ArrayImpl:
    transfers.check("host_to_device", f"an operand of dtype {x.dtype} and shape {x.shape}")
    out = host_array(x)
    out._extra = transfers.FROM_HOST
    return out


def host_array(x: np.ndarray | np.generic) -> ArrayImpl:
    """A copy of a NumPy array, as an `Array`."""
    known = getattr(state.stage, "captured", None)
    if known is not None and x.nbytes > _FEW:
        return _captured(x, known)
    a = wrap_host(canonical_host(x))
    return a if x.ndim else as_number(a)


_FEW = 64  # arrays of at most this many bytes are written into the program's text
_CHUNK = 1 << 20


def _captured(x, known: dict) -> ArrayImpl:
    """The copy of a NumPy array made earlier in this trace; a new one if `x` has changed since."""
    found = known.get(id(x))
    if found is None or not _is_copy(found[1]._host, x):
        # `x` is kept alive, so that no other array can get its id
        found = known[id(x)] = x, wrap_host(canonical_host(x))
    return found[1]


def _is_copy(copy, x) -> bool:
    """Whether `copy` equals a fresh copy of `x` bit for bit; compared in chunks to save memory."""
    if copy is None or not x.ndim or copy.shape != x.shape or copy.dtype != dtypes.canonicalize_dtype(x.dtype):
        return False
    rows = max(1, _CHUNK * len(x) // x.nbytes)
    return all(
        np.ascontiguousarray(x[i : i + rows], copy.dtype).tobytes() == copy[i : i + rows].tobytes()
        for i in range(0, len(x), rows)
    )


def canonical_host(x) -> np.ndarray:
    """A private C-contiguous copy of a NumPy array or scalar in its canonical dtype."""
    dtype = x.dtype
    want = dtypes.canonicalize_dtype(dtype)
    if want is dtype:
        return np.array(x, order="C", subok=False)
    return np.array(x, dtype=want, order="C", subok=False)


def is_array_like(x) -> bool:
    return (
        isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex))
        or hasattr(x, "__jax_array__")
        or type(x) in _library_values.converters
    )


def _short_repr(x) -> str:
    text = repr(x)
    return text if len(text) <= 60 else text[:57] + "..."


def typeof(x):
    """The aval of an array, tracer or anything convertible to one."""
    aval = getattr(x, "aval", None)  # of arrays, and of refs
    return as_array(x).aval if aval is None else aval


def _plain_number(x):
    """An instance of a subclass of bool, int, float or complex as an instance of that class."""
    for kind in (bool, int, float):
        if isinstance(x, kind):
            return kind(x)
    return complex(x)
