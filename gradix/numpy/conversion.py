"""Arrays made of values, buffers, text and other libraries' arrays; copies and casts."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax
from gradix._api.placing import device_put, on_default_device
from gradix._base import config as _config
from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.array import ArrayImpl, as_array, as_made, is_shared, wrap_host
from gradix._core.aval import make_aval
from gradix._core.dtypes import BOOL, COMPLEX, SUPPORTED
from gradix._core.operators import Array
from gradix._core.trace import Tracer, state
from gradix.numpy.placement import place
from gradix.numpy.promotion import as_operand, convert, number, promote_dtypes, raise_rank

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, Device, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec, Sharding

transfers = lazy_module("gradix._base.transfers")

_options = _config.state
_NUMBERS = (float, int, complex, bool)
_PLAIN = frozenset(_NUMBERS)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """A new array of a number, a sequence, a NumPy array, or anything array-like.

    Args:
        object: the values; nested lists may hold arrays and traced arrays. With `device`, they may be
            NumPy's strings of variable length, with which nothing computes.
        dtype: the dtype; by default that of the values, at most 32 bits wide unless x64 is enabled.
        copy: whether the result may be donated or deleted without loss to `object`.
        order: only 'K' is allowed, since arrays have one memory layout.
        ndmin: the least number of axes; missing ones are put in front, with size 1.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Returns:
        An array of the shape of the values: the lengths of nested lists from the outermost to the
        innermost, then the shape of arrays in them.

    Raises:
        TypeError: the values are not numbers, or arrays in a list differ in shape.
        ValueError: nested lists of numbers are ragged, or hold None.
        OverflowError: a Python int does not fit the dtype.
        NotImplementedError: `order` is not 'K'.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array([1, 2.5])
        Array([1. , 2.5], dtype=float32)
        >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.bfloat16).dtype
        dtype(bfloat16)

    See also:
        `jnp.asarray`, which does not copy what is an array already; `jnp.stack`, `jnp.zeros`.
    """
    if args:
        if len(args) > 3:
            raise TypeError(f"array takes at most 5 positional arguments, got {2 + len(args)}. Name the others.")
        warnings.warn(
            "Passing copy, order and ndmin to array by position is deprecated. Name them, as in array(x, copy=False).",
            DeprecationWarning,
            stacklevel=2,
        )
        named = {"copy": (copy, True), "order": (order, "K"), "ndmin": (ndmin, 0)}
        for name, (value, default) in [*named.items()][: len(args)]:
            if value != default:
                raise TypeError(f"array got {name} by position and by name, as {value!r}. Name it alone.")
        given: tuple = (*args, *[value for value, _ in named.values()][len(args) :])
        copy, order, ndmin = given
    if order is not None and order != "K":
        raise NotImplementedError(f"array: order must be 'K', got {order!r}. Leave it out: XLA chooses memory layouts.")
    if (dtype is not None or type(object) is np.ndarray) and _are_strings(object, dtype):
        return _of_strings(object, dtype, device)
    if dtype is not None:
        dtype = dtypes.requested_dtype(dtype, "array", stacklevel=3)
    if _options.jax_transfer_guard_host_to_device is not None and state.stage is None and not isinstance(object, Array):
        transfers.check("host_to_device", f"a new array of a {type(object).__name__}")
    x = _converted(object, dtype)
    if x.aval.ndim < ndmin:
        x = raise_rank(x, ndmin)
    if copy and x is object:
        x = lax._separate(x)
    elif type(x) is ArrayImpl and (is_shared(x) or not x.aval.shape and x is not object):
        x = as_made(x)
    if device is None and out_sharding is None:
        stays = _options.jax_default_device is None and _options.gradix_home_mesh is None
        return x if stays else on_default_device(x)
    return place(x, device, out_sharding)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Device | Sharding | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """An array of the values of `a`; `a` itself if it is such an array already.

    Args:
        a: the values, as for `array`.
        dtype: the dtype to convert to; by default that of the values.
        order: None or 'K'.
        copy: whether the result may be donated or deleted without loss to `a`; by default, the
            result is `a` itself where possible.
        device: the device, or sharding, to which the array goes.
        out_sharding: the sharding of the result.

    Raises:
        TypeError: the values are not numbers.
        ValueError: nested lists of numbers are ragged, or hold None.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.asarray([True, False])
        Array([ True, False], dtype=bool)
        >>> x = jnp.ones(2)
        >>> jnp.asarray(x) is x, jnp.asarray(x, dtype="int32").dtype
        (True, dtype('int32'))

    See also:
        `jnp.array`, which makes a new array; `jnp.astype`, `gradix.device_put`.
    """
    if isinstance(a, Array) and dtype is None and device is None and out_sharding is None and not copy:
        return a
    if dtype is not None and not _are_strings(a, dtype):
        dtype = dtypes.requested_dtype(dtype, "asarray", stacklevel=3)
    return array(a, dtype, copy=bool(copy), order=order or "K", device=device, out_sharding=out_sharding)


# -- strings ---------------------------------------------------------------------------------------


def _are_strings(values, dtype) -> bool:
    """Whether an array of strings is given, or asked for."""
    return getattr(dtype, "kind", "") == "T" or isinstance(values, (np.ndarray, Array)) and values.dtype.kind == "T"


def _of_strings(values, dtype, device) -> Array:
    """An array of strings, which devices only hold.

    Raises:
        TypeError: it is to be made of something else, in another dtype, or on no device.
    """
    have = values.dtype if isinstance(values, (np.ndarray, Array)) else type(values).__name__
    is_asked = getattr(dtype, "kind", "") == "T"
    if getattr(have, "kind", "") != "T" or dtype is not None and not is_asked:
        wanted = dtype if is_asked else dtypes.as_dtype(dtype)
        raise TypeError(
            f"Cannot make an array with dtype {wanted} from an object with dtype {have}. Convert the values first: "
            "np.asarray(values).astype(np.dtypes.StringDType()), or np.asarray(strings).astype(float)."
        )
    if device is None:
        raise TypeError(
            "array: strings are held by CPU devices, where nothing computes with them. Pass device=, as "
            "gradix.devices('cpu')[0], or number the distinct ones for computing with them: values, codes = "
            "np.unique(x, return_inverse=True)."
        )
    return device_put(values, device)


# -- values of every kind --------------------------------------------------------------------------


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
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__") or isinstance(x, (memoryview, bytearray)):
        return _from_numpy(np.asarray(x), dtype)
    if hasattr(x, "__len__") and hasattr(x, "__getitem__") and not isinstance(x, (str, bytes, dict)):
        return _from_sequence(list(x), dtype)
    if hasattr(x, "__next__"):
        raise TypeError(f"array: {x!r} has no size known beforehand. Write array(list(x)).")
    if isinstance(x, dict):
        raise TypeError(
            "array: a dict has names, which arrays have not. It is a pytree, gradix.tree.map(jnp.asarray, x), or "
            f"take its values, jnp.array(list(x.values())); got one with the keys {list(x)!r}."
        )
    if isinstance(x, (set, frozenset)):
        raise TypeError("array: a set has no order, which arrays have. Write array(sorted(x)).")
    raise _no_array(x, np.asarray(x).dtype)


def _no_number() -> ValueError:
    return ValueError("array: a value is None, which is not a number. Write jnp.nan for a missing value.")


def _no_array(x, dtype) -> TypeError:
    text = repr(x)
    text = text if len(text) < 60 else text[:57] + "..."
    return TypeError(
        f"Value '{text}' with dtype {dtype} cannot become an array. {dtypes.refusal(dtype)} Give "
        "numbers, booleans, NumPy arrays of them, or nested lists of these."
    )


def _from_number(x, dtype) -> Array:
    if dtype is None:
        return number(x, *dtypes.scalar_type(type(x)))
    if type(x) is int and dtype in dtypes.INTEGER:
        dtypes.check_python_int(x, dtype)
    with np.errstate(over="ignore"):
        return ArrayImpl(np.asarray(x, dtype), make_aval((), dtype))


def _from_text(x, dtype) -> Array:
    """The numbers in a text, or in nested lists of texts, in the given dtype."""
    return wrap_host(np.array(x, dtype=dtype))


def _cast(x, dtype) -> Array:
    if x.aval.dtype in COMPLEX and dtype not in COMPLEX and dtype not in BOOL:
        warnings.warn(
            "Converting complex numbers to a real dtype drops their imaginary parts. Write "
            "jnp.real(x) if you mean that.",
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
    """An array of a nested list; it is made on the host if the list holds no traced arrays."""
    kinds = _leaf_types(x)
    if type(None) in kinds:
        raise _no_number()
    if kinds <= _PLAIN:
        return _from_plain(x, kinds, dtype)
    if not any(issubclass(t, (Array, np.ndarray, np.generic)) or hasattr(t, "__jax_array__") for t in kinds):
        return _from_foreign(x, kinds, dtype)
    if any(issubclass(t, Tracer) for t in kinds) or any(hasattr(t, "__jax_array__") for t in kinds):
        return _stacked(x, dtype)
    return _from_arrays(x, dtype)


def _leaf_types(x, depth: int = 64) -> set[type]:
    kinds = set(map(type, x))
    if list in kinds or tuple in kinds:
        if not depth:
            raise ValueError("array: lists are nested more than 64 deep, or one contains itself.")
        kinds -= {list, tuple}
        for item in x:
            if type(item) is list or type(item) is tuple:
                kinds |= _leaf_types(item, depth - 1)
    return kinds


def _from_plain(x, kinds, dtype) -> Array:
    """An array of a nested list of Python numbers."""
    if dtype is None:
        kind = next((k for k in (complex, float, int, bool) if k in kinds), float)
        dtype = dtypes.python_scalar_dtype(kind)
    with np.errstate(over="ignore"):
        try:
            return wrap_host(np.array(x, dtype=dtype))
        except ValueError as error:
            raise _of_lengths(x) or error from None


def _of_lengths(x, place: str = "") -> ValueError | None:
    """The error for lists of different lengths in a nested list; None if all have equal ones."""
    lengths = [len(item) if isinstance(item, (list, tuple)) else None for item in x]
    odd = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
    if odd is None:
        found = (_of_lengths(item, f"{place}[{i}]") for i, item in enumerate(x) if isinstance(item, (list, tuple)))
        return next((error for error in found if error is not None), None)
    said = [
        f"element {place}[{i}] is {'a number' if (n := lengths[i]) is None else f'a list of {n}'}" for i in (0, odd)
    ]
    return ValueError(
        f"setting an array element with a sequence of inhomogeneous shape: {' and '.join(said)}, but the rows of an "
        "array have one length. Pad the shorter ones, or keep them as they are in gradix.Ragged.of(rows)."
    )


def _from_foreign(x, kinds, dtype) -> Array:
    """An array of a nested list that holds objects other than numbers and arrays."""
    if dtype is not None and kinds <= {str, bytes, *_NUMBERS}:
        return _from_text(x, dtype)
    h = np.array(x)
    if h.dtype not in SUPPORTED:
        raise _no_array(x, h.dtype)
    return _from_numpy(h, dtype)


def _from_arrays(x, dtype) -> Array:
    """An array of a nested list of concrete arrays and numbers."""
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
        f"array: arrays in a list must have one shape, got {shapes}. Use jnp.concatenate to join "
        "arrays of different sizes, or jnp.pad to make their sizes equal."
    )


def _leaves(x, out: list) -> None:
    for item in x:
        if type(item) is list or type(item) is tuple:
            _leaves(item, out)
        else:
            out.append(item if isinstance(item, (Array, *_NUMBERS)) else as_array(item))


def _host_values(x):
    return [
        _host_values(item) if type(item) in (list, tuple) else item.host if isinstance(item, ArrayImpl) else item
        for item in x
    ]


def _stacked(x, dtype) -> Array:
    """An array of a nested list with traced arrays, joined along a new first axis at each level."""
    parts = [_stacked(item, dtype) if type(item) in (list, tuple) and item else _converted(item, dtype) for item in x]
    parts = promote_dtypes("array", *parts)
    parts = [convert(p, p.aval.dtype) for p in parts]
    shapes = {p.aval.shape for p in parts}
    if len(shapes) > 1:
        raise _ragged(", ".join(map(str, sorted(shapes))))
    rows = [lax.broadcast_in_dim(p, (1, *p.aval.shape), tuple(range(1, p.aval.ndim + 1))) for p in parts]
    return lax.concatenate(rows, 0)


# -- copies and casts ------------------------------------------------------------------------------


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array, of the same shape and dtype.

    Raises:
        NotImplementedError: `order` is not "K".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.copy(jnp.arange(3))
        Array([0, 1, 2], dtype=int32)
    """
    x = as_operand("copy", a)
    if order not in (None, "K"):
        raise NotImplementedError(f"copy: order must be 'K', got {order!r}. Leave it out: XLA chooses memory layouts.")
    return lax._separate(x)


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Device | Sharding | None = None) -> Array:
    """An array converted to a dtype.

    Args:
        x: the array.
        dtype: the dtype; None is the default floating dtype.
        copy: whether the result must have memory of its own, which stays when that of `x` is
            donated.
        device: the device, or sharding, to which the result goes.

    Returns:
        An array of the shape of `x`.

    Raises:
        ValueError: random keys are to become numbers, or numbers keys.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.astype(jnp.array([1.7, -1.7]), int)
        Array([ 1, -1], dtype=int32)
    """
    return converted(x, dtype, device, copy)


def converted(x, dtype, device=None, copy: bool = False):
    """The result of `astype`, function or method; warnings point at the caller of either."""
    x = as_operand("astype", x)
    dtype = dtypes.requested_dtype(dtype, "astype", stacklevel=4)
    own = x.aval.dtype
    if own in COMPLEX and dtype not in COMPLEX and dtype in SUPPORTED:
        if dtype in BOOL:
            return lax.ne(x, number(0, own))
        warnings.warn(
            "astype from a complex to a real dtype drops the imaginary part. Use jnp.real or "
            "jnp.imag to take the part you mean.",
            DeprecationWarning,
            stacklevel=3,
        )
    if dtypes.is_extended(own) != dtypes.is_extended(dtype):
        raise ValueError(
            f"astype cannot convert {own} to {dtype}. Use random.key_data for the numbers of keys, "
            "and random.wrap_key_data for keys of numbers."
        )
    out = convert(x, dtype)
    if copy and out is x:
        out = lax._separate(x)
    return out if device is None else place(out, device, None)
