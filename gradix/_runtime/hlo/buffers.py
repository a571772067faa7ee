"""The memory of a compiled program: each buffer, when it is in use, and the moment of the most."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from gradix._runtime.hlo.module import FORWARDING, NESTING, Instruction, Module, Shape
from gradix._runtime.hlo.wire import message


@dataclasses.dataclass(frozen=True, slots=True)
class Buffer:
    """A value that has memory in one of the program's allocations.

    Attributes:
        made_by: the instruction whose result it is.
        index: which part of this result, where it is a tuple.
        kind: "argument", "result" or "temporary".
        allocation: the number of the allocation.
        offset, nbytes: the part of the allocation.
        first, last: the positions in the program between which it is in use.
        last_used_by: the instruction that reads it last.
        made_at: the position of the instruction that makes it.
    """

    made_by: Instruction
    index: tuple[int, ...]
    kind: str
    allocation: int
    offset: int
    nbytes: int
    first: int
    last: int
    last_used_by: Instruction | None
    made_at: int

    def overlaps(self, other: Buffer) -> bool:
        """Whether another buffer has a part of this one's memory."""
        return (
            self.allocation == other.allocation
            and self.offset < other.offset + other.nbytes
            and other.offset < self.offset + self.nbytes
        )

    @property
    def shape(self) -> Shape:
        """The type of the value, which is a part of the result where that is a tuple."""
        shape = self.made_by.shape
        for k in self.index:
            shape = shape.parts[k] if k < len(shape.parts) else shape
        return shape


class Peak(NamedTuple):
    """The moment at which most memory is in use: all bytes, and the buffers in use."""

    nbytes: int
    alive: list[tuple[Buffer, int]]
    position: int


def buffers(module: Module, assignment: bytes) -> tuple[list[Buffer], dict[int, int]]:
    """The buffers of arguments, results and temporaries, and the bytes of each allocation.

    Args:
        module: the program.
        assignment: XLA's assignment of buffers, as bytes.
    """
    held = message(assignment)
    made = _made(module, held)
    order = {i.id: k for k, i in enumerate(module.running())}
    uses = _Uses(module, order)
    found, sizes = [], {}
    for value in held.get(3, []):
        allocation = message(value)
        if 3 in allocation or 12 in allocation:  # the stack of a thread, or a constant
            continue
        number = allocation.get(1, [0])[0]
        sizes[number] = allocation.get(2, [0])[0]
        kind = "argument" if 5 in allocation else "result" if 7 in allocation else "temporary"
        for part in allocation.get(9, []):
            assigned = message(part)
            known = made.get(assigned.get(1, [0])[0])
            if known is None or known[0].id not in order and kind == "temporary":
                continue
            instruction, index = known
            made_at = first = order.get(instruction.id, 0)
            last, by = uses.of(instruction, index)
            if kind == "argument":
                first, last = -1, len(order)
            offset, nbytes = assigned.get(2, [0])[0], assigned.get(3, [0])[0]
            extent = offset, nbytes, first, max(first, last)
            found.append(Buffer(instruction, index, kind, number, *extent, by, made_at))
    return found, sizes


def peak(found: list[Buffer], sizes: dict[int, int]) -> Peak:
    """The moment at which the temporaries in use take most memory.

    Arguments are in use all the time, and so is the memory of results. Of buffers that overlap, the
    one that was made last counts.
    """
    found = _ended_where_taken_over(found)
    temporary = [b for b in found if b.kind == "temporary" and b.nbytes]
    changes: dict[int, int] = {}
    for b in temporary:
        changes[b.first] = changes.get(b.first, 0) + b.nbytes
        changes[b.last + 1] = changes.get(b.last + 1, 0) - b.nbytes
    at = _moment(temporary, changes)
    alive: list[tuple[Buffer, int]] = []
    for b in sorted(found, key=lambda b: (b.kind != "argument", -b.first, b.nbytes)):
        if b.first <= at <= b.last and b.kind == "temporary":
            free = _free(b, alive)
            if free:
                alive.append((b, free))
    # What it came in stands for the memory of an argument, the last value for that of a result.
    alive += [(b, sizes[b.allocation]) for b in _each(found, "argument", reversed_order=True)]
    alive += [(b, sizes[b.allocation]) for b in _each(found, "result", reversed_order=False)]
    return Peak(sum([n for _, n in alive]), alive, at)


def taken(found: list[Buffer], end: int) -> list[int]:
    """The bytes that temporaries take at each position of a program.

    Args:
        found: the buffers.
        end: the number of positions.
    """
    temporary = [b for b in _ended_where_taken_over(found) if b.kind == "temporary" and b.nbytes]
    begun: dict[int, list[Buffer]] = {}
    ended: dict[int, list[Buffer]] = {}
    for b in temporary:
        begun.setdefault(b.first, []).append(b)
        ended.setdefault(b.last + 1, []).append(b)
    sums, alive, now = [], {}, 0
    for position in range(end):
        changed = [*begun.get(position, ()), *ended.get(position, ())]
        alive.update({id(b): b for b in begun.get(position, ())})
        for b in ended.get(position, ()):
            alive.pop(id(b), None)
        now = _taken(list(alive.values())) if changed else now
        sums.append(now)
    return sums


