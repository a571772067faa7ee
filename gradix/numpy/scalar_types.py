"""The scalar types, such as `jnp.float32`, and functions that answer questions about dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import ml_dtypes
import numpy as np

from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix.numpy.conversion import asarray

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike

dtype = np.dtype
generic, number, inexact, integer = np.generic, np.number, np.inexact, np.integer
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
finfo, iinfo = dtypes.finfo, dtypes.iinfo
ComplexWarning = np.exceptions.ComplexWarning


class _ScalarMeta(type):
    """The type of scalar types, which make arrays when called and equal NumPy's scalar types."""

    dtype: np.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other) -> bool:
        return cls is other or cls.dtype.type == other or (isinstance(other, np.dtype) and cls.dtype == other)

    def __ne__(cls, other) -> bool:
        return not cls == other

    def __call__(cls, x) -> Array:
        return asarray(x, dtype=dtypes.requested_dtype(cls.dtype, cls.__name__, stacklevel=3))

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, cls.dtype.type)


# For the example of each scalar type: values, and what it makes of them.
_ROUNDED = {
    "bfloat16": "[0.30078125]",
    "float16": "[0.300048828125]",
    "float32": "[0.30000001192092896]",
    "float64": "[0.3]",
    "float4_e2m1fn": "[0.5]",
    "float8_e3m4": "[0.296875]",
    "float8_e8m0fnu": "[0.25]",
}
_SHOWN = {
    "bool": ("[0, 2]", "[False, True]"),
    "complex64": ("[1, 2j]", "[(1+0j), 2j]"),
    "complex128": ("[1, 2j]", "[(1+0j), 2j]"),
    **{f"int{n}": (f"[{-(2 ** (n - 1))}, {2 ** (n - 1) - 1}]",) * 2 for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": (f"[0, {2**n - 1}]",) * 2 for n in (2, 4, 8, 16, 32, 64)},
}


def _example(name: str) -> str:
    given, shown = _SHOWN.get(name) or ("[0.3]", _ROUNDED.get(name, "[0.3125]"))
    make = f">>> x = jnp.{name}({given})"
    if name in ("int64", "uint64", "float64", "complex128"):
        make = f">>> with gradix.enable_x64(True):\n        ...     x = jnp.{name}({given})"
    return f"""
    Example:
        >>> import gradix, gradix.numpy as jnp
        {make}
        >>> x.dtype.name, x.tolist()
        ('{name}', {shown})
    """


def _scalar_type(scalar: type, name: str) -> type:
    kind = "boolean" if scalar is np.bool_ else name
    summary = f"The {kind} scalar type: it stands for a dtype and makes an array when called."
    body = {
        "dtype": np.dtype(scalar),
        "__module__": "gradix.numpy",
        "__qualname__": name,
        "__doc__": f"{summary}\n{_example(name)}",
    }
    return _ScalarMeta(name, (), body)


bool_ = _scalar_type(np.bool_, "bool")
int2, int4 = _scalar_type(ml_dtypes.int2, "int2"), _scalar_type(ml_dtypes.int4, "int4")
int8, int16 = _scalar_type(np.int8, "int8"), _scalar_type(np.int16, "int16")
int32, int64 = _scalar_type(np.int32, "int32"), _scalar_type(np.int64, "int64")
uint2, uint4 = _scalar_type(ml_dtypes.uint2, "uint2"), _scalar_type(ml_dtypes.uint4, "uint4")
uint8, uint16 = _scalar_type(np.uint8, "uint8"), _scalar_type(np.uint16, "uint16")
uint32, uint64 = _scalar_type(np.uint32, "uint32"), _scalar_type(np.uint64, "uint64")
float4_e2m1fn = _scalar_type(ml_dtypes.float4_e2m1fn, "float4_e2m1fn")
float8_e3m4 = _scalar_type(ml_dtypes.float8_e3m4, "float8_e3m4")
float8_e4m3 = _scalar_type(ml_dtypes.float8_e4m3, "float8_e4m3")
float8_e4m3b11fnuz = _scalar_type(ml_dtypes.float8_e4m3b11fnuz, "float8_e4m3b11fnuz")
float8_e4m3fn = _scalar_type(ml_dtypes.float8_e4m3fn, "float8_e4m3fn")
float8_e4m3fnuz = _scalar_type(ml_dtypes.float8_e4m3fnuz, "float8_e4m3fnuz")
float8_e5m2 = _scalar_type(ml_dtypes.float8_e5m2, "float8_e5m2")
float8_e5m2fnuz = _scalar_type(ml_dtypes.float8_e5m2fnuz, "float8_e5m2fnuz")
float8_e8m0fnu = _scalar_type(ml_dtypes.float8_e8m0fnu, "float8_e8m0fnu")
bfloat16, float16 = (_scalar_type(ml_dtypes.bfloat16, "bfloat16"), _scalar_type(np.float16, "float16"))
float32, float64 = _scalar_type(np.float32, "float32"), _scalar_type(np.float64, "float64")
complex64, complex128 = (_scalar_type(np.complex64, "complex64"), _scalar_type(np.complex128, "complex128"))
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype to which two dtypes promote.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.promote_types("int32", "float16")
        dtype('float16')
    """
    return dtypes.promote_types(a, b)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is another one, or lies under it in the hierarchy of abstract types.

    Raises:
        TypeError: `arg1` is an array of NumPy.
        ValueError: `arg1` is an array of random keys.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.issubdtype("bfloat16", jnp.floating)
        True
        >>> jnp.issubdtype(jnp.ones(2).dtype, jnp.integer)
        False

    See also:
        `jnp.isdtype`, `jnp.result_type`, `jnp.can_cast`.
    """
    if isinstance(arg1, np.ndarray):
        raise TypeError(f"issubdtype compares dtypes, got an array of shape {arg1.shape}. Pass its dtype, x.dtype.")
    if dtypes.is_extended(getattr(arg1, "dtype", None)) and isinstance(arg1, Array):
        raise ValueError(f"issubdtype compares dtypes, got an array of {arg1.dtype}. Pass its dtype, keys.dtype.")
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: Any) -> np.dtype:
    """The dtype to which arrays, Python numbers and dtypes promote.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.result_type(jnp.arange(3), 2.0)
        dtype('float32')
    """
    return dtypes.result_type(*args)


