"""`call` and `closed_call`: calls of a program, without a name, that other libraries make."""

from __future__ import annotations

from typing import Any

from gradix._control.call import jit_p
from gradix._core.jaxpr import ClosedJaxpr, axis_names
from gradix._core.primitive import Primitive
from gradix._core.trace import bind


class LibraryCall(Primitive):
    """A call of the program `call_jaxpr`; transforms turn it into a call of `jit_p`.

    Example:
        >>> import gradix
        >>> from gradix.extend import core
        >>> call_p = core.CallPrimitive("my_call")
        >>> program = gradix.make_jaxpr(lambda x: x * x)(1.0)
        >>> gradix.grad(lambda x: call_p.bind(x, call_jaxpr=program)[0])(3.0)
        Array(6., dtype=float32, weak_type=True)
    """

    multiple_results = True
    effectful = True
    named = True
    is_call = True
    call_primitive = True

    def bind(self, *args, call_jaxpr=None, subfuns=(), **params):
        """Apply a program, or call a function given in `subfuns` or as first argument."""
        if subfuns:
            return subfuns[0].call_wrapped(*args)
        if args and hasattr(args[0], "call_wrapped"):
            return args[0].call_wrapped(*args[1:])
        return super().bind(*args, call_jaxpr=_closed(call_jaxpr), **params)

    def abstract(self, *avals, call_jaxpr, **_):
        return call_jaxpr.out_avals

    def effects(self, params):
        return params["call_jaxpr"].effects

    def names(self, params):
        return axis_names(params["call_jaxpr"].effects)

    def expand(self, *args, call_jaxpr, name="call", **_):  # type: ignore[override]
        return bind(jit_p, list(args), _renamed(call_jaxpr, name))

    def jvp(self, primals, tangents, *, call_jaxpr, name="call", **_):
        return jit_p.jvp(primals, tangents, **_renamed(call_jaxpr, name))

    def linearize(self, primals, tangents, *, call_jaxpr, name="call", **_):
        return jit_p.linearize(primals, tangents, **_renamed(call_jaxpr, name))

    def transpose(self, cts, *args, call_jaxpr, name="call", **_):
        return jit_p.transpose(cts, *args, **_renamed(call_jaxpr, name))

    def batch(self, axis, args, axes, *, call_jaxpr, name="call", **_):
        return jit_p.batch(axis, args, axes, **_renamed(call_jaxpr, name))


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Call a wrapped function directly.

    Example:
        >>> from gradix.extend import core, linear_util
        >>> core.call_impl(linear_util.wrap_init(lambda x: x + 1), 2)
        3
    """
    return f.call_wrapped(*args)


def _closed(jaxpr) -> ClosedJaxpr:
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())


def _renamed(jaxpr, name: str) -> dict:
    return {"jaxpr": jaxpr, "name": name}


call_p = LibraryCall("call")
closed_call_p = LibraryCall("closed_call")
