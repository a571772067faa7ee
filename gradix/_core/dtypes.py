"""Dtypes as operations use them: canonical widths, weak types, promotion, limits, hierarchy."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np

from gradix._base.config import is_x64, state
from gradix._core.dimensions.expression import is_symbolic_dim
from gradix._core.promotion import STRICT, TypePromotionError, default_dtype, promote_all, promote_nodes, promote_pair
from gradix._core.scalar_types import (
    BITWISE,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    KEY,
    KEYS,
    NARROW_FLOAT,
    NARROW_INTEGER,
    NUMERIC,
    ORDERED,
    SIGNED,
    SUPPORTED,
    UNSIGNED,
    ExtendedDType,
    KeyType,
    as_dtype,
    dtype_name,
    extended,
    float0,
    is_complex,
    is_extended,
    is_float,
    is_integer,
    is_signed,
    itemsize_bits,
    physical_dtype,
    prng_key,
    short_name,
)

bfloat16 = ml_dtypes.bfloat16

# ---------------------------------------------------------------- canonical width
_NARROWED = {
    np.dtype(a): np.dtype(b)
    for a, b in (("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64"))
}
_PYTHON_SCALARS = (bool, int, float, complex)


def _canonical_table(x64: bool) -> dict:
    """Dtypes, their names, scalar types and Python types -> dtypes of canonical width."""
    table: dict = {}
    for dtype in SUPPORTED:
        table[dtype] = table[dtype.name] = table[dtype.type] = dtype if x64 else _NARROWED.get(dtype, dtype)
    return table | {t: table[np.dtype(t)] for t in _PYTHON_SCALARS}


_CANONICAL = _canonical_table(False), _canonical_table(True)  # indexed by the option jax_enable_x64


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype at the width in force: 64-bit dtypes become 32-bit ones unless x64 is enabled.

    Args:
        dtype: a dtype, its name, or a scalar type.
        allow_extended_dtype: return extended dtypes, such as those of random keys, as they are.

    Raises:
        TypeError: `dtype` is not a dtype, or one of objects, texts, dates or records.
        ValueError: `dtype` is extended, and these are not allowed.

    Example:
        >>> canonicalize_dtype("bfloat16")
        dtype(bfloat16)
    """
    try:
        return _CANONICAL[state.jax_enable_x64][dtype]
    except (KeyError, TypeError):
        d = as_dtype(dtype)
    if isinstance(d, ExtendedDType):
        if allow_extended_dtype:
            return d
        raise ValueError(
            f"canonicalize_dtype got the extended dtype {d}, which has no NumPy form. "
            "Pass allow_extended_dtype=True to keep it."
        )
    if d not in SUPPORTED and d != float0 and d.kind in _INSTEAD:
        raise TypeError(refusal(d))
    return d if is_x64() else _NARROWED.get(d, d)


def refusal(dtype) -> str:
    """Why there are no arrays of one of NumPy's dtypes, and what to write instead."""
    advice = _INSTEAD.get(dtype.kind, "Convert the values to numbers first")
    if dtype.kind == "V" and dtype.names is None:  # numbers of ml_dtypes that XLA does not compute with, such as int1
        advice = "Convert the numbers to a dtype that holds them, such as int8 or float32, with x.astype(...)"
    return f"Gradix arrays hold numbers and booleans, got dtype {dtype}. {advice}."


_CODES = "Number the distinct ones, values, codes = np.unique(x, return_inverse=True), and pass the codes"
_TIMES = "Convert them to numbers of a unit first, x.astype('{0}64[s]').astype('int64')"
# The kinds of NumPy's dtypes that arrays do not hold, and what to write instead.
_INSTEAD = {
    "O": "Convert the objects first, np.asarray(x.tolist(), float); lists of different lengths have "
    "to be padded, or passed one by one in a list",
    "U": _CODES,
    "S": _CODES,
    "M": _TIMES.format("datetime"),
    "m": _TIMES.format("timedelta"),
    "V": "Pass the fields by name, {name: x[name] for name in x.dtype.names}",
}


