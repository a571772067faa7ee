"""What this namespace offers, as the Python array API standard asks for it: `__array_namespace_info__`."""

from __future__ import annotations

import numpy as np

from gradix._api.devices import devices as _devices
from gradix._core import dtypes
from gradix._core.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, SIGNED, UNSIGNED

API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
API_VERSION = API_VERSIONS[-1]

_NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
_STANDARD = tuple(np.dtype(name) for name in _NAMES)
_KINDS = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGER,
    "real floating": FLOAT,
    "complex floating": COMPLEX,
    "numeric": INTEGER | FLOAT | COMPLEX,
}


class ArrayNamespaceInfo:
    """Answers the questions of the array API standard about devices, dtypes and what is supported.

    Example:
        >>> import gradix.numpy as jnp
        >>> sorted(jnp.__array_namespace_info__().default_dtypes())
        ['complex floating', 'indexing', 'integral', 'real floating']
    """

    __slots__ = ()

    def capabilities(self) -> dict:
        """What parts of the standard are supported everywhere.

        Masks as indices and other results whose shape depends on values work eagerly, but not under
        `jit`, where `size=` arguments and `x.at[mask]` take their place; so both answers are False.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().capabilities()["max dimensions"]
            64
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: where arrays go that were put on no device.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().default_device() is None
            True
        """
        return None

    def devices(self) -> list:
        """The devices arrays can be put on: None, for no particular one, then each device.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().devices()[0] is None
            True
        """
        return [None, *_devices()]

    def default_dtypes(self, *, device=None) -> dict:
        """The dtypes of arrays made without `dtype=`, of 32 bits unless x64 is enabled; the same on every device.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
            dtype('int32')
        """
        del device
        integral = dtypes.python_scalar_dtype(int)
        return {
            "real floating": dtypes.python_scalar_dtype(float),
            "complex floating": dtypes.python_scalar_dtype(complex),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device=None, kind: str | tuple[str, ...] | None = None) -> dict:
        """The standard's dtypes that arrays can have, by name; 64-bit ones only where x64 is enabled.

        Args:
            device: has no influence.
            kind: a kind of dtype as in `isdtype`, or a tuple of them; all by default.

        Raises:
            ValueError: no such kind.

        Example:
            >>> import gradix.numpy as jnp
            >>> sorted(jnp.__array_namespace_info__().dtypes(kind="signed integer"))
            ['int16', 'int32', 'int8']
        """
        del device
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        if unknown := [k for k in kinds if k not in _KINDS]:
            raise ValueError(
                f"unrecognized kind of dtype {unknown[0]!r}; the kinds are "
                f"{', '.join(map(repr, _KINDS))}, and tuples of them."
            )
        wanted = frozenset().union(*[_KINDS[k] for k in kinds])
        return {d.name: d for d in _STANDARD if d in wanted and dtypes.canonicalize_dtype(d) == d}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What the namespace offers: devices, dtypes and capabilities, in the form of the array API standard.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
    """
    return ArrayNamespaceInfo()
