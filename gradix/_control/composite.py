"""Calls that tell compilers something: `composite_p` a name, `xla_metadata_call_p` attributes."""

from __future__ import annotations

import re

from gradix._control.call import AnnotatedCall, Call, jit_p
from gradix._core.effects import is_ordered

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
            f'stablehlo.composite "{name}" {", ".join([v.name for v in operands])} {{{", ".join(told)}}}',
            outs,
            *operands,
        )

    def show(self, params):
        return {k: params[k] for k in ("name", "version", "attributes", "jaxpr")}


composite_p = Composite("composite")


class XlaMetadataCall(Call):
    """A call with `attributes`, pairs of texts; calls of its derivatives have the same."""

    def lower(self, em, outs, *args, jaxpr, name, attributes):
        pairs = ", ".join([f'{k} = "{v}"' for k, v in attributes])
        return em.call_jaxpr(
            name,
            jaxpr.jaxpr,
            jaxpr.consts,
            args,
            attrs=f"mhlo.frontend_attributes = {{{pairs}}}" if pairs else "",
            ordered=any(map(is_ordered, jaxpr.effects)),
        )

    def show(self, params):
        return {**dict(params["attributes"]), "jaxpr": params["jaxpr"]}


xla_metadata_call_p = XlaMetadataCall("xla_metadata_call")
