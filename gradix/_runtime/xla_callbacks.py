"""Python functions that compiled programs call."""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections.abc import Callable, Sequence

import numpy as np

from gradix._base import apart, signals
from gradix._base.bounded import on_clear
from gradix._core.array import as_numpy
from gradix._core.dtypes import physical_dtype

_FAILURE = re.compile(r"gradix-callback-failure:(\d+)")
_failures: dict[int, BaseException] = {}
_numbers = itertools.count()
_lock = threading.Lock()


def host_function(callback):
    """The function that XLA calls for a `HostCallback`, with operands and buffers to fill."""
    fn, ordered = callback.function, callback.ordered
    dtypes = [physical_dtype(a.dtype) for a in callback.in_avals]
    n = len(dtypes)
    outs = [(tuple(a.shape), physical_dtype(a.dtype)) for a in callback.out_avals]
    # Ordered callbacks have a token before the operands and before the results.
    skip = int(ordered)

    def fill(buffers):
        ins = [_copy(b, d) for b, d in zip(buffers[skip : skip + n], dtypes)]
        _fill(fn, fn(*ins), buffers[n + 2 * skip :], outs)

    def returned(values):
        results = [np.empty(shape, dtype) for shape, dtype in outs]
        fill((*values, *values[:skip], *results))
        return (*values[:skip], *results)

    def guarded(run, values):
        deferral = signals.current()
        try:
            if deferral is None:
                if apart.is_abandoned():
                    raise KeyboardInterrupt  # The program ends here; nobody sees its error.
                return run(values)
            try:
                deferral.end()
                return run(values)
            finally:
                deferral.begin()
        except BaseException as error:
            raise RuntimeError(failure(error)) from None

    if callback.by_value:
        return lambda *values: guarded(returned, values)
    return lambda ctx, *buffers: guarded(fill, buffers)


def held_weakly(functions: Sequence[Callable]) -> list:
    """The functions as XLA gets them: jaxlib never releases a callback that a program was made with.

    Whoever runs the program keeps the functions themselves.
    """
    return [weakref.proxy(f) for f in functions]


def _copy(buffer, dtype) -> np.ndarray:
    """A copy of an operand, because XLA reuses its memory after the callback."""
    array = np.asarray(buffer).astype(dtype)
    array.flags.writeable = False
    return array


def _fill(fn, results, buffers, outs) -> None:
    if not isinstance(results, (list, tuple)):
        raise TypeError(
            f"callback {_name(fn)} must return a sequence of {len(outs)} arrays, "
            f"got a {type(results).__name__}. Return a list or tuple."
        )
    if len(results) != len(outs):
        raise ValueError(
            f"callback {_name(fn)} must return {len(outs)} arrays, got {len(results)}. Return as many, or "
            "declare as many result types."
        )
    for i, (result, buffer, (shape, dtype)) in enumerate(zip(results, buffers, outs)):
        array = as_numpy(result)
        if array.shape != shape:
            raise ValueError(
                f"callback {_name(fn)} returned shape {array.shape} for result {i}, "
                f"but its result type says {shape}. Return an array of shape {shape}, or declare "
                f"the shape {array.shape}."
            )
        if array.dtype != dtype:
            if isinstance(result, (np.ndarray, np.generic)):
                raise TypeError(
                    f"callback {_name(fn)} returned dtype {array.dtype} for result {i}, but its result "
                    f"type says {dtype}. Return x.astype({dtype.name!r}), or declare {array.dtype.name!r}."
                )
            array = array.astype(dtype)
        np.asarray(buffer)[...] = array


def _name(fn) -> str:
    return getattr(fn, "__qualname__", None) or repr(fn)


def _remember(error: BaseException) -> int:
    with _lock:
        number = next(_numbers)
        _failures[number] = error
        while len(_failures) > 64:  # The oldest are of programs whose error was never read.
            del _failures[next(iter(_failures))]
    return number


on_clear(_failures.clear)


def failure(error: BaseException) -> str:
    """A message for XLA that stands for an exception, by which `original` finds it again."""
    return f"gradix-callback-failure:{_remember(error)}"


def original(error: Exception) -> BaseException | None:
    """The exception of a callback that caused XLA's error; None if a callback did not cause it."""
    found = _FAILURE.search(str(error))
    if found is None:
        return None
    with _lock:
        return _failures.pop(int(found[1]), None)
