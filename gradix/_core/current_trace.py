"""The trace that takes the operations, for libraries that bring an interpreter of their own."""

from __future__ import annotations

from typing import Any

from gradix._core import trace as _trace
from gradix._core.trace import Trace, Tracer, state


class EvalTrace(Trace):
    """What is in charge where no trace takes the operations: arrays are computed with at once."""

    level = -1

    def interpret(self, prim, args, params):
        return _trace.evaluate(prim, args, params)

    def stage_value(self, val):
        return val


class TraceTag:
    """Tells the tracers of one use of an interpreter from those of another: each tag is equal to itself alone."""

    __slots__ = ("__weakref__",)


_eval = EvalTrace()


def find_top_trace(xs=()) -> Trace:
    """The trace that takes an operation on these operands; an `EvalTrace` where it is computed at once.

    Args:
        xs: the operands.
    """
    traces = [x._trace for x in xs if isinstance(x, Tracer)]
    return max([*traces, state.stage or _eval], key=lambda t: t.level)


class set_current_trace:
    """Within a `with` block, let a trace take every operation.

    Args:
        trace: an instance of a library's own subclass of `Trace`, or what `take_current_trace`
            gave.
        check_leaks: accepted; a trace of a library's own is not checked.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix.core import Trace
        >>> from gradix.extend.core import set_current_trace, take_current_trace
        >>> class Counting(Trace):
        ...     def __init__(self, parent):
        ...         self.parent, self.names = parent, []
        ...     def process_primitive(self, primitive, tracers, params):
        ...         self.names.append(primitive.name)
        ...         return primitive.bind_with_trace(self.parent, tracers, None, params)
        >>> with take_current_trace() as parent:
        ...     counting = Counting(parent)
        ...     with set_current_trace(counting):
        ...         y = jnp.sin(1.0) * 2
        >>> counting.names
        ['sin', 'mul']
    """

    def __init__(self, trace: Trace | None, check_leaks: bool = False):
        self.trace = None if isinstance(trace, EvalTrace) else trace
        self.saved: list[tuple] = []

    def __enter__(self):
        s = state
        self.saved.append((s.depth, s.stage, s.place))
        # a library's, met for the first time
        if self.trace is not None and "level" not in self.trace.__dict__:
            self.trace.level = s.depth
            s.depth += 1
        s.stage, s.place = self.trace, None
        return self.trace

    def __exit__(self, *exc):
        state.depth, state.stage, state.place = self.saved.pop()


class take_current_trace:
    """Within a `with` block, take the current trace's place: operations are computed at once; gives that trace."""

    def __init__(self):
        self.saved: list[tuple] = []

    def __enter__(self) -> Trace:
        self.saved.append((state.stage, state.place))
        current = find_top_trace()
        state.stage = None
        return current

    def __exit__(self, *exc):
        state.stage, state.place = self.saved.pop()


def bind_with_trace(trace: Trace | None, prim, args, params: dict) -> Any:
    """Apply a primitive with `trace` as the current trace; the operands' own traces come first."""
    with set_current_trace(trace):
        return _trace.bind(prim, args, params)
