"""Sets and reads the current trace, for libraries that define their own interpreter."""

from __future__ import annotations

from typing import Any

from gradix._core import seams, trace as _trace
from gradix._core.trace import Trace, Tracer, state


class EvalTrace(Trace):
    """Stands for the absence of a trace: operations on arrays are evaluated eagerly."""

    level = -1

    def interpret(self, prim, args, params):
        return seams.evaluate(prim, args, params)


class TraceTag:
    """A tag that distinguishes the tracers of one use of an interpreter; it equals only itself.

    Example:
        >>> from gradix.extend.core import TraceTag
        >>> outer, inner = TraceTag(), TraceTag()
        >>> outer == outer, outer == inner
        (True, False)
    """

    __slots__ = ("__weakref__",)


_eval = EvalTrace()


def find_top_trace(xs: Any = ()) -> Trace:
    """The trace that interprets an operation on these operands; an `EvalTrace` if none does.

    Args:
        xs: the operands.

    Example:
        >>> from gradix import core
        >>> type(core.find_top_trace([1.0])).__name__
        'EvalTrace'
    """
    traces = [x._trace for x in xs if isinstance(x, Tracer)]
    return max([*traces, state.stage or _eval], key=lambda t: t.level)


class set_current_trace:
    """Context manager in which a trace interprets every operation.

    Args:
        trace: an instance of a library's subclass of `Trace`, or a trace that `take_current_trace`
            returned.
        check_leaks: accepted and ignored; traces of libraries are not checked for leaks.

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
        # a library's trace has no level until it is used for the first time
        if self.trace is not None and "level" not in self.trace.__dict__:
            self.trace.level = s.depth
            s.depth += 1
        s.stage, s.place = self.trace, None
        return self.trace

    def __exit__(self, *exc):
        state.depth, state.stage, state.place = self.saved.pop()


class take_current_trace:
    """Context manager that suspends the current trace and returns it; operations run at once.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> known = []
        >>> @gradix.jit
        ... def f(x):
        ...     with core.take_current_trace():
        ...         known.append(float(gradix.numpy.sin(0.0)))
        ...     return x
        >>> _ = f(1.0)
        >>> known
        [0.0]
    """

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
    """Apply a primitive with `trace` as the current trace; deeper traces of operands come first."""
    with set_current_trace(trace):
        return _trace.bind(prim, args, params)
