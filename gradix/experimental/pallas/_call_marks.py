"""Calls in a program that stand for something else: of fusibles, and of custom fusions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradix._api.jit.jit import jit
from gradix._base.tree import tree_flatten
from gradix._control.call import jit_p
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var


class Mark(str):
    """The name of a call, which tells what the call stands for."""

    what: Any = None
    out_tree: Any = None

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return self is not other


class _Fusing(threading.local):
    """Whether a function is being traced by `fuse`."""

    depth = 0


_fusing = _Fusing()


@contextlib.contextmanager
def fusing() -> Iterator[None]:
    """A context in which fusibles become calls that `fuse` finds."""
    _fusing.depth += 1
    try:
        yield
    finally:
        _fusing.depth -= 1


def is_fusing() -> bool:
    """Whether `fuse` traces what is called."""
    return _fusing.depth > 0


def marked_call(what: Any, name: str, function: Callable, leaves) -> Any:
    """Call a function of arrays, in one equation that stands for `what`."""
    mark = Mark(name)
    mark.what = what

    def call(*xs):
        outs, mark.out_tree = tree_flatten(function(*xs))
        return outs

    call.__name__ = call.__qualname__ = mark
    outs = jit(call)(*leaves)
    return mark.out_tree.unflatten(outs)


def mark_of(eqn: JaxprEqn) -> Mark | None:
    """The mark of a call; None for other equations."""
    name = eqn.params.get("name") if eqn.primitive is jit_p else None
    return name if type(name) is Mark else None


def written_out(closed: ClosedJaxpr, inner: Callable[[JaxprEqn], ClosedJaxpr | None] | None = None):
    """A program with calls of jitted functions written out, but those that are marked.

    Args:
        inner: tells of an equation the program that it calls, or None to leave it as it is.

    Returns:
        The program, without constants, and the constants, which are its first arguments.
    """
    writer = _Writer(inner or (lambda eqn: None))
    jaxpr = closed.jaxpr
    env = {v: v for v in (*jaxpr.constvars, *jaxpr.invars)}
    writer.held += zip(jaxpr.constvars, closed.consts)
    outs = writer.write(jaxpr, env)
    ins = [*[v for v, _ in writer.held], *jaxpr.invars]
    return Jaxpr([], ins, outs, writer.eqns), [x for _, x in writer.held]


class _Writer:
    """Collects the equations of a program in which calls are written out."""

    def __init__(self, inner: Callable[[JaxprEqn], ClosedJaxpr | None]):
        self.inner = inner
        self.eqns: list[JaxprEqn] = []
        self.held: list[tuple[Var, Any]] = []

    def write(self, jaxpr: Jaxpr, env: dict) -> list:
        """Write the equations of a program whose inputs are known, and return its results."""

        def read(v):
            return v if type(v) is Literal else env[v]

        for eqn in jaxpr.eqns:
            invars = [read(v) for v in eqn.invars]
            is_plain_call = eqn.primitive is jit_p and mark_of(eqn) is None and not eqn.params.get("refs")
            called = eqn.params["jaxpr"] if is_plain_call else self.inner(eqn)
            if called is not None:
                held = [Var(v.aval) for v in called.jaxpr.constvars]
                self.held += zip(held, called.consts)
                given = dict(zip([*called.jaxpr.constvars, *called.jaxpr.invars], [*held, *invars]))
                env.update(zip(eqn.outvars, self.write(called.jaxpr, given)))
                continue
            outvars = [Var(v.aval) for v in eqn.outvars]
            self.eqns.append(eqn.replace(invars=invars, outvars=outvars))
            env.update(zip(eqn.outvars, outvars))
        return [read(v) for v in jaxpr.outvars]
