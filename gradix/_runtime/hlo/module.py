"""The instructions of a compiled program, in the order in which they run, and what each costs."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

from gradix._base.source import located
from gradix._runtime.hlo.wire import fields, integers, message

# bits of an element by the number of its type, as XLA numbers types
_BITS = {
    1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64,
    16: 16, 18: 128, 19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8, 26: 2, 27: 2, 28: 8, 29: 8,
    30: 1, 31: 1, 32: 4, 33: 8,
}  # fmt: skip
_TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32",
    9: "uint64", 10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16",
    18: "complex128", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4",
}  # fmt: skip
_TUPLE = 13

# Opcodes that compute a number for each element of their result.
_ARITHMETIC = frozenset(
    "abs add and atan2 cbrt ceil clamp compare complex cosine divide erf exponential "
    "exponential-minus-one floor imag is-finite log log-plus-one logistic map maximum minimum "
    "multiply negate not or popcnt power real remainder round-nearest-afz round-nearest-even "
    "rsqrt select shift-left shift-right-arithmetic shift-right-logical sign sine sqrt subtract "
    "tan tanh xor".split()
)
# Opcodes that compute a number for each element of their first operand.
_REDUCING = frozenset(["reduce", "reduce-window", "select-and-scatter", "all-reduce"])
# Opcodes that move nothing: their results are parts or arrangements of their operands.
FORWARDING = frozenset(
    "tuple get-tuple-element bitcast while conditional call optimization-barrier domain "
    "add-dependency async-start async-update async-done".split()
)
# Opcodes whose programs run as instructions of their own.
NESTING = frozenset(["while", "conditional", "call", "async-start"])


class Shape(NamedTuple):
    """The type of an array, or of a tuple of `parts`."""

    dtype: int
    sizes: tuple[int, ...]
    parts: tuple[Shape, ...] = ()

    @property
    def elements(self) -> int:
        return prod(self.sizes)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays in it."""
        if self.dtype == _TUPLE:
            return sum([part.nbytes for part in self.parts])
        return (self.elements * _BITS.get(self.dtype, 0) + 7) // 8

    def __str__(self) -> str:
        if self.dtype == _TUPLE:
            return f"({', '.join(map(str, self.parts))})"
        return f"{_TYPES.get(self.dtype, '?')}[{','.join(map(str, self.sizes))}]"


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return located(self.file, self.line)


class Instruction:
    """One instruction of a compiled program.

    Attributes:
        id: its number, by which others name it.
        name: its name, by which profiles name it.
        opcode: what it does, such as "dot".
        shape: the type of its result.
        scope: its name within the user's functions, scopes and transformations.
        place: the user's line; None where the compiler made it.
        operands: the numbers of its operands.
        called: the numbers of the computations that it calls.
        index: which part of its operand a "get-tuple-element" takes.
        contracted: the dimensions of the first operand over which a product sums.
        parameter: the number of a "parameter".
        features: the dimension of the second operand that a convolution does not sum over.
    """

    __slots__ = (
        "id",
        "name",
        "opcode",
        "shape",
        "scope",
        "place",
        "operands",
        "called",
        "index",
        "parameter",
        "contracted",
        "features",
    )

    def __init__(self, data: bytes, frames: list[Place | None]):
        held = message(data)
        self.id = held.get(35, [0])[0]
        self.name = _text(held, 1)
        self.opcode = _text(held, 2)
        self.shape = _shape(held[3][0]) if 3 in held else Shape(0, ())
        self.scope, frame = _metadata(held)
        # These have the place of the call of the function that they stood in.
        is_placed = 0 < frame < len(frames) and self.opcode not in ("parameter", "get-tuple-element")
        self.place = frames[frame] if is_placed else None
        self.operands = _numbers(held, 36)
        self.called = _numbers(held, 38)
        self.index, self.parameter = held.get(13, [0])[0], held.get(9, [0])[0]
        self.contracted = _numbers(message(held[30][0]), 1) if 30 in held else []
        self.features = message(held[16][0]).get(4, [0])[0] if 16 in held else 0

    def __repr__(self) -> str:
        return f"<{self.name} = {self.opcode} {self.shape} at {self.place}>"


