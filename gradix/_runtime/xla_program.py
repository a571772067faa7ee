"""Compiled programs: how they are made, loaded and run."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax

from gradix._base import signals
from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._runtime import xla_callbacks, xla_options
from gradix._runtime.xla_buffers import physical
from gradix._runtime.xla_client import RuntimeFailure, client, executables, place
from gradix._runtime.xla_compiler import compile_and_load
from gradix._runtime.xla_custom_calls import ensure_named_in, explained
from gradix._stablehlo.calls import HOST_KERNEL
from gradix._stablehlo.emitter import unmarked

_threads: Any = lazy_module("gradix._base.one_thread")
_host = lazy_module("gradix._runtime.xla_host_kernels")
# Places in the text of a program that was compiled without the user's lines.
_OF_TEXT = re.compile(r' ?source_file="-"(?: (?:source_\w+|stack_frame_id)=\d+)*')
# for programs over several devices
_sharded: Any = lazy_module("gradix._runtime.xla_sharded")
_partitioning = lazy_module("gradix._runtime.xla_partitioning")
_collectives: Any = lazy_module("gradix._runtime.collective_calls")
_HOST_KERNEL = HOST_KERNEL.encode()


class On(NamedTuple):
    """Where a program runs.

    Attributes:
        devices: the devices, in the order of the program's partitions; by default the first one.
        mesh: the mesh of the shardings that XLA chooses.
        out_shardings: the sharding of each result, or None where XLA chooses it. No list stands for
            results that are whole on the only device.
        are_apart: whether each device runs the whole program, on parts of its own.
    """

    devices: tuple = ()
    mesh: Any = None
    out_shardings: Sequence | None = None
    are_apart: bool = False

    @property
    def first(self):
        """The first of the devices."""
        return self.devices[0] if self.devices else place(None).device


HERE = On()


class Executable:
    """A compiled program.

    Calling the object, or `run(buffers)`, which is faster, returns a list of buffers. If
    `has_callbacks` is False, generated code calls `execute(buffers).consume_with_handlers(handlers)`
    instead, and must wait for the results if `is_awaited` is True: a program that calls NumPy needs
    the interpreter until it ends. If `pace.is_long`, it runs by `pending.runner`. `out_shardings`
    are the shardings of its results, None where they were not asked for.
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
        "out_shardings",
        "__weakref__",
    )

    def __init__(
        self,
        loaded,
        in_avals,
        out_avals,
        on: On,
        functions: Sequence[Callable] = (),
        *,
        has_host_kernels: bool = False,
        is_from_bytes: bool = False,
        text: str = "",
    ):
        self.is_from_bytes = is_from_bytes
        self.pace: Any = None
        self.loaded, self.in_avals, self.out_avals = loaded, tuple(in_avals), tuple(out_avals)
        self.device, self.has_callbacks = on.first, bool(functions)
        self.is_awaited = self.has_callbacks or has_host_kernels
        self.execute = executing(loaded, self.is_awaited)
        self.out_shardings: Any = None
        if on.out_shardings is None:
            where = place(self.device)
            self.handlers = [_handler(a, where.sharding, where.handlers) for a in self.out_avals]
        else:
            self.out_shardings = _sharded.chosen_shardings(loaded, self.out_avals, on)
            self.handlers = [
                _handler(a, _sharded.layout_of(s, a.ndim).native, {})
                for a, s in zip(self.out_avals, self.out_shardings)
            ]
        self.run = runner_for(self.execute, self.handlers, functions, has_host_kernels)
        executables.add(self)
        if len(on.devices) > 1 and self.device.platform == "cpu" and _collectives.are_in(loaded):
            self.is_awaited, self.run = True, _collectives.waiting(self.run, text, on.devices)

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
        text = "\n\n".join([m.to_string() for m in self.loaded.hlo_modules()])
        return _OF_TEXT.sub("", text).replace(", metadata={}", "")

    def description(self) -> bytes:
        """The first module after XLA's optimisations, as bytes that `hlo.module` reads."""
        return self.loaded.hlo_modules()[0].as_serialized_hlo_module_proto()

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
    on: On = HERE,
    *,
    partitioners: Sequence = (),
) -> Executable:
    """The executable of a StableHLO module.

    Args:
        text: the module, whose public function is `@main`.
        in_avals, out_avals: the types of its arguments and results.
        host_callbacks: the `HostCallback`s of the module, by index.
        options: the compiler options.
        on: where it runs.
        partitioners: the partitioners of operations whose division is decided in Python.

    Raises:
        RuntimeFailure: XLA refuses the program or its options.
    """
    _check_sizes(in_avals, out_avals)
    functions = _prepared(text, HOST_KERNEL in text, host_callbacks)
    devices = _jax.DeviceList(on.devices or (on.first,))
    while True:
        try:
            with _answering(partitioners, on):
                loaded = compile_and_load(text, devices, _options(options, on), functions)
            return Executable(
                loaded, in_avals, out_avals, on, functions, has_host_kernels=HOST_KERNEL in text, text=text
            )
        except RuntimeFailure as error:
            if not xla_options.drop_unknown(options, error):
                if (plain := unmarked(text)) == text:
                    raise explained(error) from None
                text = plain


