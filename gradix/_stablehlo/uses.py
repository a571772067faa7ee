"""An operation to be lowered: its operands, its equation, and the readers of its results."""

from __future__ import annotations

from typing import Any

from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal


class Users:
    """The equations of a program by the variables they read, computed on first use.

    Attributes:
        is_inner: whether the program stands in another one that XLA sees together with it: it is neither the
            outermost nor the turn of a loop.
    """

    __slots__ = ("_jaxpr", "is_inner", "_found", "_results", "_makers")

    def __init__(self, jaxpr: Jaxpr, is_inner: bool):
        self._jaxpr, self.is_inner = jaxpr, is_inner
        self._found: dict[Any, dict[int, JaxprEqn]] | None = None
        self._results: set = set()
        self._makers: dict[Any, JaxprEqn] | None = None

    def maker(self, v) -> JaxprEqn | None:
        """The equation that a variable is a result of, if there is one."""
        if self._makers is None:
            self._makers = {out: eqn for eqn in self._jaxpr.eqns for out in eqn.outvars}
        return None if type(v) is Literal else self._makers.get(v)

    def of(self, v) -> dict[int, JaxprEqn]:
        """The equations that read a variable, by their index in the program."""
        return self._index().get(v, {})

    def only(self, v) -> JaxprEqn | None:
        """The equation that reads a variable, if it is the only reader; else None."""
        found = self.of(v)
        return next(iter(found.values())) if len(found) == 1 and not self.is_result(v) else None

    def is_result(self, v) -> bool:
        self._index()
        return v in self._results

    def _index(self) -> dict[Any, dict[int, JaxprEqn]]:
        found = self._found
        if found is None:
            found = self._found = {}
            self._results = {v for v in self._jaxpr.outvars if type(v) is not Literal}
            for place, eqn in enumerate(self._jaxpr.eqns):
                for v in eqn.invars:
                    if type(v) is not Literal:
                        found.setdefault(v, {})[place] = eqn
        return found


class Site:
    """An operation about to be written, as a platform's rewrites see it.

    Attributes:
        primitive: the operation.
        out: the type of its result, or the list of types.
        values: its operands, as the emitter's values.
        params: its parameters.
        eqn, users: its equation, and the `Users` of that program; None where the operation is
            emitted as a part of another one.
    """

    __slots__ = ("primitive", "out", "values", "params", "eqn", "users")

    def __init__(
        self, primitive, out, values, params: dict[str, Any], eqn: JaxprEqn | None = None, users: Users | None = None
    ):
        self.primitive, self.out, self.values, self.params = primitive, out, values, params
        self.eqn, self.users = eqn, users

    def plain(self, em, *values, out=None, **params):
        """Lower by the operation's own rule, optionally with other values, types or parameters."""
        return self.primitive.lower(
            em, self.out if out is None else out, *(values or self.values), **{**self.params, **params}
        )

    def is_static(self) -> bool:
        """Whether all sizes of operands and results are known numbers."""
        outs = self.out if isinstance(self.out, list) else [self.out]
        return all(type(n) is int for a in (*[v.aval for v in self.values], *outs) for n in a.shape)

    def reader(self) -> JaxprEqn | None:
        """The equation that reads the single result, if it is the only reader; else None."""
        return None if self.eqn is None or self.users is None else self.users.only(self.eqn.outvars[0])
