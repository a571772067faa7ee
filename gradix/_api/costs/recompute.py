"""Programs that compute values again in place of keeping them, so that they need less memory.

The equations before the moment of most memory are cut into segments. What goes from one segment
into the next is kept. All else that later equations read is computed again there, a part of a
segment at a time; as the equations of a backward pass read the segments in reverse, the values of
one part are alive at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from gradix._base.name_stack import EMPTY
from gradix._control.call import jit_p
from gradix._core.dimensions.bounds import upper
from gradix._core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from gradix._ops.markers import after_p
from gradix._transforms.cse import simplify

_AGAIN = EMPTY.extend("rematted_computation")
# Values smaller than this part of the largest one are kept rather than computed again.
_SMALL = 32


def inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the calls of jitted functions written out."""
    eqns: list[JaxprEqn] = []
    consts: list[tuple[Var, object]] = list(zip(closed.jaxpr.constvars, closed.consts))
    outs = _write_out(closed.jaxpr, None, eqns, consts)
    jaxpr = closed.jaxpr
    return ClosedJaxpr(
        Jaxpr([v for v, _ in consts], jaxpr.invars, outs, eqns, debug_info=jaxpr.debug_info), [c for _, c in consts]
    )


def _write_out(jaxpr: Jaxpr, env: dict | None, eqns: list, consts: list) -> list:
    """Write the equations of a program, and return its results.

    Args:
        env: what stands for the inputs of an inner program, whose values get new variables as it
            may be called twice; None for the outer program.
    """
    is_inner, env = env is not None, {} if env is None else env

    def read(v):
        return v if type(v) is Literal else env.get(v, v)

    for eqn in jaxpr.eqns:
        invars = [read(v) for v in eqn.invars]
        if eqn.primitive is jit_p:
            inner = eqn.params["jaxpr"]
            held = [Var(v.aval) for v in inner.jaxpr.constvars]
            consts += zip(held, inner.consts)
            given = dict(zip([*inner.jaxpr.constvars, *inner.jaxpr.invars], [*held, *invars]))
            env.update(zip(eqn.outvars, _write_out(inner.jaxpr, given, eqns, consts)))
            continue
        outvars = [Var(v.aval) for v in eqn.outvars] if is_inner else eqn.outvars
        eqns.append(eqn.replace(invars=invars, outvars=outvars))
        if is_inner:
            env.update(zip(eqn.outvars, outvars))
    return [read(v) for v in jaxpr.outvars]


class Flow(NamedTuple):
    """Where the values of a program are made and read, by the numbers of its equations.

    Attributes:
        made: the equation that makes a value; -1 for inputs.
        last: the last equation that reads a value, or the number of equations for results.
        turn: the equation before which most bytes are alive.
        alive: the bytes alive before each equation, without inputs.
        handed: the bytes that the equations before each one hand to those from it to the turn.
        read: the last equation before the turn that reads a value.
    """

    made: dict[Var, int]
    last: dict[Var, int]
    turn: int
    alive: list[int]
    handed: list[int]
    read: dict[Var, int]

    @classmethod
    def of(cls, jaxpr: Jaxpr) -> Flow:
        count = len(jaxpr.eqns)
        made: dict[Var, int] = dict.fromkeys([*jaxpr.constvars, *jaxpr.invars], -1)
        last = _last_reads(jaxpr.eqns)
        for k, eqn in enumerate(jaxpr.eqns):
            made.update(dict.fromkeys(eqn.outvars, k))
        last.update({v: count for v in jaxpr.outvars if type(v) is not Literal})
        alive = _between(made, last, count)
        turn = min(max(range(len(alive)), key=alive.__getitem__), count)
        read = _last_reads(jaxpr.eqns[:turn])
        return cls(made, last, turn, alive, _between(made, read, turn), read)


def _last_reads(eqns: list[JaxprEqn]) -> dict[Var, int]:
    """The number of the last equation that reads each value."""
    return {v: k for k, eqn in enumerate(eqns) for v in eqn.invars if type(v) is not Literal}


def _between(made: dict[Var, int], last: dict[Var, int], count: int) -> list[int]:
    """The bytes of the values that are made before each equation and read from it on."""
    found = [0] * (count + 2)
    for v, end in last.items():
        start = made[v]
        if 0 <= start < end:
            found[start + 1] += nbytes_of(v)
            found[end + 1] -= nbytes_of(v)
    for k in range(1, len(found)):
        found[k] += found[k - 1]
    return found