_ENABLE_X64 = (
    "Enable 64-bit types with gradix.config.update('jax_enable_x64', True), JAX_ENABLE_X64=1 in the "
    "environment or `with gradix.enable_x64():`; keep only explicitly requested ones with "
    "gradix.config.update('explicit_x64', 'honour')"
)


def truncation_warning(requested, name: str | None = None) -> str:
    """The warning for a 64-bit dtype that was requested while x64 is off."""
    return (
        f"{_unavailable(requested, name)}, and will be truncated to dtype {_NARROWED[requested]}. {_ENABLE_X64}, "
        f"or ask for {_NARROWED[requested]}."
    )


def _unavailable(requested, name: str | None) -> str:
    return f"Explicitly requested dtype {requested}{f' requested in {name}' if name else ''} is not available"


def keeps_explicit_x64() -> bool:
    """Whether requested 64-bit dtypes are kept while x64 is off, by explicit_x64="honour"."""
    return state.jax_explicit_x64_dtypes == "allow"


def requested_dtype(dtype: Any, name: str | None = None, stacklevel: int = 3):
    """The canonical dtype of a user's `dtype=` argument of function `name`; warns if it narrows.

    Python's `int`, `float` and `complex`, and None, mean the default width and never warn.

    Raises:
        TypeError: `dtype` is not a dtype, or one that no array can have.
        ValueError: `dtype` is an array, or it would narrow under the option
            jax_explicit_x64_dtypes="error".
    """
    if dtype is None or dtype is float or dtype is int or dtype is complex:
        return canonicalize_dtype(dtype)
    if not isinstance(dtype, (np.dtype, type, str)):
        _check_no_array(dtype, name)
    d = as_dtype(dtype)
    if d not in SUPPORTED:
        if isinstance(d, ExtendedDType) or d == float0:
            return d
        raise TypeError(
            f"Gradix arrays hold numbers and booleans, got dtype {dtype!r}{' in ' + name if name else ''}. "
            "Use one of " + ", ".join(sorted(t.name for t in SUPPORTED)) + "."
        )
    if d not in _NARROWED or state.jax_enable_x64 or keeps_explicit_x64():
        return d
    if state.jax_explicit_x64_dtypes == "error":
        raise ValueError(
            f"{_unavailable(d, name)}. {_ENABLE_X64}, request {_NARROWED[d]}, or set "
            "jax_explicit_x64_dtypes to 'warn' or 'allow'."
        )
    warnings.warn(truncation_warning(d, name), UserWarning, stacklevel=stacklevel)
    return _NARROWED[d]


def _check_no_array(dtype: Any, name: str | None) -> None:
    is_ours = hasattr(dtype, "aval")
    if is_ours or isinstance(dtype, np.ndarray):
        where = f"{name}: " if name else ""
        raise (ValueError if is_ours else TypeError)(
            f"{where}dtype= is an array of shape {dtype.shape}. Instead of dtype=x write dtype=x.dtype. "
            "Pass several arrays in one list, as in vstack([x, y])."
        )


# ---------------------------------------------------------------- values: dtype and weakness
_WEAK_TYPES = frozenset((int, float, complex))


def python_scalar_dtype(t: type) -> np.dtype:
    """The dtype of Python's bool, int, float or complex: int32, or int64 with x64 on, and so on."""
    return default_dtype(t, is_x64())


def scalar_type(t: type) -> tuple[np.dtype, bool]:
    """Dtype and weakness of a Python scalar type; bool is never weak."""
    return default_dtype(t, is_x64()), t is not bool


def check_python_int(x: int, dtype) -> None:
    """Raise OverflowError if a Python int does not fit an integer dtype."""
    low, high = _int_range(dtype)
    if not low <= x <= high:
        if x < low == 0:
            wider = " (or take a signed dtype)"
        elif itemsize_bits(dtype) == 64:
            wider = ""
        else:
            wider = " (or enable x64, or make it a float or a wider dtype)"
        side = "large" if x > high else "small"
        raise OverflowError(f"Python int {x} too {side} to convert to {dtype}, which holds {low} to {high}{wider}.")


