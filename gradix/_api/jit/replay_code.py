"""Writes programs on small arrays as straight-line Python that calls their host rules.

What depends on no argument is computed once. Operations that return their operand unchanged are
omitted. An array of one element is kept as a number where it is combined with larger arrays, since
NumPy has fast loops for numbers. The results are equal bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import itemgetter, methodcaller
from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._control.linear_solve import linear_solve_p
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Literal
from gradix._ops.arithmetic import div_p, max_p, min_p, mul_p, sub_p
from gradix._ops.basis import broadcast_in_dim_p
from gradix._ops.convert import convert_element_type_p
from gradix._ops.families import Elementwise
from gradix._ops.markers import stop_gradient_p
from gradix._ops.reduction_identities import highest, lowest
from gradix._ops.shape import reshape_p, squeeze_p
from gradix._runtime import dispatch

_threads: Any = lazy_module("gradix._base.one_thread")
ELEMENTS = 1 << 12  # the limit for the operands and results of one equation
_EQUATIONS = 400
_LIGHT = (np.ufunc, itemgetter, methodcaller)
_ARRAY, _NUMBER = "array", "number"
# the neutral element of each operation, and whether it is neutral on both sides
_NEUTRAL: dict[Any, tuple[Callable, bool]] = {
    mul_p: (lambda dtype: 1, True),
    div_p: (lambda dtype: 1, False),
    sub_p: (lambda dtype: 0, False),
    max_p: (lowest, True),
    min_p: (highest, True),
}
_RESHAPES = frozenset((reshape_p, squeeze_p, broadcast_in_dim_p))


class NotReplayable(Exception):
    """Raised where an operation has no host rule, or XLA computes it faster."""


class _Line:
    """One operation: the names of its results and operands, its code, and its weight."""

    __slots__ = ("code", "gives", "takes", "work")

    def __init__(self, gives: list[str], takes: list[str], code: str, work: int):
        self.gives, self.takes, self.code, self.work = gives, takes, code, work


class Writer:
    """Writes a program as Python that works on NumPy arrays."""

    def __init__(self, closed: ClosedJaxpr):
        self.names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "asarray": np.asarray,
            "physical": dispatch._physical,
            "ArrayImpl": ArrayImpl,
            "quiet": dispatch._quiet,
            "resume": dispatch._resume,
        }
        self.lines: list[_Line] = []
        self.size = self.work = 0
        self.inputs = [self.fresh() for _ in closed.invars]
        self.known: dict[str, np.ndarray] = {}
        # the name of a one-element array -> the name of the same element without axes
        self.axisless: dict[str, str] = {}
        self.numbers: set[str] = set()  # the names of values that are NumPy scalars, not arrays
        self.outs = self.program(closed, self.inputs)
        self.avals = closed.out_avals
        self.sweep()

    def fresh(self, value=None) -> str:
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def constant(self, value: np.ndarray) -> str:
        name = self.fresh(value)
        self.known[name] = value
        return name

    def program(self, closed: ClosedJaxpr, inputs: list[str]) -> list[str]:
        env = dict(zip(closed.constvars, [self.constant(_host(c)) for c in closed.consts]))
        env.update(zip(closed.invars, inputs))

        def read(v) -> str:
            return self.constant(_host(v.val)) if type(v) is Literal else env[v]

        for eqn in closed.eqns:
            env.update(zip(eqn.outvars, self.equation(eqn, [read(v) for v in eqn.invars])))
        return [read(v) for v in closed.outvars]

    def equation(self, eqn, inputs: list[str]) -> list[str]:
        prim, outs = eqn.primitive, [v.aval for v in eqn.outvars]
        if prim is stop_gradient_p:
            return inputs
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if prim.is_call and type(inner) is ClosedJaxpr:
            return self.program(inner, inputs)
        if prim is linear_solve_p:
            _, consts, _, b = linear_solve_p.split(inputs, eqn.params["counts"])
            return self.program(eqn.params["solve"], [*consts, *b])
        avals = [v.aval for v in eqn.invars]
        size = sum([a.size for a in (*avals, *outs)])
        self.size += 1
        if prim.host is None or size > min(prim.host_limit, ELEMENTS) or self.size > _EQUATIONS:
            raise NotReplayable
        quick = prim.specialise(*avals, **eqn.params) if prim.specialise else None
        rule = quick or (functools.partial(prim.host, **eqn.params) if eqn.params else prim.host)
        package = prim.threaded(*avals, **eqn.params) if prim.threaded else None
        if package is not None:
            rule = _threads.on_one_thread(rule, package)
        if all(name in self.known for name in inputs):
            return self.compute(rule, inputs, outs, prim.multiple_results)
        if prim in _NEUTRAL:
            same = self.unchanged(prim, inputs, avals, outs[0])
            if same:
                return [same]
        if prim in _RESHAPES and outs[0].size == 1:
            return [self.reshaped(rule, inputs[0], avals[0], outs[0])]
        if (isinstance(prim, Elementwise) or prim is convert_element_type_p) and outs[0].shape:
            return [self.elementwise(rule, inputs, avals, outs[0], quick is not None)]
        return self.write(rule, inputs, avals, outs, prim.multiple_results, quick is not None)

    def unchanged(self, prim, inputs: list[str], avals, out) -> str | None:
        """The operand that the operation returns unchanged, if the other is its neutral element."""
        neutral, either = _NEUTRAL[prim]
        for i in (0, 1) if either else (0,):
            number = self.known.get(inputs[1 - i])
            if number is not None and number.size == 1 and avals[i].shape == out.shape and out.dtype.kind in "fiu":
                wanted = neutral(out.dtype)
                if number == wanted and np.signbit(number) == np.signbit(wanted):
                    return inputs[i]
        return None

    def reshaped(self, rule, name: str, aval, out) -> str:
        """A one-element array with other axes; no line is written where its number will do."""
        bare = name if not aval.shape else self.axisless.get(name)
        if bare and not out.shape:
            return bare
        (given,) = self.write(rule, [name], [aval], [out], False, True)
        if bare:
            self.axisless[given] = bare
        return given

    def elementwise(self, rule, inputs: list[str], avals, out, stable: bool) -> str:
        """Write an elementwise operation; NumPy is fast where one-element operands have no axes."""
        bare = [self.bare(name) if a.size == 1 else None for name, a in zip(inputs, avals)]
        if out.size != 1 and any(a.shape == out.shape for a in avals):
            pairs = [(name, a) if b is None else (b, a.update(shape=())) for name, a, b in zip(inputs, avals, bare)]
            inputs, avals = [name for name, _ in pairs], [a for _, a in pairs]
        elif out.size == 1 and all(bare):
            kind = out.update(shape=())
            (number,) = self.write(
                rule, [b for b in bare if b], [a.update(shape=()) for a in avals], [kind], False, stable
            )
            return self.reshaped(methodcaller("reshape", out.shape), number, kind, out)
        return self.write(rule, inputs, avals, [out], False, stable)[0]

    def bare(self, name: str) -> str | None:
        """The name of a one-element array without its axes, if there is one."""
        value = self.known.get(name)
        if value is not None:
            return self.constant(value.reshape(())) if value.shape else name
        return self.axisless.get(name)

    def write(self, rule, inputs: list[str], avals, outs, multiple: bool, stable: bool) -> list[str]:
        """Write one line; `stable` says that the operands' types determine those of the results."""
        light = isinstance(rule, _LIGHT)
        names = [self.fresh() for _ in outs]
        taken = inputs if isinstance(rule, np.ufunc) else [f"asarray({n})" if n in self.numbers else n for n in inputs]
        code = f"{', '.join(names)}{',' if multiple else ''} = {self.fresh(rule)}({', '.join(taken)})"
        found = _gives(rule, avals, outs[0]) if (light or stable) and not multiple else None
        if found is _NUMBER:
            self.numbers.add(names[0])
        elif found is None:
            for name, aval in zip(names, outs):
                dtype, kind = self.fresh(aval.dtype), self.fresh(aval)
                code += (
                    f"\n        if type({name}) is not ndarray: {name} = asarray({name})"
                    f"\n        if {name}.dtype is not {dtype}: {name} = physical({name}, {kind})"
                )
        self.lines.append(_Line(names, inputs, code, 1 if light else 2))
        return names

    def compute(self, rule, inputs, outs, multiple: bool) -> list[str]:
        """Evaluate an operation that depends on no argument, while the code is written."""
        token = dispatch._quiet()
        try:
            results = rule(*[self.known[name] for name in inputs])
        finally:
            dispatch._resume(token)
        results = results if multiple else [results]
        return [self.constant(dispatch._physical(r, a)) for r, a in zip(results, outs)]

    def sweep(self) -> None:
        """Remove the lines whose results nothing reads."""
        needed, kept = set(self.outs), []
        for line in reversed(self.lines):
            if not needed.isdisjoint(line.gives):
                needed.update(line.takes)
                kept.append(line)
        self.lines = kept[::-1]
        self.work = sum([line.work for line in kept])

    def function(self, tree, one: bool) -> Callable[[list], Any]:
        """Compile the lines to a function from arrays to the result: a tree or one array."""
        wrapped = [
            f"ArrayImpl({f'asarray({name})' if name in self.numbers else name}, {self.fresh(aval)})"
            for name, aval in zip(self.outs, self.avals)
        ]
        result = wrapped[0] if one else f"{self.fresh(tree)}.unflatten([{', '.join(wrapped)}])"
        body = "\n        ".join([line.code for line in self.lines]) or "pass"
        taken = "".join(
            [
                f"\n    {name} = a{i}._host\n    if {name} is None: {name} = a{i}.host"
                for i, name in enumerate(self.inputs)
            ]
        )
        names = ", ".join([f"a{i}" for i in range(len(self.inputs))])
        # parameters hide equal names of the namespace
        text = (
            f"def call(arrays):\n    [{names}] = arrays{taken}\n    token = quiet()\n    try:\n        {body}\n   "
            f" finally:\n        resume(token)\n    return {result}\n"
        )
        exec(compile(text, "<replayed>", "exec"), self.names)
        return self.names.pop("call")


def _gives(rule, avals, out) -> str | None:
    """The kind of a result, "array" or "number", if a rule returns it of type `out`; else None."""
    if not all(isinstance(a.dtype, np.dtype) for a in (*avals, out)):
        return None
    token = dispatch._quiet()
    try:
        found = rule(*[np.ones(a.shape, a.dtype) for a in avals])
    except Exception:
        return None
    finally:
        dispatch._resume(token)
    if type(found) is np.ndarray:
        return _ARRAY if found.dtype is out.dtype and found.shape == out.shape else None
    return _NUMBER if isinstance(found, np.generic) and found.dtype is out.dtype and not out.shape else None


def _host(x) -> np.ndarray:
    if type(x) is not ArrayImpl:
        raise NotReplayable
    return x.host
