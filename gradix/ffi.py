"""XLA's foreign function interface: compiled programs call compiled functions of the user.

Such a function is written in C++ against the headers in `include_dir()`, compiled into a shared
library, registered by `register_ffi_target`, and called by `ffi_call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradix._api.foreign_calls import ffi_call as ffi_call
from gradix._base.listing import own_names as _own_names
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
    """The directory of XLA's headers, for the option `-I` of a C++ compiler.

    Example:
        >>> import os, gradix
        >>> os.path.exists(os.path.join(gradix.ffi.include_dir(), "xla/ffi/api/ffi.h"))
        True
    """
    return _calls.headers()


def pycapsule(funcptr: Any) -> Any:
    """A capsule of a function in a shared library, for `register_ffi_target`.

    Args:
        funcptr: a function of a library loaded by `ctypes.cdll.LoadLibrary`, or its address.

    Example:
        >>> import ctypes, gradix
        >>> type(gradix.ffi.pycapsule(ctypes.pythonapi.Py_GetVersion)).__name__
        'PyCapsule'
    """
    return _calls.capsule(funcptr)


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Register a compiled function with XLA under a name, for `ffi_call`.

    Args:
        name: the name of the target.
        fn: a capsule made by `pycapsule`; or a dictionary of capsules by stage ("instantiate",
            "prepare", "initialize", "execute").
        platform: "cpu", "cuda" or "rocm".
        api_version: 1 for XLA's typed interface, 0 for the older one.
        kwargs: further arguments, which are passed on to jaxlib.

    Raises:
        Exception: jaxlib raises its own if another function has the name.

    Example:
        >>> import ctypes, gradix
        >>> lib = ctypes.cdll.LoadLibrary("libmine.so")                   # doctest: +SKIP
        >>> gradix.ffi.register_ffi_target("mine", gradix.ffi.pycapsule(lib.Mine))   # doctest: +SKIP
    """
    _calls.register(name, fn, platform, api_version, **kwargs)
    _calls.of_user.add(name)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register the type of a function's state with XLA.

    Args:
        name: the name of the type, which can be registered once per process.
        type_registration: a dictionary of capsules: "type_id", and optionally "type_info".
        platform: "cpu", "cuda" or "rocm".

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_type("state", {"type_id": capsule})   # doctest: +SKIP
    """
    _calls.register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """As `register_ffi_type`, for a type that has only an id.

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_type_id("state", capsule)   # doctest: +SKIP
    """
    _calls.register_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let XLA divide calls of a function over several devices along their leading axes.

    Example:
        >>> import gradix
        >>> gradix.ffi.register_ffi_target_as_batch_partitionable("mine")   # doctest: +SKIP
    """
    _calls.register_as_batch_partitionable(name)


__dir__ = _own_names(__name__)
