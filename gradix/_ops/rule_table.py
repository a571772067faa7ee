"""The table of operations and rules, made from the primitives themselves."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from typing import Any

from gradix._base.lazy import load_package
from gradix._core.primitive import Primitive
from gradix._ops.families import ZERO, Elementwise, NonDifferentiable, kinds_of

HAS, MISSING, NONE = "x", "·", "0"
COLUMNS = ("abstract", "host", "lower", "jvp", "transpose", "linearize", "batch", "dtypes", "also")
# The column `also` lists rules that few primitives have, and other declared properties.
FURTHER = (
    "specialise",
    "threaded",
    "work",
    "transpose_live",
    "dependent",
    "dce",
    "effects",
    "names",
    "show",
    "asked_of",
    "needs_varying",
    "varying",
    "divide",
    "sums",
    "mask",
)
DECLARED = (
    "multiple_results",
    "is_call",
    "call_primitive",
    "inlining",
    "mesh",
    "consumes_keys",
    "only_backward",
    "live",
    "selects",
    "host_limit",
    "declines",
    "silent",
    "costly",
    "formula",
    "values",
    "rearranges",
    "defines_size",
)
_PACKAGES = ("gradix._ops.", "gradix._control.")
_ASSIGNED = re.compile(r"^(\w+_p(?:, \w+_p)*)(?:: \w+)? = ", re.MULTILINE)
_LEGEND = """x  has the rule              ·  has none: using it raises an error that says so
0  its derivative is zero    run  evaluated through its inner program, or by a method of its own
lower: direct is StableHLO, expand a composition of other primitives. linearize: jvp is derived from the jvp rule.
dtypes: what the primitive declares; blank where its types depend on more.
also: rules that few have, and the properties that differ from the usual; gradix/_core/primitive.py explains each."""


def families() -> dict[str, list[Primitive]]:
    """The primitives by the file that makes them."""
    found: dict[str, list[Primitive]] = {}
    for package in _PACKAGES:
        load_package(package.rstrip("."))
    for module_name, module in sorted(sys.modules.items()):
        if not module_name.startswith(_PACKAGES) or module_name.endswith("__main__"):
            continue
        names = ", ".join(_ASSIGNED.findall(inspect.getsource(module)))
        primitives = [p for n in names.split(", ") if isinstance(p := getattr(module, n, None), Primitive)]
        if primitives:  # each primitive once, even if it has several names
            found[module_name.removeprefix("gradix.").replace(".", "/")] = list(dict.fromkeys(primitives))
    return found


def row(prim: Primitive) -> tuple[str, ...]:
    """The entries of the columns for one primitive."""
    return tuple([_CELLS[column](prim) for column in COLUMNS])


def table() -> str:
    """The whole table, a line per primitive, with totals.

    Example:
        >>> " ".join(next(line.split() for line in table().splitlines() if line.split()[:1] == ["sin"]))
        'sin x x direct x · jvp x floating, complex specialise divide live=elements formula=periodic'
    """
    groups = {family: [(p.name, *row(p)) for p in primitives] for family, primitives in families().items()}
    rows = [r for group in groups.values() for r in group]
    widths = [max(len(r[i]) for r in (("primitive", *COLUMNS), *rows)) for i in range(len(COLUMNS) + 1)]

    def line(cells) -> str:
        return "  " + "  ".join([c.ljust(w) for c, w in zip(cells, widths)]).rstrip()

    out = [line(("primitive", *COLUMNS)), ""]
    for family, group in groups.items():
        out += [family, *map(line, group), ""]
    totals = [str(sum(r[i] != MISSING for r in rows)) for i in range(1, len(COLUMNS))]
    zero = sum(r[1 + COLUMNS.index("jvp")] == NONE for r in rows)
    out += [line((f"{len(rows)} in all", *totals)), f"  of which {zero} with a derivative of zero", "", _LEGEND]
    return "\n".join(out)


def _has(prim: Primitive, rule: str) -> bool:
    """Whether the primitive's class, or the primitive itself, gives the rule."""
    return rule in vars(prim) or getattr(type(prim), rule) is not getattr(Primitive, rule)


def _mark(rule: str) -> Callable[[Primitive], str]:
    return lambda prim: HAS if _has(prim, rule) else MISSING


def _host(prim: Primitive) -> str:
    return HAS if prim.host is not None else "run" if prim.run is not None else MISSING


def _lower(prim: Primitive) -> str:
    return "expand" if prim.expand is not None else "direct" if prim.lower is not None else MISSING


def _jvp(prim: Primitive) -> str:
    if isinstance(prim, NonDifferentiable):
        return NONE
    if (
        isinstance(prim, Elementwise)
        and type(prim).jvp is Elementwise.jvp
        and prim.from_result is None
        and all(d is ZERO for d in prim.partials)
    ):
        return NONE if prim.partials else MISSING
    return _mark("jvp")(prim)


def _transpose(prim: Primitive) -> str:
    if _jvp(prim) == NONE:
        return NONE
    if isinstance(prim, Elementwise) and type(prim).transpose is Elementwise.transpose:
        return MISSING if prim._transpose is None else HAS
    return _mark("transpose")(prim)


def _linearize(prim: Primitive) -> str:
    if _has(prim, "linearize"):
        return HAS
    jvp = _jvp(prim)
    return "jvp" if jvp == HAS else jvp


def _dtypes(prim: Primitive) -> str:
    return kinds_of(prim.accepts) if prim.accepts else ""


def _also(prim: Primitive) -> str:
    return " ".join(
        [
            *[rule for rule in FURTHER if _has(prim, rule)],
            *[
                _shown(name, getattr(prim, name))
                for name in DECLARED
                if _has(prim, name) and getattr(prim, name) != getattr(Primitive, name)
            ],
        ]
    )


def _shown(name: str, value) -> str:
    """A property as text: its name alone where its value is True or a function."""
    if isinstance(value, tuple):
        usual: Any = getattr(Primitive, name)
        named = [(field, v) for field, v, u in zip(usual._fields, value, usual) if v != u]
        return f"{name}={'+'.join([_shown(field, v) for field, v in named])}"
    if isinstance(value, frozenset):
        return f"{name}={kinds_of(value)}"
    return name if value is True or callable(value) else f"{name}={value}"


_CELLS: dict[str, Callable[[Primitive], str]] = {
    "abstract": _mark("abstract"),
    "host": _host,
    "lower": _lower,
    "jvp": _jvp,
    "transpose": _transpose,
    "linearize": _linearize,
    "batch": _mark("batch"),
    "dtypes": _dtypes,
    "also": _also,
}
