"""Python functions called from compiled programs."""

from __future__ import annotations

import functools
import itertools
import re
import threading

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.dtypes import physical_dtype

_FAILURE = re.compile(r"gradix-callback-failure:(\d+)")
_failures: dict[int, BaseException] = {}
_numbers = itertools.count()
_lock = threading.Lock()


def host_function(callback):
    """A `HostCallback` in the form XLA calls: buffers of the operands, then buffers to fill."""
    fn, ordered = callback.function, callback.ordered
    dtypes = [physical_dtype(a.dtype) for a in callback.in_avals]
    n = len(dtypes)
    outs = [(tuple(a.shape), physical_dtype(a.dtype)) for a in callback.out_avals]
    # a token comes before operands, and before results
    skip = int(ordered)

    def call(ctx, *buffers):
        try:
            ins = [_copy(b, d) for b, d in zip(buffers[skip : skip + n], dtypes)]
            _fill(fn, fn(*ins), buffers[n + 2 * skip :], outs)
        except BaseException as error:
            raise RuntimeError(failure(error)) from None

    return call


def _copy(buffer, dtype) -> np.ndarray:
    """The operand as an array of its own: XLA reuses the memory once the callback returns."""
    array = np.asarray(buffer).astype(dtype)
    array.flags.writeable = False
    return array


def _fill(fn, results, buffers, outs) -> None:
    if not isinstance(results, (list, tuple)):
        raise TypeError(
            f"callback {_name(fn)} must return a sequence of {len(outs)} arrays, "
            f"got {type(results).__name__}"
        )
    if len(results) != len(outs):
        raise ValueError(f"callback {_name(fn)} must return {len(outs)} arrays, got {len(results)}")
    for i, (result, buffer, (shape, dtype)) in enumerate(zip(results, buffers, outs)):
        array = np.asarray(result)
        if array.shape != shape:
            raise ValueError(
                f"callback {_name(fn)} returned shape {array.shape} for result {i}, "
                f"but its result type says {shape}. Return that shape, or declare the one returned."
            )
        if array.dtype != dtype:
            if isinstance(result, (np.ndarray, np.generic)):
                raise TypeError(
                    f"callback {_name(fn)} returned dtype {array.dtype} for result {i}, but its result "
                    f"type says {dtype}. Return x.astype({dtype.name!r}), or declare the one returned."
                )
            array = array.astype(dtype)
        np.asarray(buffer)[...] = array


def _name(fn) -> str:
    return getattr(fn, "__qualname__", None) or repr(fn)


def _remember(error: BaseException) -> int:
    with _lock:
        number = next(_numbers)
        _failures[number] = error
        while len(_failures) > 64:  # of failures nobody asked for
            del _failures[next(iter(_failures))]
    return number


def failure(error: BaseException) -> str:
    """What to tell XLA of an exception, so that `original` finds it again."""
    return f"gradix-callback-failure:{_remember(error)}"


def original(error: Exception) -> BaseException | None:
    """The exception a callback raised, if XLA's `error` came from one."""
    found = _FAILURE.search(str(error))
    if found is None:
        return None
    with _lock:
        return _failures.pop(int(found[1]), None)


@functools.lru_cache(None)
def _context():
    """The MLIR bindings and a context with XLA's dialects; they load slowly, so only callbacks load them."""
    ir = lazy_module("jaxlib.mlir.ir")
    registry = ir.DialectRegistry()
    lazy_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in ("stablehlo", "chlo", "sdy"):
        # Without the classes of its operations
        lazy_module(f"jaxlib.mlir._mlir_libs._{dialect}").register_dialect(context)
    return ir, context


def parse_module(text: str):
    """The text as an MLIR module object: only that form of a program may carry Python functions."""
    ir, context = _context()
    with context:
        return ir.Module.parse(text)
