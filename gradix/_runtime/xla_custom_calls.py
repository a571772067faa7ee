"""Registration of functions that XLA calls by name."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradix._base.lazy import lazy_module
from gradix._base.signals import deferring

xc = lazy_module("jaxlib.xla_client")
_jaxlib = lazy_module("jaxlib")
_lapack = lazy_module("jaxlib.lapack")
_cpu_lapack = lazy_module("jaxlib.cpu._lapack")
_sparse = lazy_module("jaxlib.cpu_sparse")


# The platforms that a user may name, with the names that jaxlib has for them.
_PLATFORMS = {"cpu": "cpu", "gpu": "CUDA", "cuda": "CUDA", "rocm": "ROCM"}

of_user: set[str] = set()  # the functions that users registered by name


def register(name: str, function, platform: str = "cpu", api_version: int = 1, **options: Any) -> None:
    """Register an FFI handler with XLA as `name`: a PyCapsule, or PyCapsules of its stages."""
    xc.register_custom_call_target(
        name, function, platform=_PLATFORMS.get(platform, platform), api_version=api_version, **options
    )


def explained(error: Exception) -> Exception:
    """XLA's error, with advice if the program calls a function that is not registered."""
    found = re.search(r"No FFI handler registered for (\S+) on a platform", str(error))
    if found is None:
        return error
    name = found[1]
    return type(error)(
        f"{error}. Register the function on this platform before the program is compiled: "
        f"gradix.ffi.register_ffi_target({name!r}, gradix.ffi.pycapsule(library.{name})), with "
        "library = ctypes.cdll.LoadLibrary(...)."
    )


def register_type(name: str, registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Register the type of a handler's state with XLA."""
    xc.register_custom_type(name, registration, platform=_PLATFORMS.get(platform, platform))


def register_as_batch_partitionable(name: str) -> None:
    """Let the partitioner divide calls of `name` over their leading axes."""
    xc.register_custom_call_as_batch_partitionable(name)


def headers() -> str:
    """The directory of XLA's C++ headers."""
    return str(Path(_jaxlib.__file__).parent / "include")


def capsule(function: Any) -> Any:
    """A PyCapsule of a function of ctypes, or of its address."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.cast(function, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


@functools.lru_cache(None)
def ensure_lapack() -> None:
    """Register the targets `lapack_*_ffi`, for programs that call one; this imports SciPy.

    Without the registration XLA would call a null pointer when it runs such a program.
    """
    for name, function, version in _lapack.registrations()["cpu"]:
        register(name, function, "cpu", version)
        register_as_batch_partitionable(name)
    deferring(_cpu_lapack.initialize)()  # It imports SciPy's extensions.


def ensure_named_in(program: str | bytes) -> None:
    """Register the functions of jaxlib that a program, as text or serialized, calls by name."""

    def names(word: str) -> bool:
        return (word if isinstance(program, str) else word.encode()) in program  # type: ignore[operator]

    if names("lapack_") or names("tridiagonal_solve"):
        ensure_lapack()
    if names("cpu_csr_sparse_dense"):
        ensure_sparse()


@functools.lru_cache(None)
def ensure_sparse() -> None:
    """Register the target `cpu_csr_sparse_dense_ffi`."""
    for name, function, version in _sparse.registrations()["cpu"]:
        register(name, function, "cpu", version)
