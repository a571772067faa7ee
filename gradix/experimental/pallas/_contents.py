"""What memory holds before it is written, and what a read beyond an array gives."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradix import numpy as jnp
from gradix._core.dtypes import ExtendedDType


class Contents(NamedTuple):
    """What memory that is not written holds.

    - `number`: "zero", or for NaN the integers that stand for it, the "smallest" or the "largest".
    - `reads_beyond`: whether reads beyond an array give that too; else they are moved inside.
    """

    number: str = "smallest"
    reads_beyond: bool = False


class _Current(threading.local):
    """The contents of memory for the kernel that this thread traces."""

    contents = Contents()


_current = _Current()


@contextlib.contextmanager
def memory_of(contents: Contents) -> Iterator[None]:
    """A context in which memory that is not written holds what `contents` says."""
    before, _current.contents = _current.contents, contents
    try:
        yield
    finally:
        _current.contents = before


def reads_beyond() -> bool:
    """Whether reads beyond an array give what memory holds that is not written."""
    return _current.contents.reads_beyond


def undefined(shape: Any, dtype: Any) -> Any:
    """An array of what memory holds that is not written; of booleans, false."""
    if isinstance(dtype, ExtendedDType):
        raise NotImplementedError(f"a kernel cannot make an array of dtype {dtype}; pass one to it.")
    number = _current.contents.number
    if number == "zero":
        value: Any = 0
    elif jnp.issubdtype(dtype, np.inexact):
        value = np.nan
    elif dtype == np.bool_:
        value = False
    else:
        value = jnp.iinfo(dtype).max if number == "largest" else jnp.iinfo(dtype).min
    return jnp.full(shape, value, dtype)