_ranges: dict[Any, tuple[int, int]] = {}


def _int_range(dtype) -> tuple[int, int]:
    if dtype not in _ranges:
        info = iinfo(dtype)
        _ranges[dtype] = int(info.min), int(info.max)
    return _ranges[dtype]


def dtype_of(x: Any):
    """The dtype of an array made from `x`: an array, tracer, aval, NumPy value or Python number.

    Raises:
        TypeError: `x` is neither an array nor a number, as a list.

    Example:
        >>> from gradix import lax
        >>> lax.dtype(1.0)
        dtype('float32')
    """
    t = type(x)
    if t in _WEAK_TYPES or t is bool:
        return default_dtype(t, is_x64())
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        aval = getattr(x, "aval", None)
        if aval is not None:
            return aval.dtype
        for scalar in _PYTHON_SCALARS:
            if isinstance(x, scalar):
                return default_dtype(scalar, is_x64())
        if is_symbolic_dim(x):
            return default_dtype(int, is_x64())
        if hasattr(x, "__jax_array__"):
            return dtype_of(x.__jax_array__())
        raise TypeError(
            f"Cannot determine dtype of {x!r}: it is neither an array nor a number. "
            "Convert it first, for example with gradix.numpy.asarray(x)."
        )
    if isinstance(x, (np.ndarray, np.generic)):
        return canonicalize_dtype(dtype) if dtype != float0 else float0
    return dtype


def dtype(value: Any, /) -> Any:
    """The dtype of arrays that are made from a value, or with a dtype.

    Args:
        value: an array, a number, a dtype, the name of one, or a type of numbers. Types of 64 bits
            give those of 32 bits unless x64 is enabled.

    Raises:
        TypeError: `value` is none of these, as a list.
        ValueError: `value` is None.

    Example:
        >>> import gradix.numpy as jnp
        >>> dtype(jnp.zeros(3, "int8")), dtype(1.0), dtype(bool)
        (dtype('int8'), dtype('float32'), dtype('bool'))
    """
    if value is None:
        raise ValueError("None is not a dtype and has none. Pass a value, a dtype or its name.")
    if isinstance(value, type | str | np.dtype | ExtendedDType):
        return requested_dtype(value, "dtype")
    return dtype_of(value)


def is_weakly_typed(x: Any) -> bool:
    """Whether `x` is weakly typed, as Python's numbers and arrays made from them are."""
    t = type(x)
    if t in _WEAK_TYPES:
        return True
    if isinstance(x, (np.ndarray, np.generic)):
        return False
    aval = getattr(x, "aval", x)
    return bool(getattr(aval, "weak_type", False))


# ---------------------------------------------------------------- promotion
def promotion_mode() -> int:
    """The last argument of `promote_pair` under the present configuration."""
    return state.jax_enable_x64 + (STRICT if state.jax_numpy_dtype_promotion == "strict" else 0)


def promote_types(a: Any, b: Any, weak: bool = False):
    """The dtype to which two dtypes promote; Python's int, float and complex are weakly typed.

    Args:
        a, b: a dtype, its name, a scalar type, or an array, which stands for its dtype.
        weak: return `(dtype, weak_type)`.

    Raises:
        TypePromotionError: the dtypes have no implicit conversion to a common one.

    Example:
        >>> promote_types("int8", "uint8"), promote_types("bfloat16", float)
        (dtype('int16'), dtype(bfloat16))
    """
    na, nb = (x if type(x) is type and x in _WEAK_TYPES else as_dtype(x) for x in (a, b))
    for node in (na, nb):
        if isinstance(node, ExtendedDType):
            raise TypeError(
                f"Cannot interpret {str(node)!r} as a data type: keys have no arithmetic, so that they do not "
                "promote. Use gradix.random.key_data(keys) for the words of the keys."
            )
    dtype = promote_nodes(na, nb, promotion_mode())
    if not weak:
        return dtype
    return dtype, na in _WEAK_TYPES and nb in _WEAK_TYPES


