"""Text in which each operation says where in the user's program it comes from."""
from __future__ import annotations

from gradix._stablehlo.attributes import string
from gradix._stablehlo.emitter import Emitter
from gradix._stablehlo.writer import Value


class PlacedEmitter(Emitter):
    """An emitter that ends operations with MLIR locations: `loc("file.py":12:0)`."""

    def inline(self, jaxpr, consts, args) -> list[Value]:
        """As `Emitter.inline`, one equation at a time."""
        env: dict = dict(zip(jaxpr.invars, args))
        env.update(zip(jaxpr.constvars, [c if type(c) is Value else self.constant(c, v.aval)
                                         for v, c in zip(jaxpr.constvars, consts)]))
        for eqn in jaxpr.eqns:
            known = [v for v in dict.fromkeys(eqn.invars) if v in env]
            part = jaxpr.replace(constvars=[], invars=known, outvars=eqn.outvars, eqns=[eqn])
            before = len(self._lines)
            env.update(zip(eqn.outvars, super().inline(part, [], [env[v] for v in known])))
            if eqn.source is not None:
                place = f" loc({string(eqn.source.file)}:{eqn.source.line}:0)"
                self._lines[before:] = [line if ' loc("' in line else line + place for line in self._lines[before:]]
        return [env[v] if v in env else self.constant(v.val, v.aval) for v in jaxpr.outvars]
