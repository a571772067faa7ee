"""MLIR attributes as text."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from gradix._base.bounded import BoundedCache
from gradix._stablehlo.literals import dense, scalar_text
from gradix._stablehlo.types import element_type

_arrays: BoundedCache[tuple, str] = BoundedCache(1 << 12)


class Raw(str):
    """Text that already is an MLIR attribute."""

    __slots__ = ()


def i64_array(xs) -> str:
    """`array<i64: 1, 2>`"""
    found = _arrays.get(xs) if type(xs) is tuple else None
    if found is None:
        texts = [str(int(x)) for x in xs]
        found = f"array<i64: {', '.join(texts)}>" if texts else "array<i64>"
        if type(xs) is tuple:
            _arrays.keep(xs, found)
    return found


def i64_tensor(rows, shape: tuple) -> str:
    """A dense integer attribute, such as padding: `dense<[[0, 1]]> : tensor<1x2xi64>`."""
    return _array(np.asarray(rows, np.int64).reshape(shape))


def layout(minor_to_major) -> str:
    """A layout attribute, the minor dimension first: `dense<[1, 0]> : tensor<2xindex>`."""
    order = list(minor_to_major)
    return f"dense<{order or ''}> : tensor<{len(order)}xindex>"


def string(text: str) -> str:
    """A quoted string attribute; bytes outside printable ASCII are escaped."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return (
        '"'
        + "".join(
            [
                chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}"
                for b in text.encode("utf-8", "surrogateescape")
            ]
        )
        + '"'
    )


def attribute(value) -> str:
    """A Python or NumPy value as an attribute; `int` becomes i64 and `float` f64."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, dict):
        return dictionary(value)
    if isinstance(value, np.generic):
        return f"{scalar_text(value, value.dtype)} : {element_type(value.dtype)}"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{scalar_text(value, np.dtype(float))} : f64"
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([attribute(v) for v in value]) + "]"
    raise TypeError(
        f"no MLIR attribute for {value!r} of type {type(value).__name__}; give bool, int, float, str, "
        "NumPy scalar or array, dtype, list or dict."
    )


def dictionary(entries: dict) -> str:
    """`{name = value, ...}`"""
    return "{" + ", ".join([f"{_key(k)} = {attribute(v)}" for k, v in entries.items()]) + "}"


def _key(name: str) -> str:
    return name if name.replace(".", "_").isidentifier() else string(name)


def _array(x: np.ndarray) -> str:
    dims = "".join(f"{d}x" for d in x.shape)
    return f"{dense(x)} : tensor<{dims}{element_type(x.dtype)}>"


_LOCATION = re.compile(r' loc\((?:"(?:[^"\\]|\\.)*"|[^"])*\)$')
_FRONTEND = "mhlo.frontend_attributes = {"


def with_attributes(line: str, attributes: Mapping[str, str]) -> str:
    """The text of an operation with attributes that survive the rewrites of the compiler."""
    found = _LOCATION.search(line, line.rfind("\n") + 1)
    text, location = (line[: found.start()], line[found.start() :]) if found else (line, "")
    head, colon, types = text.rpartition(" : (")
    own = dictionary(dict(attributes))
    last = head.rpartition("\n")[2]
    if _FRONTEND in last:
        before, _, after = head.rpartition(_FRONTEND)
        own = dictionary(
            {
                k: v
                for k, v in attributes.items()
                if not after.startswith(f"{_key(k)} = ") and f", {_key(k)} = " not in after
            }
        )
        head = f"{before}{_FRONTEND}{own[1:-1]}{', ' if own != '{}' else ''}{after}"
    elif head.endswith("}"):
        head = f"{head[:-1]}, mhlo.frontend_attributes = {own}}}"
    else:
        head = f"{head} {{mhlo.frontend_attributes = {own}}}"
    return head + colon + types + location
