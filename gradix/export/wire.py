"""FlatBuffers tables by slot number: written by the field's library, read with every offset checked.

A table is described as a dict from slot to field; a field is a pair of kind and value (`U16`, 3),
or a nested description.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from gradix._base.lazy import lazy_module

flatbuffers = lazy_module("flatbuffers")

MAX_DEPTH = 64  # tables inside of tables
MAX_TABLES = 1 << 20  # read from one file


class Scalar:
    """A number of a table, such as an unsigned one of 16 bits."""

    __slots__ = ("format", "slot")

    def __init__(self, format: str, slot: str):
        self.format, self.slot = format, slot


I8, U8, U16, I16, U32, BOOL = (
    Scalar("b", "Int8"),
    Scalar("B", "Uint8"),
    Scalar("H", "Uint16"),
    Scalar("h", "Int16"),
    Scalar("I", "Uint32"),
    Scalar("?", "Bool"),
)


class Text(str):
    """A field that is a string."""


class Numbers(list):
    """A field that is a vector of unsigned numbers."""

    def __init__(self, kind: Scalar, values: Sequence[int]):
        super().__init__(values)
        self.kind = kind


def encode(table: dict) -> bytearray:
    """The bytes of a file whose root is this table."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write(builder, table))
    return bytearray(builder.Output())


def _write(builder, x: Any) -> int:
    """Write a table, text, byte string or vector; its offset."""
    if isinstance(x, str):
        return builder.CreateString(x)
    if isinstance(x, (bytes, bytearray)):
        return builder.CreateByteVector(bytes(x))
    if isinstance(x, Numbers):
        size = struct.calcsize(x.kind.format)
        builder.StartVector(size, len(x), max(size, 4))
        for n in reversed(x):
            getattr(builder, f"Prepend{x.kind.slot}")(n)
        return builder.EndVector()
    if isinstance(x, list):
        offsets = [_write(builder, item) for item in x]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return builder.EndVector()
    offsets = {slot: _write(builder, field) for slot, field in x.items() if not _is_number(field)}
    builder.StartObject(max(x, default=-1) + 1)
    for slot, field in sorted(x.items()):
        if _is_number(field):
            kind, value = field
            getattr(builder, f"Prepend{kind.slot}Slot")(slot, value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, offsets[slot], 0)
    return builder.EndObject()


def _is_number(field) -> bool:
    return isinstance(field, tuple)


class Malformed(ValueError):
    """Bytes that are no file of this format."""


class Table:
    """A table of a file being read; whatever a field points to is checked to lie within the file.

    Raises:
        Malformed: it does not.
    """

    def __init__(self, data: bytes, place: int, budget: list[int] | None = None, depth: int = 0):
        self.data, self.place, self.depth = data, place, depth
        self.budget = [MAX_TABLES] if budget is None else budget
        self.budget[0] -= 1
        if self.budget[0] < 0 or depth > MAX_DEPTH:
            raise Malformed("its tables are nested too deep, or are too many")
        self.fields = place - self._number("<i", place)
        size = self._number("<H", self.fields)
        if size < 4 or size % 2 or self.fields < 0 or self.fields + size > len(data):
            raise Malformed("a table has no valid list of fields")
        self.count = (size - 4) // 2

    @classmethod
    def root(cls, data: bytes) -> Table:
        if len(data) < 8:
            raise Malformed("it is shorter than any file")
        return cls(data, struct.unpack_from("<I", data)[0])

    def _number(self, format: str, at: int) -> Any:
        if at < 0 or at + struct.calcsize(format) > len(self.data):
            raise Malformed("a field lies outside of the file")
        return struct.unpack_from(format, self.data, at)[0]

    def _at(self, slot: int) -> int:
        offset = self._number("<H", self.fields + 4 + 2 * slot) if slot < self.count else 0
        return self.place + offset if offset else 0

    def has(self, slot: int) -> bool:
        return bool(self._at(slot))

    def number(self, slot: int, kind: Scalar, default: int = 0) -> Any:
        at = self._at(slot)
        return self._number("<" + kind.format, at) if at else default

    def _vector(self, slot: int, size: int) -> tuple[int, int]:
        """Where the elements of a vector begin, and how many there are."""
        at = self._at(slot)
        return self._extent(at + self._number("<I", at), size) if at else (0, 0)

    def _extent(self, place: int, size: int) -> tuple[int, int]:
        n = self._number("<I", place)
        if place + 4 + n * size > len(self.data):
            raise Malformed("a vector is longer than the file")
        return place + 4, n

    def bytes(self, slot: int) -> bytes:
        start, n = self._vector(slot, 1)
        return self.data[start : start + n]

    def text(self, slot: int) -> str:
        return _decoded(self.bytes(slot))

    def numbers(self, slot: int, kind: Scalar) -> list[int]:
        start, n = self._vector(slot, struct.calcsize(kind.format))
        return list(struct.unpack_from(f"<{n}{kind.format}", self.data, start)) if n else []

    def _places(self, slot: int) -> list[int]:
        start, n = self._vector(slot, 4)
        return [at + self._number("<I", at) for at in range(start, start + 4 * n, 4)]

    def texts(self, slot: int) -> list[str]:
        extents = [self._extent(place, 1) for place in self._places(slot)]
        self.budget[0] -= len(extents)
        return [_decoded(self.data[start : start + n]) for start, n in extents]

    def table(self, slot: int) -> Table:
        at = self._at(slot)
        if not at:
            raise Malformed("a part that every file has is missing")
        return Table(self.data, at + self._number("<I", at), self.budget, self.depth + 1)

    def tables(self, slot: int) -> list[Table]:
        return [
            Table(self.data, place, self.budget, self.depth + 1) for place in self._places(slot)
        ]


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None