def joined_dtype(a, b) -> np.dtype:
    """The dtype that holds both, for work inside of a function: no option forbids it, as the user asked for neither."""
    return promote_nodes(as_dtype(a), as_dtype(b), int(state.jax_enable_x64))


def _operand(x: Any) -> tuple[Any, bool]:
    """The pair (dtype, weak) of a value, an aval, a dtype or the name of one."""
    if isinstance(x, type) or x is None or isinstance(x, (str, np.dtype, ExtendedDType)):
        keeps = keeps_explicit_x64() and x is not None and x not in _PYTHON_SCALARS
        return as_dtype(x) if keeps else canonicalize_dtype(x, allow_extended_dtype=True), x in _WEAK_TYPES
    return dtype_of(x), is_weakly_typed(x)


def promote(*avals_or_dtypes: Any) -> tuple[Any, bool]:
    """The dtype of an operation on these values, avals or dtypes, and whether it is weak."""
    return promote_all([_operand(x) for x in avals_or_dtypes], promotion_mode())


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation on these arrays, numbers and dtypes.

    Args:
        *args: arrays, Python numbers, dtypes, dtype names or scalar types.
        return_weak_type_flag: return `(dtype, weak_type)`.

    Raises:
        TypePromotionError: the dtypes have no implicit conversion to a common one.
        ValueError: there are no arguments.

    Example:
        >>> import numpy as np
        >>> from gradix.dtypes import result_type
        >>> result_type(np.int8(1), 2.0), result_type(np.float16(1), 2.0)
        (dtype('float32'), dtype('float16'))
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is required.")
    dtype, weak = promote(*args)
    return (dtype, weak) if return_weak_type_flag else dtype


def scalar_type_of(x: Any) -> type:
    """Python's scalar type for a value or dtype: int for int8, float for bfloat16.

    Example:
        >>> import numpy as np
        >>> from gradix.dtypes import scalar_type_of
        >>> scalar_type_of(np.int8(3)), scalar_type_of("bfloat16")
        (<class 'int'>, <class 'float'>)
    """
    dtype = as_dtype(x) if isinstance(x, (type, str, np.dtype)) else dtype_of(x)
    for kind, members in ((bool, BOOL), (int, INTEGER), (float, FLOAT), (complex, COMPLEX)):
        if dtype in members:
            return kind
    raise TypeError(f"Invalid scalar value {x!r}: its dtype {dtype} is neither boolean, integer, floating nor complex.")


# ---------------------------------------------------------------- the nearest dtype of a kind
_REAL_TO_COMPLEX = {np.dtype("float64"): np.dtype("complex128")}
_COMPLEX_TO_REAL = {np.dtype("complex64"): np.dtype("float32"), np.dtype("complex128"): np.dtype("float64")}
_INT_TO_FLOAT = {d: np.dtype("float64") if d.itemsize == 8 else np.dtype("float32") for d in BITWISE}


def no_float0(what: str) -> TypeError:
    """The error for an operand of dtype float0, the tangent of an integer."""
    return TypeError(
        f"float0s do not support any operations by design, as they are tangents of integers and stand for zeros of no "
        f"size, but {what} got one. Leave such leaves out of gradients with allow_int=True, or write "
        "jnp.zeros(x.shape) in their place."
    )


def to_inexact_dtype(dtype):
    """The dtype of functions with inexact results: float64 for 64-bit integers, float32 for others.

    Inexact dtypes stay.

    Example:
        >>> to_inexact_dtype(np.dtype("int8")), to_inexact_dtype(np.dtype("float16"))
        (dtype('float32'), dtype('float16'))
    """
    if is_extended(dtype):
        raise TypeError(
            f"a function of numbers does not accept dtype {dtype}. Use gradix.random.key_data(keys) "
            "for the words of random keys."
        )
    if dtype in INEXACT:
        return dtype
    if dtype == float0:
        raise no_float0("a function of numbers")
    wide = _INT_TO_FLOAT.get(dtype)
    if wide is None:
        raise TypeError(f"dtype {dtype} is no dtype of arrays here. Convert the value with x.astype(np.float64).")
    return wide if keeps_explicit_x64() else canonicalize_dtype(wide)


