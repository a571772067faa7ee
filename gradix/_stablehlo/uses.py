"""What is known of an operation that is to be written: its operands, its equation, and who reads the results."""

from __future__ import annotations

from typing import Any

from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal


class Users:
    """The equations of a program by what they read, found out when first asked for."""

    __slots__ = ("_jaxpr", "_found", "_results")

    def __init__(self, jaxpr: Jaxpr):
        self._jaxpr = jaxpr
        self._found: dict[Any, dict[int, JaxprEqn]] | None = None
        self._results: set = set()

    def of(self, v) -> dict[int, JaxprEqn]:
        """The equations that read a variable, by their places."""
        return self._index().get(v, {})

    def only(self, v) -> JaxprEqn | None:
        """The one equation that reads a variable, where nothing else does."""
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
        eqn, users: its equation, and the equations of that program by what they read; None where
            the operation is a part of how another one is written.
    """

    __slots__ = ("primitive", "out", "values", "params", "eqn", "users")

    def __init__(
        self,
        primitive,
        out,
        values,
        params: dict[str, Any],
        eqn: JaxprEqn | None = None,
        users: Users | None = None,
    ):
        self.primitive, self.out, self.values, self.params = primitive, out, values, params
        self.eqn, self.users = eqn, users

    def plain(self, em, *values, out=None, **params):
        """What the operation's own rule writes, here or of other values, types and parameters."""
        return self.primitive.lower(
            em,
            self.out if out is None else out,
            *(values or self.values),
            **{**self.params, **params},
        )

    def is_static(self) -> bool:
        """Whether all sizes of operands and results are known numbers."""
        outs = self.out if isinstance(self.out, list) else [self.out]
        return all(type(n) is int for a in (*[v.aval for v in self.values], *outs) for n in a.shape)

    def reader(self) -> JaxprEqn | None:
        """The one equation that reads the one result, where nothing else does."""
        return (
            None if self.eqn is None or self.users is None else self.users.only(self.eqn.outvars[0])
        )
