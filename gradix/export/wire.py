"""FlatBuffers tables, which are written by the library flatbuffers and read with checked offsets.

To be written, a table is described as a dict from slot numbers to fields. A field is a number, as a
pair `(U16, 3)` of kind and value, a string, bytes, `Numbers`, a table, or a list.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from gradix._base.lazy import lazy_module

flatbuffers = lazy_module("flatbuffers")

MAX_DEPTH = 64  # the depth to which tables of a file may be nested
# A writer stores each table, string and vector once; a forged file could refer to one many times. So
# what is read may have at most so many times the bytes of the file, which bounds memory and time.
_MAX_EXPANSION = 2
_TABLE_BYTES = 8  # a table without fields, with the reference to it


class Scalar:
    """A kind of number in tables, by its format in `struct` and its name in flatbuffers."""

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


class Numbers(list):
    """A field that is a vector of numbers of one kind."""

    def __init__(self, kind: Scalar, values: Sequence[int]):
        super().__init__(values)
        self.kind = kind


def encode(table: dict) -> bytearray:
    """The bytes of a file whose root is this table."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(_write(builder, table))
    return bytearray(builder.Output())


def _write(builder, x: Any) -> int:
    """Write a table, string, byte string or vector, and return its offset."""
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
    """The bytes are not a file of this format."""


class Table:
    """A table of a file being read; its methods check that fields are within the file.

    The methods return empty values for slots that the table does not have.

    Args:
        data: the file.
        place: the place of the table in the file.
        budget: a list with the number of bytes that may still be read.
        depth: the number of tables around this one.

    Raises:
        Malformed: a field is not within the file, or parts of the file are referred to too often.
    """

    def __init__(self, data: bytes, place: int, budget: list[int] | None = None, depth: int = 0):
        self.data, self.place, self.depth = data, place, depth
        self.budget = [_MAX_EXPANSION * len(data)] if budget is None else budget
        self._charge(_TABLE_BYTES)
        if depth > MAX_DEPTH:
            raise Malformed("its tables are nested too deeply")
        self.fields = place - self._number("<i", place)
        size = self._number("<H", self.fields)
        if size < 4 or size % 2 or self.fields < 0 or self.fields + size > len(data):
            raise Malformed("the list of a table's fields is not valid")
        self.count = (size - 4) // 2

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The outermost table of a file."""
        if len(data) < 8:
            raise Malformed("it is too short")
        return cls(data, struct.unpack_from("<I", data)[0])

    def _charge(self, size: int) -> None:
        self.budget[0] -= size
        if self.budget[0] < 0:
            raise Malformed("it refers to the same tables and strings again and again")

    def _number(self, format: str, at: int) -> Any:
        if at < 0 or at + struct.calcsize(format) > len(self.data):
            raise Malformed("a field is outside of the file")
        return struct.unpack_from(format, self.data, at)[0]

    def _at(self, slot: int) -> int:
        offset = self._number("<H", self.fields + 4 + 2 * slot) if slot < self.count else 0
        return self.place + offset if offset else 0

    def has(self, slot: int) -> bool:
        """Whether the table has a field in a slot."""
        return bool(self._at(slot))

    def number(self, slot: int, kind: Scalar, default: int = 0) -> Any:
        """The number in a slot."""
        at = self._at(slot)
        return self._number("<" + kind.format, at) if at else default

    def _vector(self, slot: int, size: int) -> tuple[int, int]:
        """The place of the first element of a vector, and the number of elements."""
        at = self._at(slot)
        return self._extent(at + self._number("<I", at), size) if at else (0, 0)

    def _extent(self, place: int, size: int) -> tuple[int, int]:
        n = self._number("<I", place)
        if place + 4 + n * size > len(self.data):
            raise Malformed("a vector is longer than the file")
        self._charge(4 + n * size)
        return place + 4, n

    def bytes(self, slot: int) -> bytes:
        """The byte string in a slot."""
        start, n = self._vector(slot, 1)
        return self.data[start : start + n]

    def text(self, slot: int) -> str:
        """The string in a slot."""
        return _decoded(self.bytes(slot))

    def numbers(self, slot: int, kind: Scalar) -> list[int]:
        """The vector of numbers in a slot."""
        start, n = self._vector(slot, struct.calcsize(kind.format))
        return list(struct.unpack_from(f"<{n}{kind.format}", self.data, start)) if n else []

    def _places(self, slot: int) -> list[int]:
        start, n = self._vector(slot, 4)
        return [at + self._number("<I", at) for at in range(start, start + 4 * n, 4)]

    def texts(self, slot: int) -> list[str]:
        """The vector of strings in a slot."""
        extents = [self._extent(place, 1) for place in self._places(slot)]
        return [_decoded(self.data[start : start + n]) for start, n in extents]

    def table(self, slot: int) -> Table:
        """The table in a slot, which must be present."""
        at = self._at(slot)
        if not at:
            raise Malformed("a required table is missing")
        return Table(self.data, at + self._number("<I", at), self.budget, self.depth + 1)

    def tables(self, slot: int) -> list[Table]:
        """The vector of tables in a slot."""
        return [Table(self.data, place, self.budget, self.depth + 1) for place in self._places(slot)]


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Malformed("a string is not UTF-8") from None
