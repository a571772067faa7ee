"""The dtypes of arrays: NumPy's, the small floats and integers of ml_dtypes, and random keys."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from gradix._base.lazy import lazy_module

if TYPE_CHECKING:
    from gradix._core.annotations import DTypeLike

_elsewhere = lazy_module("gradix._base.elsewhere")

_INTEGERS = ("int2", "int4", "int8", "int16", "int32", "int64")
_SMALL_FLOATS = (
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
_FLOATS = (*_SMALL_FLOATS, "bfloat16", "float16", "float32", "float64")
_COMPLEXES = ("complex64", "complex128")


def _named(names: tuple[str, ...]) -> frozenset[np.dtype]:
    return frozenset(np.dtype(getattr(ml_dtypes, n, n)) for n in names)


SIGNED = _named(_INTEGERS)
UNSIGNED = _named(tuple("u" + n for n in _INTEGERS))
INTEGER = SIGNED | UNSIGNED
NARROW_INTEGER = _named(("int2", "int4", "uint2", "uint4"))
NARROW_FLOAT = _named(_SMALL_FLOATS)
FLOAT = _named(_FLOATS)
COMPLEX = _named(_COMPLEXES)
INEXACT = FLOAT | COMPLEX
NUMERIC = INTEGER | INEXACT
BOOL = _named(("bool",))
ORDERED = BOOL | INTEGER | FLOAT
BITWISE = BOOL | INTEGER
SUPPORTED = BOOL | NUMERIC

float0 = np.dtype([("float0", "V", 0)])


class extended(np.generic):
    """The scalar type of extended dtypes, which NumPy does not have.

    Example:
        >>> from gradix import dtypes, random
        >>> dtypes.issubdtype(random.key(0).dtype, dtypes.extended), dtypes.issubdtype("int8", dtypes.extended)
        (True, False)
    """


class prng_key(extended):
    """The scalar type of random keys.

    Example:
        >>> from gradix import dtypes, random
        >>> key = random.key(0)
        >>> [dtypes.issubdtype(x.dtype, dtypes.prng_key) for x in (key, random.key_data(key))]
        [True, False]
    """


class ExtendedDType:
    """A dtype that NumPy does not have; `physical` is the NumPy dtype that stores one element."""

    __slots__ = ("name", "itemsize", "type", "physical")
    kind = "V"
    names = None

    def __init__(self, name: str, type: type, physical: np.dtype):
        self.name, self.type, self.physical = name, type, physical
        self.itemsize = physical.itemsize

    def __repr__(self) -> str:
        return self.name


class KeyType(ExtendedDType):
    """The dtype of the random keys of one generator, such as `key<fry>` for Threefry; see `KEYS`.

    A key of one word is stored as uint32, one of two words as uint64, and one of three or four
    words as complex128, which is XLA's only type of 16 bytes.

    Example:
        >>> KeyType("fry")
        key<fry>
        >>> KeyType("fry") is KeyType("fry")
        True
    """

    __slots__ = ("_impl", "key_shape")
    _made: dict[str, KeyType] = {}

    def __new__(cls, impl: str):
        return cls._made.get(impl) or cls._made.setdefault(impl, super().__new__(cls))

    def __init__(self, impl: str):
        tag, storage, key_shape = _MADE_BY_USERS.get(impl) or (impl, _KEY_STORAGE.get(impl, "uint64"), None)
        super().__init__(f"key<{tag}>", prng_key, np.dtype(storage))
        self._impl = impl
        self.key_shape: tuple[int, ...] = key_shape or (self.itemsize // 4,)

    @property
    def words(self) -> int:
        """The number of uint32 words of a key."""
        return prod(self.key_shape)

    @classmethod
    def define(cls, impl: str, tag: str, key_shape: tuple[int, ...]) -> KeyType:
        """The dtype of the keys of a user's generator: arrays of one to four uint32 words.

        Raises:
            ValueError: a key has more words, or none.
        """
        words = prod(key_shape)
        storage = {1: "uint32", 2: "uint64", 3: "complex128", 4: "complex128"}.get(words)
        if storage is None:
            raise ValueError(
                f"a key of shape {key_shape} has {words} words of 32 bits; keys have 1 to 4 of them. "
                "Compute further state of the generator from the key."
            )
        _MADE_BY_USERS[impl] = tag, storage, key_shape
        return cls(impl)

    def filled(self, word: int) -> np.ndarray:
        """A key, in its stored form, all of whose words are `word`."""
        return np.full(self.itemsize // 4, word & 0xFFFFFFFF, np.uint32).view(self.physical).reshape(())

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is KeyType and self._impl == other._impl)

    def __hash__(self) -> int:
        return hash(("key", self._impl))

    def __reduce__(self):
        return KeyType, (self._impl,)


_MADE_BY_USERS: dict[str, tuple] = {}  # generator -> tag, storage, shape of a key
_KEY_STORAGE = {"phx2": "uint32", "fry4": "complex128", "rbg": "complex128", "urbg": "complex128"}
KEYS = {
    "threefry2x32": KeyType("fry"),
    "threefry4x32": KeyType("fry4"),
    "philox2x32": KeyType("phx2"),
    "philox4x32": KeyType("phx4"),
    "rbg": KeyType("rbg"),
    "unsafe_rbg": KeyType("urbg"),
}  # by generator
KEY = KEYS["threefry2x32"]

# dtypes, their names, scalar types and Python types -> the dtype; as_dtype asks NumPy for others
_TABLE: dict[Any, Any] = {
    None: np.dtype("float64"),
    bool: np.dtype("bool"),
    int: np.dtype("int64"),
    float: np.dtype("float64"),
    complex: np.dtype("complex128"),
    float0: float0,
    "float": np.dtype("float64"),
    "int": np.dtype("int64"),
    "complex": np.dtype("complex128"),
}
for _d in SUPPORTED:
    _TABLE[_d] = _TABLE[_d.name] = _TABLE[_d.type] = _d


def _instead_of(x) -> str:
    """What to write where a dtype is not one."""
    if isinstance(x, (int, np.integer)):
        return f"If {x} is a size, write all sizes in brackets, as one shape: (2, {x})."
    near = _elsewhere.close_to(x, [key for key in _TABLE if isinstance(key, str)]) if isinstance(x, str) else ""
    return (
        "Pass a dtype or its name ('float32', 'int8', 'bfloat16', ...), a NumPy or Python scalar type, or "
        f"array.dtype{near or '.'}"
    )


def as_dtype(x: Any):
    """The dtype of a name, type, scalar type or dtype, in native byte order and not narrowed.

    Raises:
        TypeError: `x` is none of these.

    Example:
        >>> as_dtype("bfloat16"), as_dtype(float)
        (dtype(bfloat16), dtype('float64'))
    """
    try:
        return _TABLE[x]
    except (KeyError, TypeError):
        pass
    if isinstance(x, ExtendedDType):
        return x
    inner = getattr(x, "dtype", None)
    if isinstance(inner, (np.dtype, ExtendedDType)) and not isinstance(x, np.dtype):
        return as_dtype(inner)
    try:
        dtype = np.dtype(x)
    except TypeError:
        raise TypeError(f"data type {x!r} not understood. {_instead_of(x)}") from None
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    return _TABLE.get(dtype, dtype)


def physical_dtype(dtype) -> np.dtype:
    """The NumPy dtype in which elements are stored: that of the words for keys, else the dtype."""
    return dtype.physical if isinstance(dtype, ExtendedDType) else dtype


def is_extended(dtype) -> bool:
    return isinstance(dtype, ExtendedDType)


def is_integer(dtype) -> bool:
    return dtype in INTEGER


def is_signed(dtype) -> bool:
    return dtype in SIGNED


def is_float(dtype) -> bool:
    return dtype in FLOAT


def is_complex(dtype) -> bool:
    return dtype in COMPLEX


_BITS = {d: int(d.name.removeprefix("u").removeprefix("int")) for d in NARROW_INTEGER} | {
    np.dtype(ml_dtypes.float4_e2m1fn): 4
}


def itemsize_bits(dtype: DTypeLike) -> int:
    """The number of bits of one element: 4 for int4, 8 for bool.

    Raises:
        ValueError: `dtype` is None, or the dtype of random keys.

    Example:
        >>> itemsize_bits("int4"), itemsize_bits("float32")
        (4, 32)
    """
    if dtype is None:
        raise ValueError("dtype cannot be None: name one, for example itemsize_bits('float32').")
    d = as_dtype(dtype)
    if isinstance(d, ExtendedDType):
        raise ValueError(
            f"unexpected input: dtype={d} has no size in bits of its own; its keys are stored as "
            f"{d.physical}, so use itemsize_bits({d.physical.name!r})."
        )
    return _BITS.get(d) or _bits_elsewhere(d) or d.itemsize * 8


def _bits_elsewhere(dtype: np.dtype) -> int | None:
    """The bits of a number of a dtype of ml_dtypes, such as float6_e2m3fn; None for others."""
    for info in (ml_dtypes.iinfo, ml_dtypes.finfo):
        try:
            return info(dtype).bits if dtype.kind == "V" and dtype.names is None else None
        except ValueError:
            continue
    return None


_SHORT = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}
_short_names: dict[Any, str] = {float0: "float0"}
_names: dict = {}


def dtype_name(dtype) -> str:
    """The full name of a dtype: float32, key<fry>, float0."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = "float0" if dtype == float0 else dtype.name
    return name


def short_name(dtype) -> str:
    """The short name of a dtype, as jaxprs print it.

    Example:
        >>> [short_name(as_dtype(d)) for d in ("float32", "bfloat16", "uint8", "float8_e4m3fn", "bool")]
        ['f32', 'bf16', 'u8', 'f8_e4m3fn', 'bool']
    """
    name = _short_names.get(dtype)
    if name is None:
        name = dtype.name
        for long, short in _SHORT.items():
            if name.startswith(long):
                name = short + name[len(long) :]
                break
        _short_names[dtype] = name
    return name
