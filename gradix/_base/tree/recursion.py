"""Why a tree could not be walked to its end: it contains itself, or is nested too deeply."""

import sys
from typing import Any, Callable

from .native import children_with_keys, key_string

__all__ = ["nesting_error"]


def nesting_error(tree: Any, is_leaf: Callable[[Any], bool] | None, cause: BaseException) -> BaseException:
    """The error to raise in place of `cause`, which jaxlib raised when it ran out of stack.

    jaxlib reports it as a SystemError; an error of another kind is returned as it is.
    """
    if isinstance(cause, SystemError) and not isinstance(cause.__cause__ or cause.__context__, RecursionError):
        return cause
    path, holder = _innermost(tree, is_leaf)
    if holder is None:
        return RecursionError(
            f"The pytree is nested about {len(path)} levels deep, more than the interpreter's stack allows "
            f"(sys.getrecursionlimit() is {sys.getrecursionlimit()}). Keep the values in a flat list, or raise the limit."
        )
    return RecursionError(
        f"The pytree contains itself: tree{key_string(path)} is the {type(holder[1]).__name__} at tree{key_string(holder[0])}. "
        "Break the cycle, or stop at it with is_leaf."
    )


def _innermost(tree: Any, is_leaf) -> tuple[tuple, tuple | None]:
    """Walk without recursion to the first node that is its own ancestor: (path, (ancestor's path, ancestor)).

    Without one: (the deepest path met, None).
    """
    deepest: tuple = ()
    open_nodes: dict[int, tuple] = {}
    stack: list[tuple[tuple, Any, bool]] = [((), tree, True)]
    while stack:
        path, node, entering = stack.pop()
        if not entering:
            del open_nodes[id(node)]
            continue
        if id(node) in open_nodes:
            return path, open_nodes[id(node)]
        children = None if is_leaf is not None and is_leaf(node) else children_with_keys(node)
        if not children or not children[0]:
            continue
        deepest = max(deepest, path, key=len)
        if len(path) > 10 * sys.getrecursionlimit():
            break
        open_nodes[id(node)] = (path, node)
        stack.append((path, node, False))
        stack.extend(((*path, key), child, True) for key, child in reversed(children[0]))
    return deepest, None