def recomputing(closed: ClosedJaxpr, segments: int, parts: int = 1, nbytes: int = 0) -> ClosedJaxpr:
    """The program with values computed again, from those handed from segment to segment.

    Args:
        closed: the program, without calls.
        segments: how many segments there are.
        parts: in how many parts the values of a segment are computed again; each part begins at the
            start of its segment.
        nbytes: the bytes of temporary memory that the compiled program takes as it is; by default
            the bytes alive at the moment of most memory.
    """
    jaxpr = closed.jaxpr
    flow = Flow.of(jaxpr)
    starts = _starts(flow, segments, nbytes or flow.alive[flow.turn])
    ends = [*starts[1:], flow.turn]
    # the first equation of each part, and that of its segment
    of_parts = [(a + (b - a) * n // parts, a) for a, b in zip(starts, ends) for n in range(parts)]
    if len(of_parts) < 2:
        return closed
    writer = _Writer(jaxpr, flow, of_parts, starts)
    for k, eqn in enumerate(jaxpr.eqns):
        writer.write(k, eqn)
    made = jaxpr.replace(eqns=writer.eqns)
    return simplify(ClosedJaxpr(made, closed.consts))


def _starts(flow: Flow, segments: int, nbytes: int) -> list[int]:
    """The first equations of segments, chosen where few bytes are handed on.

    While a segment is computed again, what was handed to it and to those before it is kept. So the
    later a segment, the shorter it is.
    """
    if segments < 2 or flow.turn < 2 * segments:
        return [0]
    width = flow.turn / segments
    near = [min(flow.handed[max(int((n - 0.5) * width), 1) :][: int(width) + 1]) for n in range(1, segments)]
    shorter = sum(near) / len(near) / max(nbytes / flow.turn, 1)
    shorter = min(shorter, width / segments)
    lengths = [width + ((segments - 1) / 2 - n) * shorter for n in range(segments)]
    found = [0]
    for n in range(1, segments):
        wanted, around = sum(lengths[:n]), min(lengths) / 2
        low, high = max(round(wanted - around), 1), min(round(wanted + around), flow.turn - 1)
        if low <= high:
            best = min(range(low, high + 1), key=lambda k: (flow.handed[k], abs(k - wanted)))
            if best > found[-1]:
                found.append(best)
    return found


class _Writer:
    """Writes the equations of a program, and those that are computed again before their use."""

    def __init__(self, jaxpr: Jaxpr, flow: Flow, parts: list[tuple[int, int]], starts: list[int]):
        self.jaxpr, self.flow, self.parts, self.starts = jaxpr, flow, parts, starts
        self.eqns: list[JaxprEqn] = []
        self.again: dict[int, dict[Var, Var]] = {}  # by part
        largest = max([nbytes_of(v) for v in flow.made], default=0)
        self.small = max(largest // _SMALL, 256)
        self.repeated = {v for v in flow.made if self._is_repeated(v)}

    def part_of(self, k: int) -> int:
        """The number of the part of an equation."""
        return sum([k >= first for first, _ in self.parts]) - 1

    def _is_repeated(self, v: Var) -> bool:
        """Whether a value is computed again where an equation after the turn reads it.

        Small ones are not, nor what is handed to the next segment, nor what the last part makes.
        """
        k, read = self.flow.made[v], self.flow.read.get(v, -1)
        if not 0 <= k < self.parts[-1][0] or nbytes_of(v) <= self.small:
            return False
        is_handed = any(k < start <= read for start in self.starts)
        return not is_handed and not self.jaxpr.eqns[k].effects

    def write(self, k: int, eqn: JaxprEqn) -> None:
        if k >= self.flow.turn:
            for v in eqn.invars:
                if type(v) is not Literal and v in self.repeated:
                    part = self.part_of(self.flow.made[v])
                    if part not in self.again:
                        self.again[part] = self._repeat(part, k, eqn)
            invars = [v if type(v) is Literal else self._now(v) for v in eqn.invars]
            eqn = eqn.replace(invars=invars)
        self.eqns.append(eqn)

    def _now(self, v: Var) -> Var:
        if v not in self.repeated:
            return v
        return self.again[self.part_of(self.flow.made[v])].get(v, v)

    def _chosen(self, part: int) -> list[JaxprEqn]:
        """The equations that compute the values of a part which are read after the turn."""
        flow = self.flow
        first, start = self.parts[part]
        end = self.parts[part + 1][0]
        needed = (
            {v for v in self.repeated if first <= flow.made[v] < end and flow.last.get(v, -1) >= flow.turn}
            if part + 1 < len(self.parts)
            else set()
        )
        chosen = []
        for eqn in reversed(self.jaxpr.eqns[start:end]):
            if any(v in needed for v in eqn.outvars):
                chosen.append(eqn)
                reads = [v for v in eqn.invars if type(v) is not Literal]
                needed.update([v for v in reads if v in self.repeated and flow.made[v] >= start])
        return chosen[::-1]

    def _repeat(self, part: int, k: int, eqn: JaxprEqn) -> dict[Var, Var]:
        """Write again the equations of a part, before equation `k` that reads a value of it."""
        late = self._late(k, eqn)
        other: dict[Var, Var] = {}
        for inner in self._chosen(part):
            reads = [v for v in inner.invars if type(v) is not Literal]
            invars = [v if type(v) is Literal else other.get(v, v) for v in inner.invars]
            if reads and late is not None and not any(v in other for v in reads):
                # Without this the compiler would find the first value, and keep it.
                smallest = min(reads, key=lambda v: (not v.aval.shape, nbytes_of(v)))
                held = Var(smallest.aval)
                self.eqns.append(JaxprEqn(after_p, [smallest, late], [held], {}, source=again(inner.source)))
                invars = [held if v is smallest else v for v in invars]
            outvars = [Var(v.aval) for v in inner.outvars]
            other.update(zip(inner.outvars, outvars))
            self.eqns.append(inner.replace(invars=invars, outvars=outvars, source=again(inner.source)))
        return other

    def _late(self, k: int, eqn: JaxprEqn) -> Var | None:
        """A value that is made shortly before equation `k`, which what is repeated waits for."""
        made = self.flow.made
        reads = [v for v in eqn.invars if type(v) is not Literal and made[v] >= self.flow.turn]
        before = [v for e in self.jaxpr.eqns[max(k - 1, 0) : k] for v in e.outvars]
        known = [v for v in [*reads, *before] if v.aval.dtype.kind in "fiubV" and nbytes_of(v)]
        return max(known, key=lambda v: made[v], default=None)


def again(source):
    """The place of an operation that is computed again."""
    return source.within(_AGAIN) if source is not None else None


def nbytes_of(v: Var) -> int:
    """The bytes of a value, at most where values decide its size."""
    size = upper(v.aval.size)
    return (size if type(size) is int else 0) * v.aval.dtype.itemsize
