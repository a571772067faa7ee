"""A closed jaxpr as a StableHLO module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradix._core.array_layouts import ATTRIBUTE as LAYOUT
from gradix._core.jaxpr import HOIST_BYTES, Literal
from gradix._stablehlo.attributes import attribute
from gradix._stablehlo.calls import HostCallback
from gradix._stablehlo.dimensions import SIZE
from gradix._stablehlo.emitter import Emitter, identifier
from gradix._stablehlo.facts import Facts
from gradix._stablehlo.shardings import Meshes
from gradix._stablehlo.types import TOKEN, storage_dtype, tensor_type

if TYPE_CHECKING:
    from gradix._stablehlo.open_dimensions import OpenDimensions


class LoweredModule(NamedTuple):
    """A module's text and what is needed to call it.

    Its arguments are `const_args` (arrays), then the program's arguments numbered in `kept`.
    """

    text: str
    in_avals: tuple  # of every argument of @main, const_args included
    out_avals: tuple
    host_callbacks: tuple[HostCallback, ...]
    kept: tuple[int, ...]
    const_args: tuple[Any, ...] = ()
    unusable_donations: tuple[int, ...] = ()
    platform: str = "cpu"
    facts: Facts | None = None
    # objects by number, which XLA asks how to divide an operation over devices
    partitioners: tuple[Any, ...] = ()


def lower_jaxpr(
    closed_jaxpr,
    name: str,
    *,
    donated=(),
    trace_expand: Callable | None = None,
    arg_attrs: dict[int, dict] | None = None,
    result_attrs: dict[int, dict] | None = None,
    module_attrs: dict | None = None,
    keep_unused: bool = True,
    hoist_bytes: int | None = HOIST_BYTES,
    platform: str = "cpu",
    places: bool = False,
    named: bool = False,
    devices: tuple | None = None,
    mesh=None,
    part_of=None,
    in_shardings=(),
    out_shardings=(),
    rewrites: Mapping[Any, tuple] | None = None,
    dimensions: OpenDimensions | None = None,
    tokens: int = 0,
    host_callbacks: Sequence = (),
) -> LoweredModule:
    """Lower a program to a StableHLO module.

    Args:
        closed_jaxpr: the program, dead code already gone.
        donated: indices of arguments whose memory a result may reuse.
        trace_expand: traces the `expand` of primitives without `lower`.
        arg_attrs: MLIR attributes per argument index, e.g. shardings; likewise `result_attrs`.
        keep_unused: whether to keep arguments that nothing reads.
        places: whether each operation gets the user's file and line.
        named: whether each operation gets its name, within those of the functions, scopes and
            transformations around it.
        devices: the devices of a program over several, in the order of its partitions. Then
            `in_shardings` and `out_shardings` hold a NamedSharding or None per argument and result.
        mesh: a mesh of these devices, for operations whose division the user decides.
        part_of: a mesh of these devices, where the program is one device's part of a larger one;
            its collectives run along the axes of this mesh.
        rewrites: the platform's rewrites of operations; see `Emitter`.
        hoist_bytes: constants larger than this become leading arguments; None writes all into the
            text.
        dimensions: where a program with symbolic shapes finds its dimension variables. The
            variables in `dimensions.given` are the module's first arguments.
        tokens: how many tokens for ordered effects the module takes, after these, and gives back
            before its results.
        host_callbacks: what the program calls of which this one is a part; its own follow these.
    """
    jaxpr, em = (
        closed_jaxpr.jaxpr,
        Emitter(trace_expand, platform, places, rewrites, f"jit({name})" if named else None),
    )
    used = _used(jaxpr)
    hoisted = [
        i
        for i, v in enumerate(jaxpr.constvars)
        if v in used and hoist_bytes is not None and _nbytes(v.aval) > hoist_bytes
    ]
    sources = {place.argument for place in dimensions.places} if dimensions is not None else set()
    kept = [i for i, v in enumerate(jaxpr.invars) if keep_unused or v in used or i in sources]
    given = dimensions.given if dimensions is not None else ()
    em.placed_on(Meshes(devices, mesh))
    em.host_callbacks.extend(host_callbacks)
    if part_of is not None:
        em.manual = em.manual_part(part_of, frozenset(part_of.axis_names), {})
    avals = (
        [SIZE for _ in given]
        + [TOKEN] * tokens
        + [jaxpr.constvars[i].aval for i in hoisted]
        + [jaxpr.invars[i].aval for i in kept]
    )

    def main(*args):
        values, before, args = (args[: len(given)], args[len(given) : len(given) + tokens], args[len(given) + tokens :])
        if dimensions is not None:
            dimensions.define(em, values, dict(zip(kept, args[len(hoisted) :])))
        em.join_tokens(before)
        consts = [None if v not in used else c for v, c in zip(jaxpr.constvars, closed_jaxpr.consts)]
        for i, a in zip(hoisted, args):
            consts[i] = a
        results = _inline_used(em, jaxpr, consts, used, dict(zip(kept, args[len(hoisted) :])))
        return [*[em.token] * tokens, *results]

    em.facts.results = tuple([v.aval for v in jaxpr.outvars])
    em.facts.arguments = (*[a for a in avals if a is not TOKEN], *em.facts.results)
    args, outs, text = em.body(avals, main)
    before = len(given) + tokens + len(hoisted)
    attrs = {k + before: dict((arg_attrs or {}).get(i, {})) for k, i in enumerate(kept)}
    attrs.update({k: {"jax.global_constant": variable} for k, variable in enumerate(given)})
    attrs.update({len(given) + k: {"jax.token": True} for k in range(tokens)})
    if tokens:
        result_attrs = {k + tokens: held for k, held in (result_attrs or {}).items()}
        result_attrs.update({k: {"jax.token": True} for k in range(tokens)})
    kinds = [
        (v.type, (result_attrs or {}).get(k, {}).get(LAYOUT), None if k < tokens else _nbytes(v.aval))
        for k, v in enumerate(outs if donated else ())
    ]
    lost = _alias(jaxpr, kinds, kept, frozenset(donated), attrs, before, is_divided=devices is not None)
    if devices is not None and part_of is None:
        module_attrs = {
            **(module_attrs or {}),
            "mhlo.num_partitions": np.int32(len(devices)),
            "mhlo.num_replicas": np.int32(1),
        }
        result_attrs = {k: dict((result_attrs or {}).get(k, {})) for k in range(len(outs))}
        at = {i: k + before for k, i in enumerate(kept)}
        _annotate(em, attrs, {at[i]: s for i, s in enumerate(in_shardings) if i in at}, args)
        _annotate(em, result_attrs, dict(enumerate(out_shardings, tokens)), outs)
    params = ", ".join([f"{v.name}: {v.type}{_attrs(attrs.get(k))}" for k, v in enumerate(args)])
    results = ", ".join([f"{v.type}{_attrs((result_attrs or {}).get(k))}" for k, v in enumerate(outs)])
    returned = f'"func.return"({", ".join([v.name for v in outs])}) : ({", ".join([v.type for v in outs])}) -> ()'
    main_text = f"func.func public @main({params}) -> ({results}) {{\n{text}{text and chr(10)}{returned}\n}}"
    head = f"module @{identifier(name)}"
    if module_attrs:
        head += " attributes" + _attrs(module_attrs)
    whole = "\n".join([head + " {", *em.meshes.lines, main_text, *em.functions, "}\n"])
    return LoweredModule(
        whole,
        tuple(avals),
        tuple([v.aval for v in jaxpr.outvars]),
        tuple(em.host_callbacks),
        tuple(kept),
        tuple([closed_jaxpr.consts[i] for i in hoisted]),
        lost,
        platform,
        em.facts,
        tuple(em.partitioners),
    )


def _annotate(em, attrs: dict, shardings: dict, values) -> None:
    """Add the shardings, by number, to the attributes of arguments or results."""
    for k, sharding in shardings.items():
        if sharding is not None:
            attrs[k]["sdy.sharding"] = em.meshes.attribute(sharding, values[k].aval.ndim)


def _used(jaxpr) -> set:
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    used.update([v for v in jaxpr.outvars if type(v) is not Literal])
    return used


def _inline_used(em, jaxpr, consts, used, args: dict) -> list:
    """Inline the program with only the constants that it reads and the arguments that are kept."""
    kept = [(v, c) for v, c in zip(jaxpr.constvars, consts) if v in used]
    invars = [jaxpr.invars[i] for i in args]
    part = jaxpr.replace(constvars=[v for v, _ in kept], invars=invars)
    return em.inline(part, [c for _, c in kept], list(args.values()))


def _nbytes(aval) -> int:
    return aval.size * storage_dtype(aval.dtype).itemsize


def _alias(jaxpr, kinds, kept, donated, attrs, offset, *, is_divided: bool) -> tuple[int, ...]:
    """Alias each donated argument to a result of its type and layout, or else of its size in bytes.

    `kinds` are the types, layouts and sizes of the results. Returns the indices without such a result.
    """
    free: dict = {}
    for k, (kind, layout, _) in enumerate(kinds):
        free.setdefault(kind, []).append((k, layout))
    lost = [i for i in sorted(donated) if i not in kept]
    left = []
    for k, i in enumerate(kept):
        if i not in donated:
            continue
        layout = attrs[k + offset].get(LAYOUT)
        places = free.get(tensor_type(jaxpr.invars[i].aval), [])
        fitting = next((p for p in places if p[1] == layout), None)
        if fitting is None and is_divided:
            fitting = next((p for p in places if "auto" in (p[1], layout)), None)
        if fitting is None:
            left.append((k, i))
            continue
        places.remove(fitting)
        # XLA picks the result once it has divided arguments and results over devices, or chosen their layouts.
        if is_divided or layout == "auto":
            attrs[k + offset]["jax.buffer_donor"] = True
        else:
            attrs[k + offset]["tf.aliasing_output"] = np.int32(fitting[0])
    sizes = Counter([kinds[k][2] for places in free.values() for k, _ in places])
    for k, i in left:
        size = _nbytes(jaxpr.invars[i].aval)
        if type(size) is int and sizes[size]:
            sizes[size] -= 1
            attrs[k + offset]["jax.buffer_donor"] = True
        else:
            lost.append(i)
    return tuple(sorted(lost))


def _attrs(entries: dict | None) -> str:
    if not entries:
        return ""
    return " {" + ", ".join([f"{k} = {attribute(v)}" for k, v in entries.items()]) + "}"
