"""jaxlib's C++ call dispatcher: NumPy arrays and Python numbers as arguments, without a Python step for each."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxlib import _jax

from gradix._base.tree.native import registry
from gradix._runtime.xla_buffers import physical
from gradix._runtime.xla_client import place
from gradix._runtime.xla_program import Executable

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Mismatch(Exception):
    """The arguments are not of the types the dispatcher was made for."""


class _Fast(NamedTuple):
    """What the dispatcher runs: its C++ reads these fields by name."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: list
    out_shardings: list
    out_avals: list
    out_committed: list
    kept_var_bitvec: list
    in_device_local_layouts: list
    const_args: list


_settings: list = []


def _prepare() -> None:
    """Give jaxlib the three options its dispatcher reads: it converts numbers to 32 bits, and is never off."""
    if not _settings:
        kinds = (("gradix_dispatch_disabled", False), ("gradix_dispatch_x64", False), ("gradix_dispatch_hook", None))
        _settings[:] = [_jax.config.Config(name, value, include_in_jit_key=False, include_in_trace_context=False)
                        for name, value in kinds]
        _jax.jax_jit.set_disable_jit_state(_settings[0])
        _jax.jax_jit.set_enable_x64_state(_settings[1])
        _jax.jax_jit.set_post_hook_state(_settings[2])


def is_available() -> bool:
    """Whether the dispatcher can be ours: its options are one set for the process, and JAX itself uses it, too."""
    other = sys.modules.get("jax")
    return other is None or str(getattr(other, "__file__", "")).startswith(_PACKAGE)


def dispatcher(executable: Executable, run: Callable[..., list], args: tuple) -> Callable[..., list]:
    """A function of buffers, NumPy arrays and Python numbers that runs a program and returns buffers.

    It takes arguments of exactly the types of `args`, with which it is called once here: no check of shapes and dtypes is
    left to the caller. 64-bit NumPy arrays are converted to 32 bits.

    Args:
        run: runs the program on `args`, this once.

    Raises:
        Mismatch: from the function, for arguments of other types.
    """
    _prepare()
    where, is_made = place(executable.device), [False]

    def miss(*args):
        if is_made[0]:
            raise Mismatch
        is_made[0] = True
        outs = run(*args)
        n, m = len(executable.in_avals), len(executable.out_avals)
        return outs, _Fast(executable.loaded, registry.flatten(outs)[1], [where.sharding] * n, [where.sharding] * m,
                           [physical(a) for a in executable.out_avals], [True] * m, [True] * n, [None] * n, []), False

    def refuse(*args):
        raise Mismatch
    call = _jax.pjit("call", refuse, miss, [], [], object(), registry, refuse, _jax.PjitFunctionCache(4))
    call(*args)
    return call
