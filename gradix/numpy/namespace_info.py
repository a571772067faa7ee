"""`__array_namespace_info__`: what this namespace offers, in the form of the array API standard."""

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
    """Tells which devices, dtypes and capabilities there are, as the array API standard asks.

    Example:
        >>> import gradix.numpy as jnp
        >>> sorted(jnp.__array_namespace_info__().default_dtypes())
        ['complex floating', 'indexing', 'integral', 'real floating']
    """

    __slots__ = ()

    def capabilities(self) -> dict:
        """Whether parts of the standard are supported everywhere, by their names.

        Masks as indices, and other results whose shape depends on values, are supported eagerly but
        not under `jit`, where `size=` arguments and `x.at[mask]` take their place. So both answers
        are False.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().capabilities()["max dimensions"]
            64
        """
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The device of new arrays, None: they are on no particular device.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().default_device() is None
            True
        """
        return None

    def devices(self) -> list:
        """A list of the devices for arrays: None, for no particular one, then each device.

        Example:
            >>> import gradix.numpy as jnp
            >>> jnp.__array_namespace_info__().devices()[0] is None
            True
        """
        return [None, *_devices()]

    def default_dtypes(self, *, device=None) -> dict:
        """The dtypes of arrays made without `dtype=`, on all devices: 32-bit ones without x64.

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
        """The standard's dtypes that arrays can have, by name; 64-bit ones only with x64 enabled.

        Args:
            device: it has no effect.
            kind: a kind of dtype as in `isdtype`, or a tuple of kinds; all by default.

        Raises:
            ValueError: a kind is unknown.

        Example:
            >>> import gradix.numpy as jnp
            >>> sorted(jnp.__array_namespace_info__().dtypes(kind="signed integer"))
            ['int16', 'int32', 'int8']
        """
        del device
        kinds = tuple(_KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        if unknown := [k for k in kinds if k not in _KINDS]:
            raise ValueError(
                f"unknown kind of dtype {unknown[0]!r}. Give one of {', '.join(map(repr, _KINDS))}, or a tuple of them."
            )
        wanted = frozenset().union(*[_KINDS[k] for k in kinds])
        return {d.name: d for d in _STANDARD if d in wanted and dtypes.canonicalize_dtype(d) == d}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The devices, dtypes and capabilities of this namespace, as the array API standard asks.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
    """
    return ArrayNamespaceInfo()