def can_cast(
    from_: ArrayLike | DTypeLike, to: DTypeLike, casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "safe"
) -> bool:
    """Whether NumPy's rule `casting` allows to convert one dtype to another.

    Args:
        from_: a dtype, or an array.
        to: a dtype.
        casting: the rule, "no", "equiv", "safe", "same_kind" or "unsafe".

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.can_cast("int32", "float32")
        False
    """
    source: Any
    target: Any
    source, target = [np.dtype(x) if isinstance(x, _ScalarMeta) else x for x in (from_, to)]
    return np.can_cast(source, target, casting=casting)


_KINDS = {
    "bool": dtypes.BOOL,
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.INTEGER,
    "real floating": dtypes.FLOAT,
    "complex floating": dtypes.COMPLEX,
    "numeric": dtypes.NUMERIC,
}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Whether a dtype is of a kind of the array API standard.

    Args:
        dtype: the dtype.
        kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex
            floating', 'numeric', a dtype, or a tuple of these.

    Raises:
        ValueError: the kind is unknown.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isdtype("bfloat16", ("bool", "real floating"))
        True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    own = dtypes.as_dtype(dtype)
    if isinstance(kind, str) and kind in _KINDS:
        return own in _KINDS[kind]
    try:
        return own == dtypes.as_dtype(kind)
    except TypeError:
        raise ValueError(
            f"isdtype: kind must be one of {', '.join(map(repr, _KINDS))}, a dtype or a tuple of these, got {kind!r}."
        ) from None


def isscalar(element: Any) -> bool:
    """Whether `element` is a number, or an array without axes.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.isscalar(jnp.float32(1)), jnp.isscalar(jnp.ones(1))
        (True, False)
    """
    if isinstance(element, Array):
        return element.aval.ndim == 0
    if hasattr(element, "__jax_array__"):
        return as_array(element).aval.ndim == 0
    return np.isscalar(element) or (isinstance(element, np.ndarray) and element.ndim == 0)


def iterable(y: Any) -> bool:
    """Whether one can iterate over `y`.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.iterable(jnp.ones(3)), jnp.iterable(2)
        (True, False)
    """
    if isinstance(y, Array):
        return y.ndim > 0
    try:
        iter(y)
    except TypeError:
        return False
    return True
