"""A cache of a limited number of values that can be made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


_forget: list[Callable[[], Any]] = []


def on_clear(forget: Callable[[], Any]) -> None:
    """Call `forget()` in `gradix.clear_caches()`, to drop programs and what their users captured."""
    _forget.append(forget)


def clear_all() -> None:
    """Drop all caches of programs of this process."""
    for forget in _forget:
        forget()


class BoundedCache(dict[K, V]):
    """A dict of at most `limit` entries; look up with `get`, add with `keep`.

    Args:
        limit: the number of entries.
        drop: how many of the oldest entries are dropped when it is full; half of them by default.
            With 0, a full cache keeps its entries and adds no more, for values whose identity
            matters.

    Example:
        >>> squares = BoundedCache(2, drop=1)
        >>> [squares.keep(n, n * n) for n in range(3)]
        [0, 1, 4]
        >>> squares
        {1: 1, 2: 4}
    """

    __slots__ = ("limit", "drop")

    def __init__(self, limit: int, drop: int | None = None):
        super().__init__()
        self.limit, self.drop = limit, max(limit // 2, 1) if drop is None else drop

    def __reduce__(self):
        # What is pickled by value, as functions made in other functions are, brings the globals that it reads: what is
        # in a cache can be made again.
        return BoundedCache, (self.limit, self.drop)

    def keep(self, key: K, value: V) -> V:
        """Add an entry; its value is also the result."""
        if len(self) >= self.limit and key not in self:
            if not self.drop:
                return value
            for old in list(self)[: self.drop]:
                self.pop(old, None)  # another thread may have dropped it
        self[key] = value
        return value
