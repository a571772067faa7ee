"""Arrays from values: array, asarray, copy, astype, and from buffers, text and other libraries."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradix import lax
from gradix._api.placing import on_default_device
from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, copied, is_shared, wrap_host
from gradix._core.aval import make_aval
from gradix._core.dtypes import BOOL, COMPLEX, SUPPORTED
from gradix._core.operators import Array
from gradix._core.trace import Tracer, state
from gradix.numpy.placement import place
from gradix.numpy.promotion import as_operand, convert, number, promote_dtypes, raise_rank

transfers = lazy_module("gradix._base.transfers")

_options = _config.state
_NUMBERS = (float, int, complex, bool)
_PLAIN = frozenset(_NUMBERS)


def array(
    object,
    dtype=None,
    *args,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device=None,
    out_sharding=None,
) -> Array:
    """An array made of a number, a sequence, a NumPy array or anything array-like; always a new one.

    Args:
        object: the values: nested lists may hold arrays and traced arrays.
        dtype: the dtype; by default that of the values, at most 32 bits wide unless x64 is enabled.
        copy: whether the result may be donated or deleted without loss to `object`.
        order: 'K' only: arrays have one memory layout.
        ndmin: least number of axes; axes of size 1 are put in front.
        device: the device, or sharding, the array goes to.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: the values are no numbers.
        ValueError: nested lists are ragged, or hold None.
        OverflowError: a Python int does not fit the dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array([1, 2.5])
        Array([1. , 2.5], dtype=float32)
    """
    if args:
        raise TypeError(
            f"array takes object and dtype as positional arguments, got {2 + len(args)}."
        )
    if order is not None and order != "K":
        raise NotImplementedError(
            f"array: only order='K' is supported, got order={order!r}: XLA chooses layouts."
        )
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "array", stacklevel=3)
    if (
        _options.jax_transfer_guard_host_to_device is not None
        and state.stage is None
        and not isinstance(object, Array)
    ):
        transfers.check("host_to_device", f"a new array of a {type(object).__name__}")
    x = _converted(object, dtype)
    if x.aval.ndim < ndmin:
        x = raise_rank(x, ndmin)
    if type(x) is ArrayImpl and (copy if x is object else is_shared(x)):
        x = copied(x)
    if device is None and out_sharding is None:
        return x if _options.jax_default_device is None else on_default_device(x)
    return place(x, device, out_sharding)


def asarray(
    a,
    dtype=None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device=None,
    out_sharding=None,
) -> Array:
    """An array of the values of `a`; `a` itself when it is one already.

    Args:
        a: the values, as for `array`.
        dtype: the dtype to convert to.
        order: None or 'K'.
        copy: whether the result may be donated or deleted without loss to `a`; by default it is `a`
            where it can be.
        device: the device, or sharding, the array goes to.
        out_sharding: the sharding of the result.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.asarray([True, False])
        Array([ True, False], dtype=bool)
    """
    if (
        isinstance(a, Array)
        and dtype is None
        and device is None
        and out_sharding is None
        and not copy
    ):
        return a
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "asarray", stacklevel=3)
    return array(
        a, dtype, copy=bool(copy), order=order or "K", device=device, out_sharding=out_sharding
    )


# -- values of every sort --------------------------------------------------------------------------


def _converted(x, dtype) -> Array:
    if isinstance(x, Array):
        return x if dtype is None else _cast(x, dtype)
    t = type(x)
    if t in _NUMBERS:
        return _from_number(x, dtype)
    if (t is str or t is bytes) and dtype is not None:
        return _from_text(x, dtype)
    if t is list or t is tuple:
        return _from_sequence(x, dtype)
    if isinstance(x, (np.ndarray, np.generic)):
        return _from_numpy(x, dtype)
    if hasattr(x, "__jax_array__"):
        return _converted(x.__jax_array__(), dtype)
    if isinstance(x, _NUMBERS):
        kind: Any = next(b for b in (bool, *_NUMBERS) if isinstance(x, b))
        return _from_number(kind(x), dtype)
    if x is None:
        raise _no_number()
    if isinstance(x, (list, tuple, range)):
        return _from_sequence(list(x), dtype)
    if (
        hasattr(x, "__array__")
        or hasattr(x, "__array_interface__")
        or isinstance(x, (memoryview, bytearray))
    ):
        return _from_numpy(np.asarray(x), dtype)
    if (
        hasattr(x, "__len__")
        and hasattr(x, "__getitem__")
        and not isinstance(x, (str, bytes, dict))
    ):
        return _from_sequence(list(x), dtype)
    raise _no_array(x, np.asarray(x).dtype)


def _no_number() -> ValueError:
    return ValueError(
        "None is not a valid value for jnp.array: it has no number. Use jnp.nan for a missing value."
    )


def _no_array(x, dtype) -> TypeError:
    text = repr(x)
    text = text if len(text) < 60 else text[:57] + "..."
    return TypeError(
        f"Value '{text}' with dtype {dtype} is not a valid array type. Only arrays of numeric types are "
        "supported: numbers, booleans, NumPy arrays, and nested lists of these."
    )


def _from_number(x, dtype) -> Array:
    if dtype is None:
        return number(x, *dtypes.scalar_type(type(x)))
    if type(x) is int and dtype in dtypes.INTEGER:
        dtypes.check_python_int(x, dtype)
    with np.errstate(over="ignore"):
        return ArrayImpl(np.asarray(x, dtype), make_aval((), dtype))


def _from_text(x, dtype) -> Array:
    """Numbers read from text, in the dtype named."""
    return wrap_host(np.array(x, dtype=dtype))


def _cast(x, dtype) -> Array:
    if x.aval.dtype in COMPLEX and dtype not in COMPLEX and dtype not in BOOL:
        warnings.warn(
            "Casting complex values to real discards the imaginary part; take jnp.real(x) to say so.",
            np.exceptions.ComplexWarning,
            stacklevel=4,
        )
    return convert(x, dtype)


def _from_numpy(x, dtype) -> Array:
    if x.dtype not in SUPPORTED:
        if x.dtype == dtypes.float0:
            return ArrayImpl(np.zeros(x.shape, dtypes.float0), make_aval(x.shape, dtypes.float0))
        if not x.dtype.isnative and x.dtype.newbyteorder("=") in SUPPORTED:
            return _from_numpy(x.astype(x.dtype.newbyteorder("=")), dtype)
        raise _no_array(x, x.dtype)
    want = dtypes.canonicalize_dtype(x.dtype) if dtype is None else dtype
    if x.dtype in COMPLEX and want not in COMPLEX and want not in BOOL:
        return _cast(wrap_host(np.array(x)), want)
    with np.errstate(all="ignore"):
        return wrap_host(np.array(x, dtype=want, order="C", subok=False))


def _from_sequence(x, dtype) -> Array:
    """A nested list; on the host when it holds no traced arrays."""
    kinds = _leaf_types(x)
    if type(None) in kinds:
        raise _no_number()
    if kinds <= _PLAIN:
        return _from_plain(x, kinds, dtype)
    if not any(
        issubclass(t, (Array, np.ndarray, np.generic)) or hasattr(t, "__jax_array__") for t in kinds
    ):
        return _from_foreign(x, kinds, dtype)
    if any(issubclass(t, Tracer) for t in kinds) or any(hasattr(t, "__jax_array__") for t in kinds):
        return _stacked(x, dtype)
    return _from_arrays(x, dtype)


def _leaf_types(x) -> set[type]:
    kinds = set(map(type, x))
    if list in kinds or tuple in kinds:
        kinds -= {list, tuple}
        for item in x:
            if type(item) is list or type(item) is tuple:
                kinds |= _leaf_types(item)
    return kinds


def _from_plain(x, kinds, dtype) -> Array:
    """A nested list of Python numbers."""
    if dtype is None:
        kind = next((k for k in (complex, float, int, bool) if k in kinds), float)
        dtype = dtypes.python_scalar_dtype(kind)
    with np.errstate(over="ignore"):
        return wrap_host(np.array(x, dtype=dtype))


def _from_foreign(x, kinds, dtype) -> Array:
    """A nested list with something else than numbers in it."""
    if dtype is not None and kinds <= {str, bytes, *_NUMBERS}:
        return _from_text(x, dtype)
    h = np.array(x)
    if h.dtype not in SUPPORTED:
        raise _no_array(x, h.dtype)
    return _from_numpy(h, dtype)


def _from_arrays(x, dtype) -> Array:
    """A nested list of concrete arrays and numbers."""
    leaves: list = []
    _leaves(x, leaves)
    if dtype is None:
        dtype, _ = dtypes.promote(*leaves)
    if any(dtypes.is_extended(getattr(v, "dtype", None)) for v in leaves):
        return _stacked(x, dtype)
    with np.errstate(all="ignore"):
        try:
            return wrap_host(np.array(_host_values(x), dtype=dtype))
        except ValueError:
            if not any(issubclass(t, Array) for t in _leaf_types(x)):
                raise
            raise _ragged(", ".join([str(np.shape(v)) for v in leaves])) from None


def _ragged(shapes: str) -> TypeError:
    return TypeError(
        f"An array of arrays needs parts of one shape, got {shapes}. jnp.concatenate joins parts of "
        "different size, jnp.pad makes sizes equal."
    )


def _leaves(x, out: list) -> None:
    for item in x:
        if type(item) is list or type(item) is tuple:
            _leaves(item, out)
        else:
            out.append(item if isinstance(item, (Array, *_NUMBERS)) else as_array(item))


def _host_values(x):
    return [
        _host_values(item)
        if type(item) in (list, tuple)
        else item.host
        if isinstance(item, ArrayImpl)
        else item
        for item in x
    ]


def _stacked(x, dtype) -> Array:
    """A nested list with traced arrays in it: joined along a new first axis, level by level."""
    parts = [
        _stacked(item, dtype) if type(item) in (list, tuple) and item else _converted(item, dtype)
        for item in x
    ]
    parts = promote_dtypes("array", *parts)
    parts = [convert(p, p.aval.dtype) for p in parts]
    shapes = {p.aval.shape for p in parts}
    if len(shapes) > 1:
        raise _ragged(f"{', '.join(map(str, sorted(shapes)))}")
    rows = [
        lax.broadcast_in_dim(p, (1, *p.aval.shape), tuple(range(1, p.aval.ndim + 1))) for p in parts
    ]
    return lax.concatenate(rows, 0)


# -- copies and casts ------------------------------------------------------------------------------


def copy(a, order: str | None = None) -> Array:
    """A copy of an array.

    Raises:
        NotImplementedError: `order` is not "K".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.copy(jnp.arange(3))
        Array([0, 1, 2], dtype=int32)
    """
    x = as_operand("copy", a)
    if order not in (None, "K"):
        raise NotImplementedError(f"copy: only order='K' is supported, got order={order!r}.")
    return copied(x) if type(x) is ArrayImpl else x


def astype(x, dtype, /, *, copy: bool = False, device=None) -> Array:
    """An array converted to a dtype.

    Args:
        x: the array.
        dtype: the dtype; None means the default floating one.
        copy: has no visible effect: arrays are immutable.
        device: the device, or sharding, the result goes to.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.astype(jnp.array([1.7, -1.7]), int)
        Array([ 1, -1], dtype=int32)
    """
    del copy
    return converted(x, dtype, device)


def converted(x, dtype, device=None):
    """What `astype`, function or method, does; its warnings point at their caller's caller."""
    x = as_operand("astype", x)
    dtype = dtypes.requested_dtype(dtype, "astype", stacklevel=4)
    own = x.aval.dtype
    if own in COMPLEX and dtype not in COMPLEX and dtype in SUPPORTED:
        if dtype in BOOL:
            return lax.ne(x, number(0, own))
        warnings.warn(
            "Casting from complex to real dtypes discards the imaginary part. Use jnp.real or jnp.imag to "
            "take the part you mean.",
            DeprecationWarning,
            stacklevel=3,
        )
    if dtypes.is_extended(own) != dtypes.is_extended(dtype):
        raise ValueError(
            f"astype cannot convert {own} to {dtype}: use random.key_data, random.wrap_key_data."
        )
    out = convert(x, dtype)
    return out if device is None else place(out, device, None)


