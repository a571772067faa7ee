"""Functions XLA can call by name."""

from __future__ import annotations

import functools

from gradix._base.lazy import lazy_module

xc = lazy_module("jaxlib.xla_client")
_lapack = lazy_module("jaxlib.lapack")
_cpu_lapack = lazy_module("jaxlib.cpu._lapack")
_sparse = lazy_module("jaxlib.cpu_sparse")


def register(name: str, function, platform: str = "cpu", api_version: int = 1) -> None:
    """Make a PyCapsule of an FFI handler known to XLA as `name`."""
    xc.register_custom_call_target(name, function, platform=platform, api_version=api_version)


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
