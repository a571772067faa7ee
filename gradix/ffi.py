"""Compiled functions of users' own, called from compiled programs: XLA's foreign function interface.

A function is written in C++ against the headers in `include_dir()`, compiled into a shared library,
made known by `register_ffi_target`, and called by `ffi_call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradix._api.foreign_calls import ffi_call as ffi_call
from gradix._runtime import xla_custom_calls as _calls
from gradix.interpreters.foreign_lowerings import (
    build_ffi_lowering_function as build_ffi_lowering_function,
    ffi_lowering as ffi_lowering,
)

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]


def include_dir() -> str:
    """The folder with XLA's headers, to give to the C++ compiler as `-I`.

    Example:
        >>> import os, gradix
        >>> os.path.exists(os.path.join(gradix.ffi.include_dir(), "xla/ffi/api/ffi.h"))
        True
    """
    return _calls.headers()


def pycapsule(funcptr: Any) -> Any:
    """A function of a shared library as `register_ffi_target` takes it.

    Args:
        funcptr: an attribute of what `ctypes.cdll.LoadLibrary` gives, or an address.

    Example:
        >>> import ctypes, gradix
        >>> type(gradix.ffi.pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
        'PyCapsule'
    """
    return _calls.capsule(funcptr)


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Make a compiled function known to XLA under a name, for `ffi_call`.

    Args:
        name: the name of the target.
        fn: what `pycapsule` gives; or a dictionary of these, by the stage they are for
            ("instantiate", "prepare", "initialize", "execute").
        platform: "cpu", "cuda" or "rocm".
        api_version: 1 for XLA's typed interface, 0 for the one before.
        kwargs: handed on to jaxlib.

    Raises:
        Exception: jaxlib's, where another function has the name.

    Example:
        >>> import ctypes, gradix
        >>> lib = ctypes.cdll.LoadLibrary("libmine.so")                   # doctest: +SKIP
        >>> gradix.ffi.register_ffi_target("mine", gradix.ffi.pycapsule(lib.Mine))   # doctest: +SKIP
    """
    _calls.register(name, fn, platform, api_version, **kwargs)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Make a type of a function's state known to XLA.

    Args:
        name: the name of the type, once in a process.
        type_registration: capsules by name: "type_id", and "type_info" where there is one.
        platform: "cpu", "cuda" or "rocm".

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_type("state", {"type_id": capsule})   # doctest: +SKIP
    """
    _calls.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """As `register_ffi_type`, of a type that is known by its id alone.

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_type_id("state", capsule)   # doctest: +SKIP
    """
    _calls.register_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let XLA divide calls of a function over several devices along leading axes.

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_target_as_batch_partitionable("mine")   # doctest: +SKIP
    """
    _calls.register_as_batch_partitionable(name)
