"""Compiled programs: how they are made, loaded and run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from gradix._base import signals
from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._runtime import xla_callbacks, xla_options
from gradix._runtime.xla_buffers import physical
from gradix._runtime.xla_client import Place, RuntimeFailure, client, executables, place
from gradix._runtime.xla_compiler import compile_and_load
from gradix._runtime.xla_custom_calls import ensure_named_in, explained
from gradix._stablehlo.emitter import unmarked
from gradix._stablehlo.structured import HOST_KERNEL

_threads: Any = lazy_module("gradix._base.one_thread")
_host = lazy_module("gradix._runtime.xla_host_kernels")
_HOST_KERNEL = HOST_KERNEL.encode()


class Executable:
    """A compiled program on one device.

    Calling the object, or `run(buffers)`, which is faster, returns a list of buffers. If
    `has_callbacks` is False, generated code calls `execute(buffers).consume_with_handlers(handlers)`
    instead, and must wait for the results if `is_awaited` is True: a program that calls NumPy needs
    the interpreter until it ends. If `pace.is_long`, it runs by `pending.runner`.
    """

    __slots__ = (
        "loaded",
        "in_avals",
        "out_avals",
        "device",
        "run",
        "execute",
        "handlers",
        "has_callbacks",
        "is_awaited",
        "is_from_bytes",
        "pace",
        "__weakref__",
    )

    def __init__(
        self,
        loaded,
        in_avals,
        out_avals,
        where: Place,
        functions: Sequence[Callable] = (),
        *,
        has_host_kernels: bool = False,
        is_from_bytes: bool = False,
    ):
        self.is_from_bytes = is_from_bytes
        self.pace: Any = None
        self.loaded, self.in_avals, self.out_avals = loaded, tuple(in_avals), tuple(out_avals)
        self.device, self.has_callbacks = where.device, bool(functions)
        self.is_awaited = self.has_callbacks or has_host_kernels
        self.execute = executing(loaded, self.is_awaited)
        self.handlers = handlers = [_handler(a, where) for a in self.out_avals]
        self.run = runner_for(self.execute, handlers, functions, has_host_kernels)
        executables.add(self)

    def __call__(self, buffers: list) -> list:
        return self.run(buffers)

    def keep_to_one_thread(self) -> None:
        """Let LAPACK use only one thread in each run."""
        self.run = _threads.on_one_thread(self.run, "scipy")
        self.execute = _threads.on_one_thread(self.execute, "scipy")

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates: 'flops', 'bytes accessed', ..."""
        found = self.loaded.cost_analysis()
        return dict(found[0] if isinstance(found, list) else found)

    def memory_analysis(self):
        """The sizes of arguments, results, temporaries and code: attributes `..._size_in_bytes`."""
        return self.loaded.get_compiled_memory_stats()

    def hlo_text(self) -> str:
        """The program after XLA's optimisations, as HLO text."""
        return "\n\n".join([m.to_string() for m in self.loaded.hlo_modules()])

    def serialize(self) -> bytes:
        """The machine code as bytes, which `deserialize` loads on the same kind of CPU and jaxlib.

        Raises:
            RuntimeFailure: XLA cannot serialize this program, such as some sorts that have run, or a
                program that came from bytes, of which it would write no code.
        """
        if self.is_from_bytes:
            raise RuntimeFailure("UNIMPLEMENTED: a program that came from bytes is not serialized")
        return self.loaded.serialize()


def compile(
    text: str,
    in_avals,
    out_avals,
    host_callbacks=(),
    options: xla_options.Options = xla_options.DEFAULT,
    device=None,
) -> Executable:
    """The executable of a StableHLO module.

    Args:
        text: the module, whose public function is `@main`.
        in_avals, out_avals: the types of its arguments and results.
        host_callbacks: the `HostCallback`s of the module, by index.
        options: the compiler options.
        device: the device to run on; by default the first.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    _check_sizes(in_avals, out_avals)
    where, functions = place(device), [xla_callbacks.host_function(c) for c in host_callbacks]
    ensure_named_in(text)
    has_host_kernels = HOST_KERNEL in text
    if has_host_kernels:
        _host.ensure_host_kernels()
    while True:
        try:
            loaded = _compile(text, where, options, functions)
            return Executable(
                loaded,
                in_avals,
                out_avals,
                where,
                functions,
                has_host_kernels=has_host_kernels,
            )
        except RuntimeFailure as error:
            if not xla_options.drop_unknown(options, error):
                if (plain := unmarked(text)) == text:
                    raise explained(error) from None
                text = plain


def _largest() -> int:
    """The size in bytes above which arrays are refused: four times the memory of the machine.

    XLA may compute larger sizes with an overflow, which ends the process.
    """
    try:
        return 4 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # The system does not tell its memory.
        return 1 << 44


_LARGEST = _largest()


def _check_sizes(in_avals, out_avals) -> None:
    for a in (*in_avals, *out_avals):
        if a.size * a.dtype.itemsize > _LARGEST:
            raise RuntimeFailure(
                f"RESOURCE_EXHAUSTED: an array of type {a.str_short()} takes "
                f"{a.size * a.dtype.itemsize:,} bytes, more than four times the memory of this machine. "
                "Use smaller arrays, or divide them over several devices."
            )


def deserialize(
    blob: bytes,
    in_avals,
    out_avals,
    host_callbacks=(),
    options: xla_options.Options = xla_options.DEFAULT,
    device=None,
) -> Executable:
    """The executable that `Executable.serialize` wrote as bytes; arguments as for `compile`.

    Raises:
        RuntimeFailure: the bytes are of another jaxlib or another kind of CPU, or damaged.
    """
    where, functions = place(device), [xla_callbacks.host_function(c) for c in host_callbacks]
    ensure_named_in(blob)
    has_host_kernels = _HOST_KERNEL in blob
    if has_host_kernels:
        _host.ensure_host_kernels()
    while True:
        try:
            loaded = where.device.client.deserialize_executable(
                blob,
                where.device_list,
                _options(options, where),
                xla_callbacks.held_weakly(functions),
            )
            return Executable(
                loaded,
                in_avals,
                out_avals,
                where,
                functions,
                has_host_kernels=has_host_kernels,
                is_from_bytes=True,
            )
        except RuntimeFailure as error:
            if not xla_options.drop_unknown(options, error):
                raise


def hlo_computation(text: str):
    """XLA's computation object of a StableHLO module, before optimisations."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def hlo_text(text: str) -> str:
    """A StableHLO module as HLO, before optimisations."""
    return hlo_computation(text).as_hlo_text()


