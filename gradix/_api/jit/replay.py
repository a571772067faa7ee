"""Functions made of many operations on small arrays, replayed by NumPy without what finds each operation anew.

A function's own code decides, checks and promotes in every call; for types it has met before, all of that comes out the
same. So its program is traced once, what depends on no argument is computed once, and the rest is written as straight code
that calls the operations' host rules: the same answers bit for bit, since the same rules give them.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.tree import tree_flatten as flatten
from gradix._control.linear_solve import linear_solve_p
from gradix._core.array import ArrayImpl
from gradix._core.jaxpr import ClosedJaxpr, Literal
from gradix._core.operators import Array
from gradix._core.trace import state
from gradix._runtime import dispatch, policy
from gradix._transforms.cse import cse_jaxpr
from gradix._transforms.dce import dce_jaxpr
from gradix._transforms.staging import stage

_FIRST = 16               # the call of given types that is traced, which takes as long as some thirty calls do
_LIMIT = 1 << 8           # signatures of one function
_ELEMENTS = 1 << 12       # of an equation's operands and results
_EQUATIONS = 400
_INTS = frozenset((int,))
_PLAIN = frozenset((int, bool, str, type(None)))
_ONE = flatten(0)[1]
_options = _config.state
_modes = policy.modes()


class NotReplayable(Exception):
    """An operation has no host rule, or is better done by XLA."""


def replayed(function: Callable) -> Callable:
    """`function`, replayed where it is called eagerly with small arrays of types it has met before.

    For functions of arrays and plain parameters whose operations depend on types and parameters only: those that look at
    an array's values, warn, or have effects must not be replayed.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> middle = replayed(lambda x: (lax.reduce_max(x, (0,)) + lax.reduce_min(x, (0,))) / 2)
        >>> {middle(jnp.arange(4)).item() for _ in range(20)}
        {1.5}
    """
    table: dict[tuple, Any] = {}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if state.stage is not None:
            return function(*args, **kwargs)
        key: list = [_options.context]
        hosts = []
        for a in args:
            t = type(a)
            if t is ArrayImpl:
                key.append(a.aval)
                h = a._host
                hosts.append(a.host if h is None else h)
            elif t in _PLAIN:
                key += t, a
            elif t is float:
                key += t, a or repr(a)                          # 0.0 equals -0.0
            elif t is tuple and _INTS.issuperset(map(type, a)):
                key.append(a)
            elif isinstance(a, (type, np.dtype)):
                key += t, a
            else:
                return function(*args, **kwargs)
        if kwargs:
            for name, a in kwargs.items():
                t = type(a)
                if t is ArrayImpl:
                    key += name, a.aval
                    hosts.append(a.host)
                elif t in _PLAIN or (t is tuple and _INTS.issuperset(map(type, a))) or isinstance(a, (type, np.dtype)):
                    key += name, t, a
                elif t is float:
                    key += name, t, a or repr(a)
                else:
                    return function(*args, **kwargs)
        key = tuple(key)
        found = table.get(key)
        if type(found) is Replay:
            return found.call(hosts)
        if found is not None and found >= _FIRST:               # it cannot be replayed
            return function(*args, **kwargs)
        if len(table) >= _LIMIT:
            table.clear()
        seen = (found or 0) + 1
        table[key] = seen
        if seen == _FIRST:
            try:
                table[key] = Replay(function, args, kwargs)
            except Exception:                                   # whatever it is, the function itself says it better
                table[key] = _FIRST
        return function(*args, **kwargs)

    return call


class Replay:
    """A function's program for arguments of given types, as code that calls host rules."""

    __slots__ = ("call",)

    def __init__(self, function: Callable, args: tuple, kwargs: dict):
        mode, nans, infs = _modes.get(_options.context) or policy.mode_of(_options.context)
        if mode == "xla" or nans or infs or _options.jax_disable_jit:
            raise NotReplayable
        closed, tree = _program(function, args, kwargs)
        self.call = _Writer(closed).function(tree)


