"""What a program does with its random keys: found by following each key, element by element, through the jaxpr."""

from __future__ import annotations

import os
import threading

import numpy as np

from gradix._base import source
from gradix._core.dtypes import KeyType
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._core.key_use import Use, consume, mark, reused

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# primitives that take places -> operands before these
_PLACED = {"dynamic_slice": 1, "dynamic_update_slice": 2}


class KeyFlow:
    """The keys a program consumes and hands on.

    Both tell, for arrays by number, the flat positions of consumed keys and the first use:
        `consumed` of the inputs,
    `spent` of the outputs, where a key is returned after its use.
    """

    __slots__ = ("consumed", "spent")

    def __init__(self, consumed, spent):
        self.consumed: dict[int, tuple[np.ndarray, Use]] = consumed
        self.spent: dict[int, tuple[np.ndarray, Use]] = spent


def key_flow(closed: ClosedJaxpr) -> KeyFlow:
    """How a program uses keys.

    Raises:
        KeyReuseError: it consumes a key twice.
    """
    found = closed.memo.get("key_flow")
    if found is None:
        walk = _Walk()
        ins = [walk.fresh(v.aval) for v in closed.jaxpr.invars]
        outs = walk.program(closed.jaxpr, ins)
        found = closed.memo["key_flow"] = KeyFlow(walk.used(ins), walk.used(outs))
    return found


def call_checked(flow: KeyFlow, by: str, args, function, hidden: int = 0):
    """Call `function()`, which runs a program on concrete arrays, and account for the keys it uses.

    Args:
        args: the arrays; the first `hidden` of them are captured by the program.

    Raises:
        KeyReuseError: an argument is a key consumed before.
    """
    for i, (positions, _) in flow.consumed.items():
        at = f"at index {i - hidden}" if i >= hidden else "as a value it captures"
        consume(by, args[i].host, positions, at)
    outs = function()
    if outs is NotImplemented:
        return outs
    for i, (positions, use) in flow.spent.items():
        mark(outs[i].host, positions, use)
    return outs


class _Running(threading.local):
    inside = False


_running = _Running()


def run_checked(prim, args, params):
    """`prim.run` for a primitive with inner programs, its use of keys accounted for once, outside."""
    if _running.inside or not prim.multiple_results or not any(_is_key(a.aval) for a in args):
        return prim.run(args, params)
    invars = [Var(a.aval) for a in args]
    out = prim.abstract(*[a.aval for a in args], **params)
    outvars: list = [Var(a) for a in out]
    eqn = JaxprEqn(prim, invars, outvars, params, source=source.current())
    flow = key_flow(ClosedJaxpr(Jaxpr([], invars, outvars, [eqn]), ()))
    _running.inside = True
    try:
        return call_checked(flow, prim.name, args, lambda: prim.run(args, params))
    finally:
        _running.inside = False


def _is_key(aval) -> bool:
    return isinstance(aval.dtype, KeyType)


