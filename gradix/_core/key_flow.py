"""How a program uses its random keys: follows each key, element by element, through the jaxpr."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from gradix._base import source
from gradix._core.dtypes import KeyType
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.key_use import Use, consume, mark, reused
from gradix._core.user_primitive import Primitive as _OfUsers

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_SAMPLERS = os.path.join(_PACKAGE, "random", "")
# a primitive that takes start indices -> the number of operands before these
_PLACED = {"dynamic_slice": 1, "dynamic_update_slice": 2}
_TAKEN = {*_PLACED, "gather"}


class KeyFlow:
    """The keys that a program consumes.

    Each attribute maps the number of an array to the flat positions of keys in it, and a first use.

    Attributes:
        consumed: the input keys that are consumed.
        repeated: the input keys that only a recomputation uses again.
        spent: the output keys that have been consumed before they are returned.
        forwarded: the outputs that hold just the keys of an input, with the number of this input.
    """

    __slots__ = ("consumed", "repeated", "spent", "forwarded")

    def __init__(self, walk: _Walk, ins, outs):
        self.consumed = walk.used(ins, walk.uses.keys() - walk.again)
        self.repeated = walk.used(ins, walk.again)
        self.spent = walk.used(outs, walk.uses.keys())
        places = {frozenset(k.ravel().tolist()): i for i, k in enumerate(ins) if k is not None}
        held = {o: frozenset(k.ravel().tolist()) for o, k in enumerate(outs) if k is not None}
        self.forwarded = {o: places[keys] for o, keys in held.items() if keys in places}


def key_flow(closed: ClosedJaxpr) -> KeyFlow:
    """Find how a program uses keys.

    Raises:
        KeyReuseError: the program consumes a key twice.
    """
    found = closed.memo.get("key_flow")
    if found is None:
        walk = _Walk()
        ins = [walk.fresh(v.aval) for v in closed.jaxpr.invars]
        debug = closed.jaxpr.debug_info
        outs = walk.called(closed.jaxpr, ins, debug.name.lstrip("_"), debug.place)
        found = closed.memo["key_flow"] = KeyFlow(walk, ins, outs)
    return found


def call_checked(flow: KeyFlow, by: str, args, function, hidden: int = 0):
    """Call `function()`, which runs a program on concrete arrays, and record the keys it uses.

    Args:
        args: the arrays; the first `hidden` of them are captured by the program.

    Raises:
        KeyReuseError: an argument holds a key that was consumed before.
    """
    if _running.inside:
        return function()
    for i, (positions, _) in flow.consumed.items():
        at = f"at index {i - hidden}" if i >= hidden else "as a value it captures"
        consume(by, args[i].host, positions, at)
    outs = accounted(function)
    if outs is NotImplemented:
        return outs
    for arrays, marked in ((args, flow.repeated), (outs, flow.spent)):
        for i, (positions, use) in marked.items():
            mark(arrays[i].host, positions, use)
    return outs


class _Running(threading.local):
    inside = False


_running = _Running()


def is_accounted() -> bool:
    """Whether a caller has already recorded the keys that are used now."""
    return _running.inside


def accounted(function, *args, **kwargs):
    """Call a function whose use of keys the caller has recorded."""
    outer, _running.inside = _running.inside, True
    try:
        return function(*args, **kwargs)
    finally:
        _running.inside = outer


def run_checked(prim, args, params):
    """Call `prim.run` of a primitive with inner programs, and record its use of keys once."""
    if _running.inside or not prim.multiple_results or not any(_is_key(a.aval) for a in args):
        return prim.run(args, params)
    invars = [Var(a.aval) for a in args]
    out = prim.abstract(*[a.aval for a in args], **params)
    outvars: list = [Var(a) for a in out]
    eqn = JaxprEqn(prim, invars, outvars, params, source=source.current())
    flow = key_flow(ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]), ()))
    return call_checked(flow, prim.name, args, lambda: prim.run(args, params))


def _is_key(aval) -> bool:
    return isinstance(aval.dtype, KeyType)


class _Values:
    """Finds values of a program that are certainly equal: results of equal equations."""

    def __init__(self):
        self.names: dict = {}
        self.known: dict = {}

    def name(self, v):
        return repr(v.val) if type(v) is Literal else self.names.get(v, v)

    def note(self, eqn) -> None:
        made = self.equation(eqn, [self.name(v) for v in eqn.invars])
        if made is not None:
            own = self.known.setdefault(made, eqn.outvars)
            self.names.update((v, self.name(o)) for v, o in zip(eqn.outvars, own) if v is not o)

    def taken(self, eqn, keys, take) -> list:
        """The keys that an equation takes from an array; equal indices give the same keys."""
        names = [self.name(v) if ids is None else (ids.shape, ids.tobytes()) for v, ids in zip(eqn.invars, keys)]
        made = self.equation(eqn, names)
        if made is None:
            return take()
        if made not in self.known:
            self.known[made] = take()
        return self.known[made]

    def equation(self, eqn, names):
        """A key for what an equation computes; None if it cannot be compared."""
        if eqn.effects:
            return None
        made = eqn.primitive, tuple(eqn.params.items()), tuple(names)
        try:
            hash(made)
        except TypeError:
            return None
        return made


class _Walk:
    """A walk through a program that numbers the keys, and records where each is consumed."""

    def __init__(self):
        self.count = 0
        self.uses: dict[int, Use] = {}
        # the number of a key that is chosen at run time -> the numbers it may be
        self.either: dict[int, tuple[int, ...]] = {}
        # the name and place of the library function that is being walked
        self.caller: tuple[str, Any] | None = None
        # whether this is inside a recomputation, which uses the same keys on purpose
        self.repeated = False
        # the keys that only recomputations have consumed
        self.again: set[int] = set()

    def fresh(self, aval):
        if not _is_key(aval):
            return None
        self.count += aval.size
        return np.arange(self.count - aval.size, self.count).reshape(aval.shape)

    def used(self, keys, numbers) -> dict[int, tuple[np.ndarray, Use]]:
        """The positions in each array of keys that hold one of the numbers."""
        found = {}
        for i, ids in enumerate(keys):
            if ids is not None:
                positions = [p for p, n in enumerate(ids.ravel().tolist()) if n in numbers]
                if positions:
                    found[i] = np.array(positions), self.uses[ids.ravel()[positions[0]]]
        return found

    def program(self, jaxpr: Jaxpr, ins) -> list:
        env = dict(zip(jaxpr.invars, ins))
        env.update((v, self.fresh(v.aval)) for v in jaxpr.constvars)
        values = _Values()
        for eqn in jaxpr.eqns:
            keys = [None if type(v) is Literal else env[v] for v in eqn.invars]
            if eqn.primitive.name in _TAKEN and keys[0] is not None:
                outs = values.taken(eqn, keys, lambda eqn=eqn, keys=keys: self.equation(eqn, keys))
            else:
                outs = self.equation(eqn, keys)
                values.note(eqn)
            env.update(zip(eqn.outvars, outs))
        return [None if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, ins) -> list:
        name = eqn.primitive.name
        if all(k is None for k in ins) and name not in ("while", "scan", "cond"):
            return self.inner(eqn, ins)
        if eqn.primitive.consumes_keys:
            self.consume(self.caller or (name, eqn.source), ins[0])
        if eqn.primitive.rearranges:
            out = eqn.primitive.host(*ins, **eqn.params)
            return list(out) if eqn.primitive.multiple_results else [np.asarray(out)]
        elif name == "select_n":
            return [self.chosen(ins[1:])]
        elif name in _PLACED and all(type(v) is Literal for v in eqn.invars[_PLACED[name] :]):
            n = _PLACED[name]
            starts = [np.asarray(v.val) for v in eqn.invars[n:]]
            return [np.asarray(eqn.primitive.host(*ins[:n], *starts, **eqn.params))]
        elif name == "assert_consumed_value":
            self.check(ins[0], eqn)
            return ins
        elif name == "copy":
            return ins
        elif name == "scan":
            return self.scan(eqn, ins)
        elif name == "while":
            return self.while_loop(eqn, ins)
        elif name == "cond":
            return self.cond(eqn, ins)
        return self.inner(eqn, ins)

    def cases_of(self, number: int) -> tuple[int, ...]:
        return self.either.get(number, (number,))

    def consume(self, caller: tuple[str, Any], ids) -> None:
        by, place = caller
        use = Use(by, place)
        numbers = sorted({n for i in np.unique(ids).tolist() for n in self.cases_of(i)})
        new = [n for n in numbers if n not in self.uses]
        if self.repeated:
            self.again.update(new)
        elif len(new) < len(numbers):
            first = next(self.uses[n] for n in numbers if n in self.uses)
            raise reused(f"In {by}, argument 0 is a key that is already consumed.", first, use)
        self.uses.update(dict.fromkeys(new, use))

    def check(self, ids, eqn) -> None:
        """Raise AssertionError unless the keys are consumed where the equation says so."""
        wanted = np.broadcast_to(eqn.params["value"], ids.shape)
        found = np.reshape([n in self.uses for n in ids.ravel().tolist()], ids.shape)
        if (found != wanted).any():
            raise AssertionError(
                f"Expected keys to be consumed where this says so: {wanted}, but they are where this "
                f"does: {found}; at {eqn.source}."
            )

    def chosen(self, cases) -> np.ndarray:
        """Keys chosen among cases at run time; using such a key counts as using all its cases."""
        out = np.empty(cases[0].shape, np.int64)
        for place in np.ndindex(out.shape):
            numbers = sorted({n for c in cases for n in self.cases_of(int(c[place]))})
            out[place] = numbers[0]
            if len(numbers) > 1:
                self.count += 1
                out[place] = self.count - 1
                self.either[self.count - 1] = tuple(numbers)
        return out

    def inner(self, eqn, ins) -> list:
        """The results of an equation that calls a program; other equations make new keys."""
        closed = next(
            (
                p
                for p in eqn.params.values()
                if isinstance(p, ClosedJaxpr)
                and len(p.jaxpr.invars) == len(ins)
                and len(p.jaxpr.outvars) == len(eqn.outvars)
            ),
            None,
        )
        if closed is None:
            made = type(eqn.primitive)
            if issubclass(made, _OfUsers) and not eqn.primitive.consumes_keys:
                # It may draw with any of the keys it is given.
                for ids in ins:
                    if ids is not None:
                        self.consume((eqn.primitive.name, eqn.source), ids)
            return [self.fresh(v.aval) for v in eqn.outvars]
        repeated = self.repeated
        self.repeated = repeated or bool(eqn.params.get("differentiated"))
        name = str(eqn.params.get("name", eqn.primitive.name)).lstrip("_")
        outs = self.called(closed.jaxpr, ins, name, eqn.source)
        self.repeated = repeated
        return outs

    def called(self, jaxpr: Jaxpr, ins, name: str, source) -> list:
        """The results of the program `name`; uses in a library function are its caller's."""
        place = jaxpr.debug_info.place
        if self.caller is not None or not place.startswith(_PACKAGE):
            return self.program(jaxpr, ins)
        self.caller = name, source
        if place.startswith(_SAMPLERS):
            outs = self.sampler(jaxpr, ins, self.caller)
        else:
            outs = self.program(jaxpr, ins)
        self.caller = None
        return outs

    def sampler(self, jaxpr: Jaxpr, ins, caller: tuple[str, Any]) -> list:
        """Walk a sampler, which consumes its key once, even if two of its branches both use it."""
        before = self.uses, self.again, self.repeated
        self.uses, self.again, self.repeated = {}, set(), True
        outs = self.program(jaxpr, ins)
        drawn = self.uses
        self.uses, self.again, self.repeated = before
        for ids in ins:
            if ids is not None:
                numbers = {n for n in ids.ravel().tolist() if not drawn.keys().isdisjoint(self.cases_of(n))}
                if numbers:
                    self.consume(caller, np.array(sorted(numbers)))
        return outs

    def scan(self, eqn, ins) -> list:
        """Walk two iterations, which show all reuse: of constant keys, and of keys in the carry."""
        closed, length, nc, nk = (eqn.params[k] for k in ("jaxpr", "length", "num_consts", "num_carry"))
        consts, carry, xs = ins[:nc], ins[nc : nc + nk], ins[nc + nk :]
        body, before = closed.jaxpr, set(self.uses)
        for turn in range(min(length, 2)):
            rows = [None if x is None else x[turn] for x in xs]
            carry = self.program(body, [*consts, *carry, *rows])[:nk]
        for x in xs:
            if x is not None and length > 2:
                self._repeat(x.reshape(length, -1), before)
        return [*carry, *[self.fresh(v.aval) for v in eqn.outvars[nk:]]]

    def _repeat(self, rows, before) -> None:
        """Record for the rows of all other iterations what the walked ones did to their rows."""
        for column, number in zip(rows[2:].T, rows[1].tolist()):
            if number in self.uses and number not in before:
                self.uses.update(dict.fromkeys(column.tolist(), self.uses[number]))

    def while_loop(self, eqn, ins) -> list:
        p = eqn.params
        nc, nb = p["cond_nconsts"], p["body_nconsts"]
        cond_consts, consts, carry = ins[:nc], ins[nc : nc + nb], ins[nc + nb :]
        for _ in range(2):
            self.program(p["cond_jaxpr"].jaxpr, [*cond_consts, *carry])
            carry = self.program(p["body_jaxpr"].jaxpr, [*consts, *carry])
        return carry

    def cond(self, eqn, ins) -> list:
        """Walk all branches from the same state; a key is consumed if any branch consumes it."""
        before, after = self.uses, dict(self.uses)
        outs = None
        for branch in eqn.params["branches"]:
            self.uses = dict(before)
            given = self.program(branch.jaxpr, ins[1:])
            outs = given if outs is None else outs
            after.update(self.uses)
        self.uses = after
        return outs or []