def _program(function, args, kwargs):
    """The program of the call's arrays, without what is dead or said twice, and the tree of its results."""
    names = [name for name, a in kwargs.items() if type(a) is ArrayImpl]
    places = [i for i, a in enumerate(args) if type(a) is ArrayImpl]
    trees = []

    def flat(*arrays):
        given, named = list(args), dict(kwargs)
        for i, a in zip(places, arrays):
            given[i] = a
        named.update(zip(names, arrays[len(places):]))
        outs, tree = flatten(function(*given, **named))
        if any(not isinstance(x, Array) for x in outs):
            raise NotReplayable
        trees.append(tree)
        return outs

    avals = [args[i].aval for i in places] + [kwargs[name].aval for name in names]
    jaxpr, consts = stage(flat, avals)
    jaxpr = cse_jaxpr(dce_jaxpr(jaxpr, keep_inputs=True)[0])
    if jaxpr.effects:
        raise NotReplayable
    return ClosedJaxpr(jaxpr, consts), trees[0]


class _Writer:
    """Writes a program as Python that works on NumPy arrays."""

    def __init__(self, closed: ClosedJaxpr):
        self.names: dict[str, Any] = {"ndarray": np.ndarray, "physical": dispatch._physical, "ArrayImpl": ArrayImpl,
                                      "quiet": dispatch._quiet, "resume": dispatch._resume}
        self.lines: list[str] = []
        self.size = 0
        self.inputs = [self.fresh() for _ in closed.invars]
        self.known: dict[str, np.ndarray] = {}
        self.outs = self.program(closed, self.inputs)
        self.avals = closed.out_avals

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
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if prim.call_primitive and type(inner) is ClosedJaxpr:
            return self.program(inner, inputs)
        if prim is linear_solve_p:
            _, consts, _, b = prim.split(inputs, eqn.params["counts"])
            return self.program(eqn.params["solve"], [*consts, *b])
        avals = [v.aval for v in eqn.invars]
        size = sum([a.size for a in (*avals, *outs)])
        self.size += 1
        if prim.host is None or size > min(prim.host_limit, _ELEMENTS) or self.size > _EQUATIONS:
            raise NotReplayable
        quick = prim.specialise(*avals, **eqn.params) if prim.specialise else None
        rule = quick or (functools.partial(prim.host, **eqn.params) if eqn.params else prim.host)
        if all(name in self.known for name in inputs):
            return self.compute(rule, inputs, outs, prim.multiple_results)
        names = [self.fresh() for _ in outs]
        called = f"{self.fresh(rule)}({', '.join(inputs)})"
        self.lines.append(f"{', '.join(names)}{',' if prim.multiple_results else ''} = {called}")
        for name, aval in zip(names, outs):
            dtype, kind = self.fresh(aval.dtype), self.fresh(aval)
            self.lines.append(f"if type({name}) is not ndarray or {name}.dtype is not {dtype}: {name} = physical({name}, {kind})")
        return names

    def compute(self, rule, inputs, outs, multiple: bool) -> list[str]:
        """What depends on no argument, once and for all."""
        token = dispatch._quiet()
        try:
            results = rule(*[self.known[name] for name in inputs])
        finally:
            dispatch._resume(token)
        results = results if multiple else [results]
        return [self.constant(dispatch._physical(r, a)) for r, a in zip(results, outs)]

    def function(self, tree) -> Callable[[list], Any]:
        """Takes NumPy arrays, gives what the function gives."""
        wrapped = [f"ArrayImpl({name}, {self.fresh(aval)})" for name, aval in zip(self.outs, self.avals)]
        result = wrapped[0]
        if tree != _ONE:
            result = f"{self.fresh(tree)}.unflatten([{', '.join(wrapped)}])"
        body = "\n        ".join(self.lines) or "pass"
        taken = f"[{', '.join(self.inputs)}] = hosts" if self.inputs else "pass"
        # the inputs hide the names of the same spelling in the namespace
        text = (f"def call(hosts):\n    {taken}\n    token = quiet()\n    try:\n        {body}\n    finally:\n        "
                f"resume(token)\n    return {result}\n")
        exec(compile(text, "<replayed>", "exec"), self.names)
        return self.names["call"]


def _host(x) -> np.ndarray:
    if type(x) is not ArrayImpl:
        raise NotReplayable
    return x.host
