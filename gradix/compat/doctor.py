"""`python -m gradix doctor`: what gradix finds on this machine, and whether it works."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterator

import numpy as np

import gradix
from gradix._runtime import disk_cache
from gradix.compat import answering

_PACKAGES = ("jaxlib", "numpy", "ml_dtypes", "opt_einsum", "scipy", "jax")
_SETTINGS = ("JAX_", "GRADIX_", "XLA_", "CUDA_VISIBLE_DEVICES")


def report() -> Iterator[str]:
    """The lines of a report on versions, settings and devices, and on a program that is compiled.

    Raises:
        RuntimeError: the result of the compiled program is not that of NumPy.
    """
    yield f"gradix {gradix.__version__}, Python {platform.python_version()}, {platform.platform()}"
    yield f"from {os.path.dirname(gradix.__file__)}, run by {sys.executable}"
    for name in _PACKAGES:
        yield f"  {name} {_version(name)}"
    if answering.is_enabled():
        yield f"import jax gives gradix in every program of {sys.prefix} (python -m gradix disable undoes it)"
    yield from (f"  {name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(_SETTINGS))
    yield f"devices: {', '.join(map(str, gradix.devices()))} (default platform {gradix.default_backend()})"
    kept = disk_cache.current()
    yield f"compiled programs are kept in: {kept.path + kept.is_read_only * ' (read only)' if kept else 'no folder'}"
    start = time.perf_counter()
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    got, right = float(gradix.jit(_program)(x)), float(_program(x))
    if got != right:
        raise RuntimeError(
            f"a compiled program gave {got}, but NumPy gives {right}: jaxlib does not work correctly on "
            "this device. Try XLA_FLAGS=--xla_cpu_max_isa=AVX2, and report it."
        )
    yield f"a program was compiled and run, and its result is correct: {time.perf_counter() - start:.2f} s"


def _program(a):
    return (a @ a.T).sum()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed" + (" (not needed)" if name in ("jax", "scipy") else "")