def _moment(temporary: list[Buffer], changes: dict[int, int]) -> int:
    """The position at which buffers take most memory, where they overlap once.

    Args:
        temporary: the buffers.
        changes: by how much the sum of their bytes changes, by position.
    """
    now, sums = 0, []
    for position in sorted(changes):
        now += changes[position]
        sums.append((-now, position))
    most, at = -1, 0
    for upper, position in sorted(sums):  # a sum is more than what is taken where buffers overlap
        if -upper <= most:
            break
        taken = _taken([b for b in temporary if b.first <= position <= b.last])
        if taken > most:
            most, at = taken, position
    return at


def _taken(found: list[Buffer]) -> int:
    """The bytes that buffers take together."""
    whole, allocation, end = 0, -1, 0
    for b in sorted(found, key=lambda b: (b.allocation, b.offset)):
        if b.allocation != allocation:
            allocation, end = b.allocation, 0
        whole += max(b.offset + b.nbytes - max(end, b.offset), 0)
        end = max(end, b.offset + b.nbytes)
    return whole


def _ended_where_taken_over(found: list[Buffer]) -> list[Buffer]:
    """The buffers, each in use until before the instruction that writes its result in its place."""
    begun: dict[int, list[Buffer]] = {}
    for b in found:
        begun.setdefault(b.first, []).append(b)
    return [
        dataclasses.replace(b, last=b.last - 1)
        if b.last > b.first and any(b.overlaps(other) for other in begun.get(b.last, ()))
        else b
        for b in found
    ]


def _each(found: list[Buffer], kind: str, *, reversed_order: bool) -> list[Buffer]:
    """For each allocation of a kind the buffer that is made last, or first."""
    chosen: dict[int, Buffer] = {}
    of_kind = [b for b in found if b.kind == kind]
    for b in sorted(of_kind, key=lambda b: b.made_at, reverse=reversed_order):
        chosen[b.allocation] = b
    return list(chosen.values())


def _free(b: Buffer, alive: list[tuple[Buffer, int]]) -> int:
    """The bytes of a buffer that no buffer in the list has."""
    parts = [(b.offset, b.offset + b.nbytes)]
    for other, _ in alive:
        if other.allocation == b.allocation:
            start, end = other.offset, other.offset + other.nbytes
            parts = [part for a, z in parts for part in ((a, min(z, start)), (max(a, end), z)) if part[0] < part[1]]
    return sum([z - a for a, z in parts])


def _made(module: Module, held: dict[int, list]) -> dict[int, tuple[Instruction, tuple[int, ...]]]:
    """For each logical buffer, by number, the instruction that makes it, and the part of its result."""
    found = {}
    for value in held.get(1, []):
        logical = message(value)
        at = message(logical[3][0]) if 3 in logical else {}
        instruction = module.instructions.get(at.get(4, [0])[0])
        if instruction is None and 2 in at:
            instruction = module.by_name.get(at[2][0].decode())
        if instruction is not None:
            index = tuple([n for v in at.get(3, []) for n in (v if isinstance(v, bytes) else [v])])
            found[logical.get(1, [0])[0]] = instruction, index
    return found


class _Uses:
    """When a value is used last, through tuples, loops and calls that only hand it on."""

    def __init__(self, module: Module, order: dict[int, int]):
        self.module, self.order = module, order
        self.users: dict[int, list[tuple[Instruction, int]]] = {}
        for part in module.computations.values():
            for user in part.instructions:
                for k, number in enumerate(user.operands):
                    self.users.setdefault(number, []).append((user, k))

    def of(self, made_by: Instruction, index: tuple[int, ...]) -> tuple[int, Instruction | None]:
        """The position of the last use, and the instruction that uses it."""
        order = self.order
        last, by = order.get(made_by.id, 0), None
        seen, waiting = {(made_by.id, index)}, [(made_by, index)]
        while waiting:
            at, place = waiting.pop()
            if at.id == self.module.entry.root:
                last, by = len(order), by
            for user, k in self.users.get(at.id, []):
                position = order.get(user.id, -1)
                reads = user.opcode not in FORWARDING or user.opcode in NESTING
                if reads and position > last:
                    last, by = position, user
                for following in self._handed_on(user, k, place):
                    if (following[0].id, following[1]) not in seen:
                        seen.add((following[0].id, following[1]))
                        waiting.append(following)
            caller = self._returns(at)
            if caller is not None and (caller.id, place) not in seen:
                seen.add((caller.id, place))
                waiting.append((caller, place))
        return last, by

    def _returns(self, i: Instruction) -> Instruction | None:
        """The call whose result an instruction is."""
        part = self.module.part_of[i.id]
        caller = self.module.callers.get(part)
        is_root = self.module.computations[part].root == i.id
        return caller if is_root and caller is not None and caller.opcode in ("call", "conditional") else None

    def _handed_on(self, user: Instruction, k: int, index: tuple[int, ...]) -> list:
        """The values that hold the same memory as part `index` of operand `k`."""
        if user.opcode == "tuple":
            return [(user, (k, *index))]
        if user.opcode == "get-tuple-element":
            return [(user, index[1:])] if index[:1] == (user.index,) else []
        if user.opcode == "while":
            inside = [self.module.computations[n].parameters for n in user.called]
            return [(user, index), *[(p[0], index) for p in inside if p]]
        if user.opcode in ("call", "async-start"):
            inside = [self.module.computations[n].parameters for n in user.called]
            return [(p[k], index) for p in inside if k < len(p)]
        if user.opcode == "conditional":
            if k == 0:
                return []
            return [(self.module.computations[user.called[k - 1]].parameters[0], index)]
        if user.opcode in FORWARDING:
            return [(user, index)]
        return []
