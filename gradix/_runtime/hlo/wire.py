"""Reading protocol buffers without their schema, as XLA writes compiled programs."""

from __future__ import annotations

from collections.abc import Iterator


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message in order: the number of each, and its value.

    A value is an integer, or the bytes of a text, a message or a packed list.

    Raises:
        ValueError: the bytes are no message.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"a field of a message has the kind {kind}, which no message has")
        yield key >> 3, value


def integers(value: int | bytes) -> list[int]:
    """The integers of a repeated field, which is written packed or one by one."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def message(value: int | bytes) -> dict[int, list]:
    """The values of a message by the number of their field."""
    found: dict[int, list] = {}
    assert isinstance(value, bytes)
    for number, held in fields(value):
        found.setdefault(number, []).append(held)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
