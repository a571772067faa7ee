"""`jax._src.compiler`: the function that compiles, which libraries wrap to count programs."""

from collections.abc import Sequence

from gradix._core import seams
from gradix._runtime.xla_compiler import compile_module


def backend_compile_and_load(backend, module, executable_devices, options, host_callbacks: Sequence = ()):
    """Compile a module for devices of a client; `host_callbacks` are the functions it calls."""
    return compile_module(backend, module, executable_devices, options, host_callbacks)


# The name is looked up at each call, so that a library can replace it by a wrapper.
seams.compile_module = lambda *args: backend_compile_and_load(*args)
