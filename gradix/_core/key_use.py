"""Records which random keys have been consumed, for the option `jax_debug_key_reuse`.

A key is identified by the address of its word in the NumPy array that holds it. Indexing, reshaping
and iterating return views of that array, so a key is recognised in all of them; copies are new
keys.
"""

from __future__ import annotations

import functools
import threading
import weakref

import numpy as np

from gradix._base import source
from gradix._base.errors import KeyReuseError

_lock = threading.Lock()
# id of the array that owns the words -> (its weak reference, {address: first use})
_used: dict[int, tuple] = {}


class Use:
    """Where a key was consumed, and by what."""

    __slots__ = ("by", "place")

    def __init__(self, by: str, place):
        self.by, self.place = by, place

    def __str__(self) -> str:
        return f"by {self.by} at {self.place}"


def consume(by: str, keys: np.ndarray, which: np.ndarray | None = None, at: str = "") -> None:
    """Mark keys as consumed by `by`.

    Args:
        keys: the words of the keys, as the array of keys holds them.
        which: the flat positions that are consumed; all by default.
        at: a text for the message that says which keys they are, such as `at index 0`.

    Raises:
        KeyReuseError: a key has been consumed before; then no key is marked.
    """
    root, addresses = _words(keys)
    addresses = addresses if which is None else addresses[which]
    use = Use(by, source.current())
    with _lock:
        marks = _marks(root)
        first = next((marks[a] for a in addresses.tolist() if a in marks), None)
        if first is None:
            marks.update(dict.fromkeys(addresses.tolist(), use))
            return
    raise reused(f"Previously-consumed key passed to {by}{' ' + at if at else ''}.", first, use)


def mark(keys: np.ndarray, which: np.ndarray, use: Use) -> None:
    """Mark keys as consumed, without checking whether they already were."""
    root, addresses = _words(keys)
    with _lock:
        marks = _marks(root)
        for a in addresses[which].tolist():
            marks.setdefault(a, use)


def reused(summary: str, first, second) -> KeyReuseError:
    """The error for a second use of a key."""
    return KeyReuseError(
        f"{summary}\n  first:   {first}\n  again:   {second}\n"
        "  instead: make a key for each use: key, subkey = random.split(key), or random.fold_in(key, i) in a loop;\n"
        "           to repeat a draw on purpose, use random.clone(key)."
    )


def _words(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array that owns the words, and the address of each."""
    root = keys
    while isinstance(root.base, np.ndarray):
        root = root.base
    addresses = np.asarray(keys.__array_interface__["data"][0], np.int64)
    for n, stride in zip(keys.shape, keys.strides):
        addresses = np.add.outer(addresses, np.arange(n) * stride)
    return root, addresses.reshape(-1)


def _marks(root: np.ndarray) -> dict:
    found = _used.get(id(root))
    if found is None or found[0]() is not root:
        name = id(root)
        found = _used[name] = weakref.ref(root, functools.partial(_forget, _used, name)), {}
    return found[1]


def _forget(used: dict, name: int, ref: weakref.ref) -> None:
    # The marks are given, because the module's names are gone when the process ends.
    found = used.get(name)
    if found is not None and found[0] is ref:
        del used[name]
