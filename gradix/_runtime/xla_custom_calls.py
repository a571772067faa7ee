"""Functions XLA can call by name."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradix._base.lazy import lazy_module

xc = lazy_module("jaxlib.xla_client")
_jaxlib = lazy_module("jaxlib")
_lapack = lazy_module("jaxlib.lapack")
_cpu_lapack = lazy_module("jaxlib.cpu._lapack")
_sparse = lazy_module("jaxlib.cpu_sparse")


# the platforms a user may name, by the name under which jaxlib keeps their functions
_PLATFORMS = {"cpu": "cpu", "gpu": "CUDA", "cuda": "CUDA", "rocm": "ROCM"}


def register(
    name: str, function, platform: str = "cpu", api_version: int = 1, **options: Any
) -> None:
    """Make a PyCapsule of an FFI handler, or those of its stages, known to XLA as `name`."""
    xc.register_custom_call_target(
        name,
        function,
        platform=_PLATFORMS.get(platform, platform),
        api_version=api_version,
        **options,
    )


def register_type(name: str, registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Make a type of a handler's state known to XLA."""
    xc.register_custom_type(name, registration, platform=_PLATFORMS.get(platform, platform))


def register_as_batch_partitionable(name: str) -> None:
    """Let the partitioner divide calls of `name` over their leading axes."""
    xc.register_custom_call_as_batch_partitionable(name)


def headers() -> str:
    """The folder of XLA's C++ headers."""
    return str(Path(_jaxlib.__file__).parent / "include")


def capsule(function: Any) -> Any:
    """A function of a library that ctypes has loaded, or its address, as a PyCapsule."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.cast(function, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


@functools.lru_cache(None)
def ensure_lapack() -> None:
    """Make the `lapack_*_ffi` targets usable; imports SciPy, so only programs that hold one should ask.

    Without it XLA would jump through a null pointer when it runs such a program.
    """
    for name, function, version in _lapack.registrations()["cpu"]:
        register(name, function, "cpu", version)
    _cpu_lapack.initialize()


def ensure_named_in(program: str | bytes) -> None:
    """Make the functions known that a program, as text or as XLA keeps it, calls by name."""

    def names(word: str) -> bool:
        return (word if isinstance(program, str) else word.encode()) in program  # type: ignore[operator]

    if names("lapack_") or names("tridiagonal_solve"):
        ensure_lapack()
    if names("cpu_csr_sparse_dense"):
        ensure_sparse()


@functools.lru_cache(None)
def ensure_sparse() -> None:
    """Make the `cpu_csr_sparse_dense_ffi` target usable."""
    for name, function, version in _sparse.registrations()["cpu"]:
        register(name, function, "cpu", version)
