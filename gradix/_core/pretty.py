"""Prints jaxprs: variables are named a, b, ..., z, ba; shared programs are `let f = ... in`."""

from __future__ import annotations

import re
from typing import Any

from gradix._core import seams
from gradix._core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, jaxprs_in_params
from gradix._core.pretty_documents import brk, cat, group, nest, note, render, text as txt, wrapped

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
# a program of more equations than this is printed separately, even if it is used once
_LONG = 10


class _Context:
    """The names of variables and of shared programs in one printout."""

    def __init__(self, shapes: bool, effects: bool, source: bool, rules: bool, name_stack: bool):
        self.shapes, self.effects, self.source, self.rules = shapes, effects, source, rules
        self.name_stack = name_stack
        self.names: dict[Any, str] = {}
        self.shared: dict[Jaxpr, str] = {}
        self.taken: set[str] = set()
        self.count = 0

    def name(self, var) -> str:
        found = self.names.get(var)
        if found is None:
            found = self.names[var] = "_" if isinstance(var, DropVar) else self.fresh()
        return found

    def fresh(self) -> str:
        while True:
            found = _letters(self.count)
            self.count += 1
            if found not in self.taken:
                return found

    def atom(self, a) -> str:
        return f"{_value(a.val)}:{a.aval.str_short(True)}" if isinstance(a, Literal) else self.name(a)

    def typed(self, var) -> str:
        return f"{self.name(var)}:{var.aval.str_short(True)}" if self.shapes else self.name(var)


def _letters(n: int) -> str:
    """The name of variable n, in digits of base 26: 0 is a, 25 is z, 26 is ba."""
    digits = ""
    while True:
        n, d = divmod(n, 26)
        digits = chr(ord("a") + d) + digits
        if not n:
            return digits


def _value(val) -> str:
    host = getattr(val, "host", val)
    try:
        item = host.item()
    except AttributeError:
        return str(host)
    return str(item if isinstance(item, (bool, int, float, complex)) else float(item))


def pretty(
    program,
    *,
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    use_color: bool | None = None,
    width: int = 80,
) -> str:
    """The text of a jaxpr or equation.

    Args:
        source_info: whether to print the user's line beside each equation.
        custom_pp_eqn_rules: False prints all parameters, also those with default values.
    """
    ctx = _Context(print_shapes, print_effects, source_info, custom_pp_eqn_rules, name_stack)
    if isinstance(program, JaxprEqn):
        return render(_equation(program, ctx), width)
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    _find_shared(jaxpr, ctx)
    parts = [
        render(cat([txt(f"let {name} = "), _jaxpr(inner, ctx), txt(" in")]), width)
        for inner, name in ctx.shared.items()
    ]
    return "\n".join([*parts, render(_jaxpr(jaxpr, ctx), width)])


def _find_shared(jaxpr: Jaxpr, ctx: _Context) -> None:
    """Name the programs that are printed separately: shared and long ones, breadth first."""
    counts: dict[Jaxpr, int] = {}
    bases: dict[Jaxpr, str] = {}
    level = [jaxpr]
    while level:
        found: list[Jaxpr] = []
        for j in level:
            for eqn in j.eqns:
                for inner in jaxprs_in_params(_shown(eqn, ctx)):
                    if inner not in counts:
                        counts[inner], bases[inner] = 0, _base_name(eqn)
                        found.append(inner)
                    counts[inner] += 1
        level = found
    for inner, times in counts.items():
        if times > 1 or len(inner.eqns) > _LONG:
            ctx.shared[inner] = name = _unused(bases[inner], ctx.taken)
            ctx.taken.add(name)


def _base_name(eqn) -> str:
    return eqn.params["name"].strip("<>") if eqn.primitive.name == "jit" else "jaxpr"


def _unused(base: str, taken: set[str]) -> str:
    name, n = base, 0
    while name in taken:
        n += 1
        name = f"{base}{n}"
    return name


def _shown(eqn, ctx) -> dict:
    return eqn.primitive.show(eqn.params) if ctx.rules else eqn.params