def cost_of(text: str) -> dict[str, float]:
    """XLA's estimates for a StableHLO module before optimisation: 'flops', 'bytes accessed', ..."""
    return dict(_jax.hlo_module_cost_analysis(client(), hlo_computation(text).as_hlo_module()))


def _compile(text: str, where: Place, options, functions: list):
    return compile_and_load(text, where.device_list, _options(options, where), functions)


def _options(options, where: Place):
    return xla_options.build(options, np.array([[where.device.id]]), where.device.platform)


def _handler(aval, where: Place) -> Any:
    """jaxlib's handler that makes results buffers of a type, one per type and device."""
    found = where.handlers.get(aval)
    if found is None:
        kind = physical(aval)
        try:
            found = _jax.array_result_handler(kind, where.sharding, True, True)
        except TypeError:  # Newer versions of jaxlib have no parameter `_skip_checks`.
            found = _jax.array_result_handler(kind, where.sharding, True)
        where.handlers[aval] = found
    return found


def executing(loaded, calls_python: bool) -> Callable:
    """The function that runs a program; the handlers of signals wait if it calls Python.

    XLA calls Python in the thread that calls the program, unless an argument is being computed.
    """
    return signals.deferring(loaded.execute_sharded) if calls_python else loaded.execute_sharded


def runner_for(
    execute: Callable, handlers: list, functions: Sequence[Callable], has_host_kernels: bool
) -> Callable[[list], list]:
    """The function of buffers that is `Executable.run`; it keeps `functions`, which XLA calls."""
    if functions:
        return _runner_with_callbacks(execute, handlers, functions)
    return (_runner_with_host_kernels if has_host_kernels else _runner)(execute, handlers)


def _runner(execute: Callable, handlers: list) -> Callable[[list], list]:
    def run(buffers):
        return execute(buffers).consume_with_handlers(handlers)

    return run


def _runner_with_host_kernels(execute: Callable, handlers: list) -> Callable[[list], list]:
    def run(buffers):
        outs = execute(buffers).consume_with_handlers(handlers)
        for out in outs:
            out.block_until_ready()
        return outs

    return run


def _runner_with_callbacks(
    execute: Callable, handlers: list, functions: Sequence[Callable]
) -> Callable[[list], list]:
    """A function that waits for the program, so that it can raise the exception of a callback."""

    # XLA holds the functions weakly, so what runs the program must hold them until it has ended.
    def run(buffers, _kept=tuple(functions)):
        try:
            results = execute(buffers, with_tokens=True)
            token = results.consume_token()
            outs = results.consume_with_handlers(handlers)
            token.block_until_ready()
            for out in outs:
                out.block_until_ready()
            return outs
        except RuntimeFailure as error:
            cause = xla_callbacks.original(error)
            if cause is None:
                raise
        raise cause

    return run


_SMALL_LOOP = """module @probe { func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %w = "stablehlo.while"(%x) ({
  ^bb0(%a: tensor<f32>):
    %n = stablehlo.constant dense<100.0> : tensor<f32>
    %c = stablehlo.compare LT, %a, %n : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>):
    %b = stablehlo.sine %a : tensor<f32>
    %d = stablehlo.cosine %b : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }) : (tensor<f32>) -> tensor<f32>
  return %w : tensor<f32> } }"""


@functools.lru_cache(None)
def honours_small_loops() -> bool:
    """Whether this version of XLA can emit a small loop as one function, found by compiling one."""
    scalar = make_aval((), np.dtype("float32"))
    compiled = compile(
        _SMALL_LOOP, [scalar], [scalar], options=xla_options.options(small_loops=True)
    )
    return "xla_cpu_small_call" in compiled.hlo_text()