class Computation(NamedTuple):
    """A part of a program: its instructions in the order in which they run, and its result's."""

    id: int
    name: str
    instructions: list[Instruction]
    root: int

    @property
    def parameters(self) -> list[Instruction]:
        return sorted([i for i in self.instructions if i.opcode == "parameter"], key=lambda i: i.parameter)


class Module:
    """A compiled program.

    Args:
        data: the program, as `as_serialized_hlo_module_proto` writes it.

    Attributes:
        name: its name.
        computations: its parts, by number.
        instructions: all instructions, by number.
        entry: the part that runs first.
        callers: the instruction that calls a part, by the number of the part.
        by_name: all instructions, by name.
        part_of: the number of the part in which an instruction is, by its number.
    """

    def __init__(self, data: bytes):
        held = message(data)
        self.name = _text(held, 1)
        self.id = held.get(5, [0])[0]
        frames = _frames(held[17][0]) if 17 in held else []
        order = _schedule(held[7][0]) if 7 in held else {}
        self.computations: dict[int, Computation] = {}
        self.instructions: dict[int, Instruction] = {}
        for part in held.get(3, []):
            found = _computation(part, frames, order)
            self.computations[found.id] = found
            self.instructions.update({i.id: i for i in found.instructions})
        self.entry = self.computations[held[6][0]]
        self.callers: dict[int, Instruction] = {}
        for instruction in self.instructions.values():
            for number in instruction.called:
                self.callers.setdefault(number, instruction)
        self.by_name = {i.name: i for i in self.instructions.values()}
        self.part_of = {i.id: p.id for p in self.computations.values() for i in p.instructions}
        self._costs: dict[int, float] = {}

    def running(self, part: Computation | None = None) -> Iterator[Instruction]:
        """The instructions that run as such, in their order; those of a loop before the loop."""
        for i in (part or self.entry).instructions:
            if i.opcode in NESTING:
                for number in i.called:
                    yield from self.running(self.computations[number])
            yield i

    def flops(self, i: Instruction) -> float:
        """How many numbers an instruction computes: two for each product that a sum takes up."""
        found = self._costs.get(i.id)
        if found is None:
            found = self._costs[i.id] = self._flops(i)
        return found

    def _flops(self, i: Instruction) -> float:
        if i.opcode == "fusion" or i.opcode == "call":
            parts = [self.computations[n] for n in i.called]
            return float(sum([self.flops(inner) for p in parts for inner in p.instructions]))
        if i.opcode == "dot":
            sizes = self.instructions[i.operands[0]].shape.sizes
            return 2.0 * i.shape.elements * prod([sizes[k] for k in i.contracted])
        if i.opcode == "convolution":
            kernel = self.instructions[i.operands[1]].shape
            outputs = kernel.sizes[i.features] if i.features < len(kernel.sizes) else 1
            return 2.0 * i.shape.elements * kernel.elements / max(outputs, 1)
        if i.opcode in _ARITHMETIC:
            return float(i.shape.elements)
        if i.opcode in _REDUCING:
            return float(self.instructions[i.operands[0]].shape.elements)
        return 0.0

    def bytes_moved(self, i: Instruction) -> int:
        """The bytes of the operands and results of an instruction; none where nothing moves."""
        if i.opcode in FORWARDING or i.opcode in ("parameter", "constant"):
            return 0
        return i.shape.nbytes + sum([self.instructions[n].shape.nbytes for n in i.operands])

    def shares(self, i: Instruction) -> list[tuple[Instruction, float]]:
        """The instructions fused into one, and the part of its cost that each has."""
        if i.opcode != "fusion":
            return [(i, 1.0)]
        inner = [x for n in i.called for x in self.computations[n].instructions]
        inner = [x for x in inner if x.opcode not in ("parameter", "constant", "broadcast")]
        weights = [self.flops(x) + 0.01 * x.shape.elements for x in inner]
        whole = sum(weights)
        return [(x, w / whole) for x, w in zip(inner, weights)] if whole else [(i, 1.0)]

    def origin(self, i: Instruction) -> Instruction:
        """The instruction that tells where one comes from: itself, or the nearest that knows.

        What it is made of knows best, then what calls it, then what reads it. Of constants only
        their readers know: the compiler gives one to several lines, and takes it for the call of
        the function that it stood in.
        """
        if i.id in self._constants:
            for reader in self._readers(i):
                if (found := self._nearest(reader, self._readers)) is not None:
                    return found
        found = self._nearest(i, self._sources) or self._nearest(i, self._readers)
        return found or i

    def _nearest(self, i: Instruction, following: Callable) -> Instruction | None:
        """The first instruction with a place, of one and those that follow it."""
        seen, waiting = {i.id}, deque([i])
        while waiting:
            at = waiting.popleft()
            if at.place is not None:
                return at
            if at.opcode == "fusion" and at.called:
                part = self.computations[at.called[0]]
                known = [x for x in part.instructions if x.place is not None]
                if known:
                    return max(known, key=lambda x: (x.id == part.root, self.flops(x)))
            for other in following(at):
                if other.id not in seen:
                    seen.add(other.id)
                    waiting.append(other)
        return None

    @functools.cached_property
    def _constants(self) -> set[int]:
        """The numbers of constants, and of what nothing but constants went into."""
        found: set[int] = set()
        for part in self.computations.values():
            for i in part.instructions:  # operands come before what reads them
                is_made_of_them = found.issuperset(i.operands) and (
                    i.opcode in ("broadcast", "copy", "bitcast") or i.opcode == "fusion" and not self.flops(i)
                )
                if i.opcode == "constant" or is_made_of_them:
                    found.add(i.id)
        return found

    def _sources(self, i: Instruction) -> list[Instruction]:
        caller = self.callers.get(self.part_of[i.id])
        read = [self.instructions[n] for n in i.operands]
        return [caller, *read] if caller is not None else read

    def _readers(self, i: Instruction) -> list[Instruction]:
        """What reads a value; in place of a fusion, the instructions inside of it that do."""
        found = []
        for user in self._users.get(i.id, []):
            inner = []
            if user.opcode == "fusion" and user.called:
                given = self.computations[user.called[0]].parameters
                read = [p for p, number in zip(given, user.operands) if number == i.id]
                inner = [x for p in read for x in self._users.get(p.id, [])]
            found += inner or [user]
        return found

    @functools.cached_property
    def _users(self) -> dict[int, list[Instruction]]:
        found: dict[int, list[Instruction]] = {}
        for user in self.instructions.values():
            for number in user.operands:
                found.setdefault(number, []).append(user)
        return found