def _prepared(program: str | bytes, has_host_kernels: bool, host_callbacks) -> list[Callable]:
    """Register what a program calls by name; returns the functions that it calls by index."""
    functions: list[Callable] = [xla_callbacks.host_function(c) for c in host_callbacks]
    ensure_named_in(program)
    if has_host_kernels:
        _host.ensure_host_kernels()
    return functions


def _answering(partitioners: Sequence, on: On):
    """A context manager in which XLA can ask the partitioners."""
    if not partitioners:
        return contextlib.nullcontext()
    return _partitioning.answering(partitioners, on.devices, on.mesh)


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
    on: On = HERE,
    *,
    text: str = "",
) -> Executable:
    """The executable that `Executable.serialize` wrote as bytes; arguments as for `compile`.

    The module's text, if it is known, names the program in errors of several processes.

    Raises:
        RuntimeFailure: the bytes are of another jaxlib or another kind of CPU, or damaged.
    """
    has_host_kernels = _HOST_KERNEL in blob
    functions = _prepared(blob, has_host_kernels, host_callbacks)
    devices, held = _jax.DeviceList(on.devices or (on.first,)), xla_callbacks.held_weakly(functions)
    while True:
        try:
            loaded = on.first.client.deserialize_executable(blob, devices, _options(options, on), held)
            return Executable(
                loaded,
                in_avals,
                out_avals,
                on,
                functions,
                has_host_kernels=has_host_kernels,
                is_from_bytes=True,
                text=text,
            )
        except RuntimeFailure as error:
            if not xla_options.drop_unknown(options, error):
                raise


def hlo_computation(text: str):
    """XLA's computation object of a StableHLO module, before optimisations."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def hlo_text(text: str, with_metadata: bool = False) -> str:
    """A StableHLO module as HLO, before optimisations; with the names and places of operations."""
    computation = hlo_computation(text)
    return computation.as_hlo_module().to_string() if with_metadata else computation.as_hlo_text()


def cost_of(text: str) -> dict[str, float]:
    """XLA's estimates for a StableHLO module before optimisation: 'flops', 'bytes accessed', ..."""
    return dict(_jax.hlo_module_cost_analysis(client(), hlo_computation(text).as_hlo_module()))


def _options(options: xla_options.Options, on: On):
    chosen = [s is None for s in on.out_shardings or ()] if on.mesh is not None else None
    ids = np.array([[d.id for d in on.devices or (on.first,)]])
    return xla_options.build(options, ids.T if on.are_apart else ids, on.first.platform, chosen)


def _handler(aval, native, known: dict) -> Any:
    """jaxlib's handler that makes results of a type from buffers; `known` are those made before."""
    found = known.get(aval)
    if found is None:
        kind = physical(aval)
        try:
            found = _jax.array_result_handler(kind, native, True, True)
        except TypeError:  # Newer versions of jaxlib have no parameter `_skip_checks`.
            found = _jax.array_result_handler(kind, native, True)
        known[aval] = found
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


def _runner_with_callbacks(execute: Callable, handlers: list, functions: Sequence[Callable]) -> Callable[[list], list]:
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
    compiled = compile(_SMALL_LOOP, [scalar], [scalar], options=xla_options.options(small_loops=True))
    return "xla_cpu_small_call" in compiled.hlo_text()
