"""Says what went wrong inside a tree, and where; and restores the interpreter's recursion budget.

jaxlib enters one level of the interpreter's recursion budget for each level of a tree, and does not
leave it when a callback raises. So each error deep in a tree would cost its thread a part of its
stack, and a registered node that contains itself all of it. This module gives the levels back.
"""

import collections
import ctypes
import functools
import itertools
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradix._base.recursion_room import LIMIT_LOCK

from .native import children_with_keys, key_string

__all__ = ["LOAN", "failure", "leave"]

_enter = functools.partial(ctypes.pythonapi.Py_EnterRecursiveCall, b"")
leave = ctypes.pythonapi.Py_LeaveRecursiveCall

# A handler gives back this many levels before it can call anything; `failure` corrects the number.
LOAN = range(64)
_PROBE_LIMIT = 20_000


def failure(error: Exception, flatten: Callable, tree: Any, is_leaf: Callable | None, takes_path: bool) -> Exception:
    """The error to raise in place of `error`, which `flatten(tree, is_leaf)` raised.

    It must be called after `LOAN` levels were left.

    Args:
        flatten: a function of jaxlib's that takes trees apart.
        is_leaf: as given to it.
        takes_path: whether `is_leaf` is called with (path, node), not with the node.
    """
    if is_leaf is not None and not callable(is_leaf):
        _settle(-len(LOAN))  # jaxlib was never entered
        told = f"is_leaf must be a function from a node to a bool, got {is_leaf!r} of type {type(is_leaf).__name__}."
        return _caused_by(error, TypeError(told))
    where = _retrace(tree, is_leaf if takes_path or is_leaf is None else lambda path, node: is_leaf(node))
    is_exhausted = isinstance(error.__cause__ or error.__context__, RecursionError)
    if isinstance(error, SystemError) and is_exhausted:
        _settle(-len(LOAN))  # jaxlib raised this error itself, so no levels were lost
        return _caused_by(error, _nesting_error(*where))
    # the comparison of a dict's keys may be what finds no level left, which jaxlib tells by a ValueError
    if where[1] != "raises" and (isinstance(error, RecursionError) or is_exhausted and type(error) is ValueError):
        _settle(_missing())
        return _caused_by(error, _nesting_error(*where))
    _settle(_lost_again(flatten, tree, is_leaf) - len(LOAN))
    if type(error) is ValueError and str(error).startswith("Comparator raised"):
        told = f"{error} They are sorted: use keys of one type, or an OrderedDict, whose order is kept."
        error = _caused_by(error.__cause__ or error, ValueError(told))
    if where[0] and where[1] == "raises" and isinstance(error, (ValueError, TypeError)):
        error.add_note(f"While flattening the pytree, at tree{key_string(where[0])}.")
    return error


def _caused_by(cause: BaseException, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


def _nesting_error(path: tuple, kind: str, ancestor: tuple = ((), None)) -> RecursionError:
    if kind == "cycle":
        at, node = ancestor
        return RecursionError(
            f"The pytree contains itself: tree{key_string(path)} is the {type(node).__name__} at "
            f"tree{key_string(at)}. Break the cycle, or stop at it with is_leaf."
        )
    limit, raised = sys.getrecursionlimit(), ", or raise the limit with sys.setrecursionlimit"
    if not _is_shared_with_frames():
        limit, raised = _whole_budget(), ""
    return RecursionError(
        f"The pytree is nested more than {limit} levels deep, which the interpreter's stack does not "
        f"allow. Keep the values in a flat list{raised}."
    )


def _retrace(tree: Any, is_leaf) -> tuple:
    """Flatten again, without recursion, to where it fails.

    Returns:
        (path, "raises"), (path, "cycle", (ancestor's path, ancestor)), or (deepest path, "deep").
    """
    deepest: tuple = ()
    ancestors: dict[int, tuple] = {}
    stack: list[tuple[tuple, Any, bool]] = [((), tree, True)]
    while stack:
        path, node, entering = stack.pop()
        if not entering:
            del ancestors[id(node)]
            continue
        if id(node) in ancestors:
            return path, "cycle", ancestors[id(node)]
        deepest = max(deepest, path, key=len)
        if len(path) > 2 * sys.getrecursionlimit():
            break
        try:
            split = None if is_leaf is not None and is_leaf(path, node) else children_with_keys(node)
            children = [] if split is None else [((*path, key), child, True) for key, child in split[0]]
        except Exception:
            return path, "raises"
        if children:
            ancestors[id(node)] = (path, node)
            stack.append((path, node, False))
            stack.extend(reversed(children))
    return deepest, "deep"


def _settle(levels: int) -> None:
    """Leave that many levels of recursion, or enter as many if negative."""
    _times(leave if levels > 0 else _enter, itertools.repeat((), abs(levels)))


def _times(call: Callable[[], Any], turns: Iterator[tuple]) -> None:
    """Call a function of C for each turn; no signal is handled between the calls."""
    collections.deque(itertools.starmap(call, turns), maxlen=0)


def _lost_again(flatten: Callable, tree: Any, is_leaf: Callable | None) -> int:
    """The levels that a call that raised lost; the same call, made once more to measure them, loses as many again."""
    before = _entered()
    try:
        flatten(tree, is_leaf)
    except RecursionError:
        return 0  # of a level that raises sometimes
    except Exception:
        return 2 * (_entered() - before)
    return 0


def _missing() -> int:
    """The number of levels to leave, after `LOAN`, if all were entered; negative to enter some.

    From Python 3.12 on, calls of C have a budget of their own, and how many of them are on the
    stack is not known: no more than two for each frame, so that never too many levels are left.
    """
    if _is_shared_with_frames():
        return _entered() - _depth()
    return max(_entered() - 2 * _depth(), -len(LOAN))


def _entered() -> int:
    """The levels that this thread has entered: calls of C, and frames of Python where both have one budget."""
    if not _is_shared_with_frames():
        return _whole_budget() - _budget()
    with LIMIT_LOCK:
        return sys.getrecursionlimit() - _budget()


@functools.cache
def _is_shared_with_frames() -> bool:
    """Whether frames of Python and calls of C have one budget, which `setrecursionlimit` sets."""

    def deeper(frames: int) -> int:
        return deeper(frames - 1) if frames else _budget()

    with LIMIT_LOCK:
        return _budget() > deeper(8)


@functools.cache
def _whole_budget() -> int:
    """The number of recursion levels of a thread that has entered none."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(_budget()))
    thread.start()
    thread.join()
    return found[0]


def _budget() -> int:
    """The number of recursion levels that are left to this thread."""
    most = max(_PROBE_LIMIT, sys.getrecursionlimit() + 1_000)
    turns = itertools.repeat((), most)
    try:
        _times(_enter, turns)
    except RecursionError:
        for _ in LOAN:
            leave()
        entered = most - operator.length_hint(turns) - 1
    else:
        for _ in LOAN:
            leave()
        entered = most
    _settle(entered - len(LOAN))
    return entered


def _depth() -> int:
    """The number of Python frames on the stack."""
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