def _computation(data: bytes, frames: list, order: dict[int, list[int]]) -> Computation:
    held = message(data)
    number = held.get(5, [0])[0]
    instructions = [Instruction(i, frames) for i in held.get(2, [])]
    if number in order:
        place = {n: k for k, n in enumerate(order[number])}
        instructions.sort(key=lambda i: place.get(i.id, -1))
    return Computation(number, _text(held, 1), instructions, held.get(6, [0])[0])


def _text(held: dict[int, list], number: int) -> str:
    return held[number][0].decode() if number in held else ""


def _numbers(held: dict[int, list], number: int) -> list[int]:
    return [n for value in held.get(number, []) for n in integers(value)]


def _shape(data: bytes) -> Shape:
    held = message(data)
    parts = tuple([_shape(part) for part in held.get(4, [])])
    return Shape(held.get(2, [0])[0], tuple(_numbers(held, 3)), parts)


def _metadata(held: dict[int, list]) -> tuple[str, int]:
    """The name of an instruction within the user's scopes, and the number of its frame."""
    if 7 not in held:
        return "", 0
    found = message(held[7][0])
    return _text(found, 2), found.get(15, [0])[0]


def _schedule(data: bytes) -> dict[int, list[int]]:
    """The numbers of the instructions of each computation, in the order in which they run."""
    found = {}
    for number, value in fields(data):
        if number == 1:
            entry = message(value)
            if 2 in entry:
                found[entry.get(1, [0])[0]] = _numbers(message(entry[2][0]), 1)
    return found


def _frames(data: bytes) -> list[Place | None]:
    """The line of each frame, by its number; frames are numbered from one."""
    held = message(data)
    files = [name.decode() for name in held.get(1, [])]
    places = []
    for value in held.get(3, []):
        at = message(value)
        file = at.get(1, [0])[0]
        places.append(Place(files[file - 1], at.get(3, [0])[0]) if file else None)
    frames: list[Place | None] = [None]
    for value in held.get(4, []):
        number = message(value).get(1, [0])[0]
        frames.append(places[number - 1] if number else None)
    return frames
