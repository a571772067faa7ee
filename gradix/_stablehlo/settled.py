"""Equations as they are lowered: primitives choose how to be spelled by what they are given and who uses their results."""
from __future__ import annotations

from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal


class Users:
    """The equations of a program by what they read."""

    __slots__ = ("_found", "_results")

    def __init__(self, jaxpr: Jaxpr):
        self._results = {v for v in jaxpr.outvars if type(v) is not Literal}
        self._found: dict = {}
        for place, eqn in enumerate(jaxpr.eqns):
            for v in eqn.invars:
                if type(v) is not Literal:
                    self._found.setdefault(v, {})[place] = eqn

    def of(self, v) -> dict[int, JaxprEqn]:
        """The equations that read a variable, by their places."""
        return self._found.get(v, {})

    def only(self, v) -> JaxprEqn | None:
        """The one equation that reads a variable, where nothing else does."""
        found = self.of(v)
        return next(iter(found.values())) if len(found) == 1 and v not in self._results else None

    def is_result(self, v) -> bool:
        return v in self._results


def settled_equations(jaxpr: Jaxpr, platform: str) -> list[JaxprEqn]:
    """A program's equations, with the parameters that the rules `settle` of their primitives give them."""
    users = None
    found = []
    for eqn in jaxpr.eqns:
        rule = eqn.primitive.settle
        if rule is not None:
            users = users or Users(jaxpr)
            params = rule(eqn, users, platform)
            eqn = eqn if params is None else eqn.replace(params=params)
        found.append(eqn)
    return jaxpr.eqns if users is None else found