def _jaxpr(jaxpr: Jaxpr, ctx: _Context):
    consts = [txt(ctx.typed(v)) for v in jaxpr.constvars]
    ins = [txt(ctx.typed(v)) for v in jaxpr.invars]
    header = cat([txt("{ lambda "), nest(4, wrapped(consts)), txt("; "), nest(4, wrapped(ins)), txt(". let")])
    body: list = []
    for i, eqn in enumerate(jaxpr.eqns):
        body += [brk("; ")] if i else []
        body.append(_equation(eqn, ctx))
    outs = [ctx.atom(v) for v in jaxpr.outvars]
    last = outs[-1] + (",)" if len(outs) == 1 else ")") if outs else ")"
    ends = [*[txt(o + ",") for o in outs[:-1]], txt(last)]
    tail = [txt("in ("), nest(2, wrapped(ends)), txt(_effects(jaxpr, ctx) + " }")]
    return group(cat([header, nest(4, cat([brk(), *body])), nest(2, cat([brk(), *tail]))]))


def _effects(jaxpr, ctx) -> str:
    return f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }}" if ctx.effects else ""


def _equation(eqn, ctx: _Context):
    params = _shown(eqn, ctx)
    if ctx.rules and eqn.primitive.name == "jit":
        inner = params["jaxpr"].jaxpr
        if inner not in ctx.shared:
            _same_names(inner, eqn, ctx)
    left = [txt(ctx.typed(v)) for v in eqn.outvars]
    parts = [nest(2, wrapped(left)), txt(" = ")] if left else []
    if ctx.source or ctx.name_stack:
        parts.insert(0, note(_annotation(eqn, ctx)))
    parts += [txt(eqn.primitive.name), _params(params, ctx), txt(" ")]
    parts.append(nest(2, wrapped([txt(ctx.atom(a)) for a in eqn.invars])))
    return cat(parts)


def _annotation(eqn, ctx) -> str:
    stack = f"[{eqn.source.name_stack if eqn.source is not None else ''}]" if ctx.name_stack else ""
    if not ctx.source or eqn.source is None:
        return stack
    line, _, column, _ = eqn.source.position
    return f"{eqn.source.file}:{line}:{column} ({eqn.source.function.rpartition('.')[2]}){' ' * bool(stack)}{stack}"


def _same_names(inner: Jaxpr, eqn, ctx: _Context) -> None:
    """Give the inputs of a called program the names that the operands have outside."""
    used = set()
    for v, a in zip(inner.invars, eqn.invars):
        if not isinstance(a, Literal) and a not in used:
            used.add(a)
            ctx.names[v] = ctx.name(a)
    for v, a in zip(inner.outvars, eqn.outvars):
        if not isinstance(v, Literal) and v not in ctx.names:
            ctx.names[v] = ctx.name(a)


def _params(params: dict, ctx: _Context):
    if not params:
        return txt("")
    keys = sorted(params)
    if "name" in params:
        keys.remove("name")
        keys.insert(0, "name")
    parts: list = [brk("")]
    for i, key in enumerate(keys):
        parts += [brk()] if i else []
        parts += [txt(f"{key}="), _param(params[key], ctx)]
    return group(cat([txt("["), nest(2, cat(parts)), brk(""), txt("]")]))


def _param(value, ctx: _Context):
    if isinstance(value, (Jaxpr, ClosedJaxpr)):
        jaxpr = value.jaxpr if isinstance(value, ClosedJaxpr) else value
        name = ctx.shared.get(jaxpr)
        return _jaxpr(jaxpr, ctx) if name is None else txt(name)
    if isinstance(value, tuple) and value and all(isinstance(v, (Jaxpr, ClosedJaxpr)) for v in value):
        parts: list = [brk("")]
        for i, v in enumerate(value):
            parts += [brk()] if i else []
            parts.append(_param(v, ctx))
        return group(cat([txt("("), nest(2, cat(parts)), brk(""), txt(")")]))
    text = str(value)
    return txt(_ADDRESS.sub("0xXXXXXXXXXXXX", text) if " at 0x" in text else text)


seams.print_jaxpr = pretty
