"""`composite_p`: a call of a program under a name by which compilers may replace it."""

from __future__ import annotations

import re

from gradix._control.call import AnnotatedCall, jit_p

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


class Composite(AnnotatedCall):
    """A call of `jaxpr` under a public `name` and `version`, with `attributes` as text.

    A transform is applied to the program, and its result is no longer the operation of that name.
    """

    def batch(self, axis, args, axes, *, jaxpr, name, **_):
        return jit_p.batch(axis, args, axes, jaxpr=jaxpr, name=name)

    def dce(self, used, eqn):
        """Keep all results: dead-code elimination removes the call only as a whole."""
        return eqn

    def lower(self, em, outs, *args, jaxpr, name, version, attributes):
        if not _NAME.fullmatch(name):  # StableHLO requires a name with a dot
            return em.call_jaxpr(name, jaxpr.jaxpr, jaxpr.consts, args)
        consts = [em.constant(c, v.aval) for v, c in zip(jaxpr.jaxpr.constvars, jaxpr.consts)]
        symbol = em.function(name, jaxpr.jaxpr)
        operands = [*consts, *args]
        told = [f"composite_attributes = {attributes}"] if attributes != "{}" else []
        told.append(f"decomposition = @{symbol}")
        told += [f"version = {version} : i32"] if version else []
        return em.written(
            f'stablehlo.composite "{name}" {", ".join([v.name for v in operands])} '
            f"{{{', '.join(told)}}}",
            outs,
            *operands,
        )

    def show(self, params):
        return {k: params[k] for k in ("name", "version", "attributes", "jaxpr")}


composite_p = Composite("composite")
