"""The one call of XLA's compiler, which tests and tools can replace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradix._base.apart import apart
from gradix._core import seams
from gradix._runtime.mlir_bindings import load_bindings, parse_module
from gradix._runtime.xla_callbacks import held_weakly


def compile_module(backend, module, devices, options, functions: Sequence[Callable] = ()):
    """The executable of a module; `functions` are the Python functions that it calls, by index.

    While XLA's threads compile, jaxlib looks for signals in the main thread, and if a handler raises
    it frees the module that they read. So the main thread only waits.
    """
    if functions:
        load_bindings()  # A helper must import nothing: an interrupted import may hold the lock.
    return apart(_compile_whole, backend, module, devices, options, functions)


def _compile_whole(backend, module, devices, options, functions: Sequence[Callable]):
    if functions:
        weak = held_weakly(functions)
        return backend.compile_and_load(parse_module(module), devices, options, weak)
    return backend.compile_and_load(module, devices, options)


seams.compile_module = compile_module


def compile_and_load(module, devices, options, functions: Sequence[Callable] = ()):
    """The executable of a module, made by `compile_module` or the function that replaces it.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    return seams.compile_module(devices[0].client, module, devices, options, functions)
