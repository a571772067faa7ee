"""The content of a static argument as a key: equal content gives equal keys, hashable or not.

A key is a snapshot, so a list that was changed has another key. Types are distinguished everywhere
(`True` from `1`, a list from a tuple). No methods of the user are called, except `__hash__` and
`__eq__` of a class that defines both.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from typing import Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.array import ArrayImpl
from gradix._core.keys import Same, assigned_outside, exact
from gradix._core.trace import Tracer

hashlib = lazy_module("hashlib")

ATOMS = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), range, types.CodeType})
# an object compared by identity is its own key if its content has more parts than this
_NODES_LIMIT = 10_000
_DIGEST_FROM = 4096  # arrays of at least this many bytes are compared by digest
_CYCLE = "cycle"


class NoFingerprint(TypeError):
    """Raised for a value that has neither a hash nor content that can be compared."""


def fingerprint(value: Any) -> Any:
    """A hashable snapshot of what `value` contains.

    Raises:
        NoFingerprint: the value or a part of it is an array, or of a type that has neither a hash
            nor content that can be read.

    Example:
        >>> fingerprint([1, {"a": 2}]) == fingerprint([1, {"a": 2}])
        True
        >>> fingerprint([1]) == fingerprint((1,)), fingerprint(True) == fingerprint(1)
        (False, False)
    """
    kind = type(value)
    if kind in ATOMS:
        return kind, value
    if isinstance(value, (ArrayImpl, Tracer)):
        raise NoFingerprint("an array cannot be a static argument")
    if not compared_by_identity(kind):
        return Walk(None).of(value)
    try:
        return Walk(_NODES_LIMIT).of(value)
    except (NoFingerprint, RecursionError):  # the object's identity serves as the key
        return kind, Same(value)


def compared_by_identity(kind: type) -> bool:
    """Whether objects of the class are equal only to themselves."""
    return kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__


def is_fixed(kind: type) -> bool:
    """Whether objects of the class are of a library that never changes them, and equal only to themselves."""
    return compared_by_identity(kind) and kind.__module__.partition(".")[0] in _BY_IDENTITY


def is_of_us(kind: type) -> bool:
    """Whether a class is one of this package or of jaxlib; those that have a hash do not change."""
    return kind.__module__.partition(".")[0] in ("gradix", "jaxlib")


def holds_objects(kind: type) -> bool:
    """Whether objects of the class are compared by identity, or are immutable and may hold such."""
    return kind not in ATOMS and kind not in _BARE - {tuple, frozenset}


class Walk:
    """One walk through an object; `path` numbers the containers around it, to recognise cycles."""

    __slots__ = ("inside", "limit", "nodes", "path")

    def __init__(self, limit: int | None):
        self.path: dict[int, int] = {}
        self.limit, self.nodes = limit, 0
        self.inside = False  # whether it is in what a function captures

    def of(self, x) -> Any:
        kind = type(x)
        if kind in ATOMS:
            return kind, x
        if kind is float or kind is complex:
            return exact(x)
        self.nodes += 1
        if self.limit is not None and self.nodes > self.limit:
            raise NoFingerprint("too large")
        depth = self.path.get(id(x))
        if depth is not None:
            return _CYCLE, depth
        self.path[id(x)] = len(self.path)
        try:
            return kind, self._content(x, kind)
        finally:
            del self.path[id(x)]

    def same(self, x) -> Any:
        """A key for an object that is compared by identity."""
        return Same(x)

    def globals_of(self, f) -> Any:
        """A key for the globals of a function."""
        return Same(f.__globals__)

    def _content(self, x, kind: type):
        found = self._container(x, kind)
        if found is not None:
            return found
        reader = _READERS.get(kind)
        if reader is not None:
            return getattr(self, reader)(x)
        if isinstance(x, (np.ndarray, np.generic)):
            return self._array(np.asarray(x))
        if isinstance(x, ArrayImpl):
            # the values of a deleted array, and of one whose parts other processes have, cannot be read
            is_readable = not x.is_deleted() and x.is_fully_addressable
            return x.aval, self._array(x.host) if is_readable else self.same(x)
        if isinstance(x, Tracer):
            if self.inside:
                return self.same(x)
            raise NoFingerprint(f"it holds a traced array, {x.aval}")
        return self._object(x, kind)

    def _container(self, x, kind: type):
        """The content of built-in containers, and of subclasses that keep the built-in hash."""
        if isinstance(x, (tuple, frozenset)) and kind.__hash__ in (tuple.__hash__, frozenset.__hash__):
            parts = map(self.of, tuple.__iter__(x) if isinstance(x, tuple) else frozenset.__iter__(x))
            return (tuple(parts) if isinstance(x, tuple) else frozenset(parts)), self._attributes(x, kind)
        if kind.__hash__ is not None:
            return None
        if isinstance(x, list):
            return tuple([self.of(v) for v in list.__iter__(x)]), self._attributes(x, kind)
        if isinstance(x, dict):
            return tuple([(self.of(k), self.of(v)) for k, v in dict.items(x)]), self._attributes(x, kind)
        if isinstance(x, set):
            return frozenset([self.of(v) for v in set.__iter__(x)]), self._attributes(x, kind)
        if isinstance(x, collections.deque):
            return tuple([self.of(v) for v in collections.deque.__iter__(x)]), self._attributes(x, kind)
        return bytes(x) if kind is bytearray else None

    def _array(self, x: np.ndarray):
        if x.dtype.hasobject:
            return x.dtype, x.shape, tuple([self.of(v) for v in x.ravel().tolist()])
        data = x.tobytes()
        return (x.dtype, x.shape, hashlib.blake2b(data).digest() if len(data) >= _DIGEST_FROM else data)

    def _object(self, x, kind: type):
        hashed = kind.__hash__
        if isinstance(x, type):
            return self.same(x)
        if hashed is not None and not _generated(kind):
            if not compared_by_identity(kind):
                return x if _has_hash(x) else self.same(x)
            if is_fixed(kind):
                return self.same(x)
        fields = getattr(kind, "__dataclass_fields__", {}) if _generated(kind) else {}
        skipped = {name for name, field in fields.items() if not field.compare}
        found = self._attributes(x, kind, skipped)
        if found:
            return found
        if hashed is None and not hasattr(x, "__dict__") and kind.__flags__ & _HEAP_TYPE == 0:
            raise NoFingerprint(f"objects of {kind} have no content that can be read")
        return self.same(x) if hashed is object.__hash__ else ()

    def _attributes(self, x, kind: type, skipped=frozenset()) -> tuple:
        if kind in _BARE:
            return ()
        found = []
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                member = base.__dict__.get(_mangled(base, name))
                if isinstance(member, types.MemberDescriptorType) and name not in skipped:
                    try:
                        found.append((name, self.of(member.__get__(x))))
                    except AttributeError:
                        found.append((name, "unset"))
        own = x.__dict__ if hasattr(x, "__dict__") else {}
        found += [(k, self.of(v)) for k, v in sorted(own.items()) if k not in skipped]
        return tuple(found)

    def _function(self, f):
        if is_own(f):
            return self.same(f)
        return self._by_parts(f)

    def _by_parts(self, f):
        own = assigned_outside(f.__code__)
        named = zip(f.__code__.co_freevars, f.__closure__ or ())
        cells = [_content_of(c) for name, c in named if name not in own]
        return (
            f.__code__,
            self.globals_of(f),
            tuple([self._captured(v) for v in cells]),
            self._captured(f.__defaults__),
            self._captured(f.__kwdefaults__),
            self._captured(f.__dict__ or None),
        )

    def _captured(self, x):
        """A key for a value that a function captures; arrays, and traced ones in containers, by identity."""
        if isinstance(x, (ArrayImpl, Tracer)):
            return type(x), self.same(x)
        outside, self.inside = self.inside, True
        try:
            return self.of(x)
        finally:
            self.inside = outside

    def _partial(self, f):
        return (
            self.of(f.func),
            tuple([self._captured(a) for a in f.args]),
            tuple([(k, self._captured(v)) for k, v in f.keywords.items()]),
        )

    def _method(self, f):
        return self.of(f.__func__), self.of(f.__self__)


def is_own(f: types.FunctionType) -> bool:
    """Whether a function is one of gradix's own, under its name in its module, and so always the same."""
    name = f.__module__
    return (
        type(name) is str
        and (name == "gradix" or name.startswith("gradix."))
        and vars(sys.modules.get(name, types)).get(f.__name__) is f
    )


_HEAP_TYPE = 1 << 9
_BARE = frozenset({tuple, list, dict, set, frozenset, collections.deque, collections.OrderedDict})
_BY_IDENTITY = frozenset({"gradix", "jaxlib", "builtins", "types", "_thread", "threading", "logging", "_io"})
_READERS = {types.FunctionType: "_function", functools.partial: "_partial", types.MethodType: "_method"}


def _has_hash(x) -> bool:
    """Whether `hash(x)` works; it raises, for example, for a dataclass that holds traced arrays."""
    try:
        hash(x)
    except Exception:
        return False
    return True


def _content_of(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return "unset"


def _mangled(owner: type, name: str) -> str:
    hidden = name.startswith("__") and not name.endswith("__")
    return f"_{owner.__name__.lstrip('_')}{name}" if hidden else name


def _generated(kind: type) -> bool:
    """Whether `dataclass` generated the hash of the class from its fields."""
    code = getattr(kind.__hash__, "__code__", None)
    return code is not None and code.co_filename == "<string>" and hasattr(kind, "__dataclass_fields__")