def to_complex_dtype(dtype):
    """The complex dtype that holds a dtype's values: complex128 for 64-bit ones, else complex64."""
    return dtype if dtype in COMPLEX else _REAL_TO_COMPLEX.get(to_inexact_dtype(dtype), np.dtype("complex64"))


def real_dtype(dtype):
    """The dtype of the real part: float32 for complex64, real dtypes as they are."""
    return _COMPLEX_TO_REAL.get(dtype, dtype)


# ---------------------------------------------------------------- hierarchy and limits
_ABSTRACT = {
    np.number: NUMERIC,
    np.integer: INTEGER,
    np.signedinteger: SIGNED,
    np.unsignedinteger: UNSIGNED,
    np.inexact: INEXACT,
    np.floating: FLOAT,
    np.complexfloating: COMPLEX,
}


def _is_abstract(t: Any) -> bool:
    return (
        isinstance(t, type)
        and issubclass(t, np.generic)
        and (t in _ABSTRACT or t in (np.generic, np.flexible, np.character) or issubclass(t, extended))
    )


def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype `a` is `b`, or lies below it in NumPy's hierarchy of abstract types.

    The small floats are floating and the small integers are integers; keys lie below `prng_key` and
    `extended`.

    Example:
        >>> import numpy as np
        >>> from gradix.dtypes import issubdtype
        >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.signedinteger)
        (True, True)
    """
    if _is_abstract(a):
        return issubclass(a, b) if _is_abstract(b) else False
    dtype = as_dtype(a)
    if not _is_abstract(b):
        return dtype == as_dtype(b)
    if isinstance(dtype, ExtendedDType):
        return issubclass(dtype.type, b)
    if b in _ABSTRACT:
        return dtype in _ABSTRACT[b] or (dtype not in SUPPORTED and issubclass(_kind_of(dtype), b))
    return issubclass(dtype.type, b)


def _kind_of(dtype: np.dtype) -> type:
    """The abstract type of the numbers of a dtype that arrays do not have here, such as float6_e2m3fn."""
    if dtype.kind != "V" or dtype.names is not None:
        return dtype.type
    try:
        return np.signedinteger if ml_dtypes.iinfo(dtype).min < 0 else np.unsignedinteger
    except ValueError:
        pass
    try:
        return np.floating if ml_dtypes.finfo(dtype) else dtype.type
    except ValueError:
        return dtype.type


_INT32, _INT64 = np.dtype("int32"), np.dtype("int64")
_INDEX_TOPS = {np.dtype(t): np.iinfo(t).max for t in ("int32", "uint32", "int64", "uint64")}


def index_dtype(dtype, sizes) -> np.dtype:
    """The dtype in which indices of a dtype into axes of these sizes are computed with.

    It has at least 32 bits and holds the sizes: in a narrower one, adding a length or clamping at a
    bound wraps around. Symbolic sizes are taken to fit.
    """
    top = _INDEX_TOPS.get(dtype, -1)
    for n in sizes:
        if type(n) is int and n > top:
            return index_dtype(_INT64 if n > _INDEX_TOPS[_INT32] else _INT32, sizes)
    return _INT32 if top < 0 else dtype


def places_dtype(name: str, n, dtype: np.dtype | None = None) -> np.dtype:
    """The integer dtype, if none is given the default one, of the places of `n` elements.

    Raises:
        OverflowError: the dtype does not hold the last place, which would come out as another.
    """
    dtype = python_scalar_dtype(int) if dtype is None else dtype
    if type(n) is int and n > 128 and n - 1 > iinfo(dtype).max:
        wider = "Ask for a wider dtype"
        if dtype == _INT32:
            wider = "Enable 64-bit types with gradix.config.update('jax_enable_x64', True)"
        raise OverflowError(
            f"{name}: {n} places of elements are out of bounds for {dtype}. "
            f"{wider}, or take parts of the array one after the other."
        )
    return dtype


iinfo = ml_dtypes.iinfo
finfo = ml_dtypes.finfo
