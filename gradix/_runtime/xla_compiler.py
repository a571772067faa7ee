"""Where a program is handed to XLA's compiler, and who else may be asked first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradix._runtime import xla_callbacks
from gradix._runtime.xla_client import client


def compile_module(backend, module, devices, options, functions: Sequence[Callable] = ()):
    """What XLA's client makes of a module; `functions` are those it calls on the host, by index."""
    if functions:
        return backend.compile_and_load(
            xla_callbacks.parse_module(module), devices, options, list(functions)
        )
    return backend.compile_and_load(module, devices, options)


_compile = [compile_module]


def install_compiler(function: Callable) -> None:
    """Put `function`, which takes the same, in place of `compile_module`: it may count, or refuse, and call it."""
    _compile[:] = [function]


def compile_and_load(module, devices, options, functions: Sequence[Callable] = ()):
    """The module, compiled and loaded on the devices by whoever compiles.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    return _compile[0](client(), module, devices, options, functions)