def from_dlpack(x, /, *, device=None, copy: bool | None = None) -> Array:
    """An array of the values of another library's array, through the DLPack protocol.

    Args:
        x: an object with `__dlpack__` and `__dlpack_device__`.
        device: the device the array goes to.
        copy: False refuses a copy; values of other libraries are always copied.

    Example:
        >>> import numpy as np, gradix.numpy as jnp
        >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
        Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(x, Array):
        return x if device is None else place(x, device, None)
    if copy is False:
        raise ValueError(
            "from_dlpack(copy=False) is not possible: arrays are immutable, the values' owner is not. "
            "Leave copy out."
        )
    if not hasattr(x, "__dlpack__"):
        raise TypeError(
            f"from_dlpack needs an object with __dlpack__ and __dlpack_device__, got {type(x)}."
        )
    return array(np.from_dlpack(x), device=device)


def frombuffer(buffer, dtype=float, count: int = -1, offset: int = 0) -> Array:
    """An array of the bytes of a buffer.

    Args:
        buffer: bytes, or anything with the buffer interface.
        dtype: how to read them.
        count: how many elements; -1 for all.
        offset: the byte to begin at.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.frombuffer(b"abc", dtype="uint8")
        Array([97, 98, 99], dtype=uint8)
    """
    return _read(
        np.frombuffer(buffer, dtype=dtypes.as_dtype(dtype), count=count, offset=offset), dtype
    )


def _read(x: np.ndarray, dtype) -> Array:
    """Numbers read in a dtype the user named: narrowed without a warning where 64 bits are not available."""
    return asarray(
        x, x.dtype if dtypes.keeps_explicit_x64() and dtype not in (float, int, complex) else None
    )


def fromstring(string: str, dtype=float, count: int = -1, *, sep: str) -> Array:
    """An array of the numbers in a text.

    Args:
        string: the text.
        dtype: their dtype.
        count: how many to read; -1 for all.
        sep: what separates them.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.fromstring("1 2 3", int, sep=" ")
        Array([1, 2, 3], dtype=int32)
    """
    return _read(np.fromstring(string, dtype=dtypes.as_dtype(dtype), count=count, sep=sep), dtype)


def fromfile(*args, **kwargs):
    """Not supported: reading a file is an effect. Write `jnp.asarray(numpy.fromfile(...))`.

    Raises:
        NotImplementedError: always; the message says what to write.

    Example:
        >>> import gradix.numpy as jnp, numpy, tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(bytes(3)) and file.seek(0)
        ...     jnp.asarray(numpy.fromfile(file, numpy.uint8))
        Array([0, 0, 0], dtype=uint8)
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented: reading a file while a program is traced would "
        "happen once, not at each call. Use jnp.asarray(np.fromfile(...)) before tracing."
    )


def fromiter(*args, **kwargs):
    """Not supported: it would consume an iterator while tracing. Write `jnp.asarray(numpy.fromiter(...))`.

    Raises:
        NotImplementedError: always; the message says what to write.

    Example:
        >>> import gradix.numpy as jnp, numpy
        >>> jnp.asarray(numpy.fromiter((n * n for n in range(3)), numpy.int32))
        Array([0, 1, 4], dtype=int32)
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented: consuming an iterator while a program is traced "
        "would happen once, not at each call. Use jnp.asarray(np.fromiter(...)) before."
    )