class _Walk:
    """Gives each key a number, and notes where each number is consumed."""

    def __init__(self):
        self.count = 0
        self.uses: dict[int, Use] = {}
        # a key that is one of some others, chosen as the program runs
        self.either: dict[int, tuple[int, ...]] = {}
        # the name and place of the library function being walked
        self.caller: tuple | None = None
        # inside a recomputation, which draws the same numbers on purpose
        self.repeated = False

    def fresh(self, aval):
        if not _is_key(aval):
            return None
        self.count += aval.size
        return np.arange(self.count - aval.size, self.count).reshape(aval.shape)

    def used(self, keys) -> dict[int, tuple[np.ndarray, Use]]:
        """The positions consumed in each array of keys."""
        found = {}
        for i, ids in enumerate(keys):
            if ids is not None:
                positions = [p for p, n in enumerate(ids.ravel().tolist()) if n in self.uses]
                if positions:
                    found[i] = np.array(positions), self.uses[ids.ravel()[positions[0]]]
        return found

    def program(self, jaxpr: Jaxpr, ins) -> list:
        env = dict(zip(jaxpr.invars, ins))
        env.update((v, self.fresh(v.aval)) for v in jaxpr.constvars)
        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [None if type(v) is Literal else env[v] for v in eqn.invars])
            env.update(zip(eqn.outvars, outs))
        return [None if type(v) is Literal else env[v] for v in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, ins) -> list:
        name = eqn.primitive.name
        if all(k is None for k in ins) and name not in ("while", "scan", "cond"):
            return self.inner(eqn, ins)
        if eqn.primitive.consumes_keys:
            self.consume(eqn, ins[0])
        elif eqn.primitive.rearranges:
            out = eqn.primitive.host(*ins, **eqn.params)
            return list(out) if eqn.primitive.multiple_results else [np.asarray(out)]
        elif name == "select_n":
            return [self.chosen(ins[1:])]
        elif name in _PLACED and all(type(v) is Literal for v in eqn.invars[_PLACED[name] :]):
            n = _PLACED[name]
            starts = [np.asarray(v.val) for v in eqn.invars[n:]]
            return [np.asarray(eqn.primitive.host(*ins[:n], *starts, **eqn.params))]
        elif name == "scan":
            return self.scan(eqn, ins)
        elif name == "while":
            return self.while_loop(eqn, ins)
        elif name == "cond":
            return self.cond(eqn, ins)
        return self.inner(eqn, ins)

    def consume(self, eqn, ids) -> None:
        by, place = self.caller or (eqn.primitive.name, eqn.source)
        use = Use(by, place)
        numbers = sorted({n for i in np.unique(ids).tolist() for n in self.either.get(i, (i,))})
        again = next((n for n in numbers if n in self.uses), None)
        if again is not None and not self.repeated:
            raise reused(
                f"In {by}, argument 0 is a key that is already consumed.", self.uses[again], use
            )
        self.uses.update((n, use) for n in numbers if n not in self.uses)

    def chosen(self, cases) -> np.ndarray:
        """Keys each of which is one of its cases: using it counts as using all of them."""
        out = np.empty(cases[0].shape, np.int64)
        for place in np.ndindex(out.shape):
            numbers = sorted(
                {n for c in cases for n in self.either.get(int(c[place]), (int(c[place]),))}
            )
            out[place] = numbers[0]
            if len(numbers) > 1:
                self.count += 1
                out[place] = self.count - 1
                self.either[self.count - 1] = tuple(numbers)
        return out

    def inner(self, eqn, ins) -> list:
        """The results of an equation that calls a program, or of any other, whose keys are new ones."""
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
            return [self.fresh(v.aval) for v in eqn.outvars]
        saved = self.caller, self.repeated
        if self.caller is None and closed.jaxpr.debug_info.place.startswith(_PACKAGE):
            self.caller = str(eqn.params.get("name", eqn.primitive.name)).lstrip("_"), eqn.source
        self.repeated = self.repeated or bool(eqn.params.get("differentiated"))
        outs = self.program(closed.jaxpr, ins)
        self.caller, self.repeated = saved
        return outs

    def scan(self, eqn, ins) -> list:
        """Two turns stand for all: they show a constant key used in each, and a carried key used and handed on."""
        closed, length, nc, nk = (
            eqn.params[k] for k in ("jaxpr", "length", "num_consts", "num_carry")
        )
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
        """What the first turns did to their rows, the others do to theirs."""
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
        """A key is consumed when some branch does; each branch starts from what was before."""
        before, after = self.uses, dict(self.uses)
        outs = None
        for branch in eqn.params["branches"]:
            self.uses = dict(before)
            given = self.program(branch.jaxpr, ins[1:])
            outs = given if outs is None else outs
            after.update(self.uses)
        self.uses = after
        return outs or []
