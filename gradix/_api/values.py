"""`debug.values()`: functions run in Python with numbers, inside of every transformation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradix._api import unwatched
from gradix._api.boundary import with_arrays
from gradix._api.jit.fastcall import MISS
from gradix._base.config import disable_jit
from gradix._base.tree import tree_map
from gradix._core.trace import Tracer, concrete, state
from gradix._ops.select import select


@contextmanager
def values() -> Iterator[None]:
    """A context manager in which traced values print their numbers.

    Jitted functions, loops and branches run in Python, operation by operation, so that `print`,
    f-strings, `breakpoint()` and debuggers show numbers inside of `jit`, `grad`, `vmap`, `scan`,
    `cond`, `while_loop`, `checkpoint`, `pmap` and `shard_map`. A mapped value is shown whole, with
    its mapped axis, as is one of `pmap`, which maps on one device here, and the parts of all devices
    in `shard_map`, with an axis for each mesh axis along which they differ. Of a branch that
    examples or devices decide differently, both sides run. A `shard_map` shows no numbers of mutable
    arrays among its arguments, and of sums that are left to be made (`unreduced`).

    A jitted function that computes and does nothing else, as its code shows, runs compiled from its
    seventeenth call on, unless a debugger or profiler watches; so do long loops.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> seen = []
        >>> @gradix.jit
        ... def f(x):
        ...     seen.append(f"x is {x}")
        ...     return x * x
        >>> with gradix.debug.values():
        ...     y = gradix.vmap(gradix.grad(f))(jnp.array([1.0, 2.0]))
        >>> seen
        ['x is Array([1., 2.], dtype=float32) mapped over axis 0 with a gradient']
    """
    before = state.shows_values
    state.shows_values = True
    try:
        with disable_jit():
            yield
    finally:
        state.shows_values = before


def known(*xs: Any) -> bool:
    """Whether all traced values hold numbers that Python can decide by."""
    return state.shows_values and all(concrete(x) is not None for x in xs)


def while_loop(loop: Callable, cond_fun: Callable, body_fun: Callable, carry: Any) -> Any:
    """A loop in Python, whose condition may be traced; it ends when no example goes on.

    Where nobody can see its steps, the last ones are those of the compiled `loop`.
    """
    steps = 0
    while True:
        going = cond_fun(carry)
        if not isinstance(going, Tracer):
            if not going:
                return carry
            carry = body_fun(carry)
        else:
            numbers = np.asarray(concrete(going))
            if not numbers.any():
                return carry
            following = body_fun(carry)
            carry = following if numbers.all() else chosen(going, following, carry)
        steps += 1
        if steps % unwatched.LONG == 0:
            result = unwatched.loop(
                (body_fun, cond_fun), carry, unwatched.LONG, functools.partial(loop, cond_fun, body_fun, carry)
            )
            if result is not MISS:
                return result


def chosen(which: Any, on_true: Any, on_false: Any) -> Any:
    """The tree of values where a mapped condition holds, and the other elsewhere."""
    return tree_map(lambda a, b: select(which, a, b), with_arrays(on_true), with_arrays(on_false))


def branch(index: Any, branches: tuple[Callable, ...], operands: tuple) -> Any:
    """The result of the branch that a traced index chooses, for each example."""
    numbers = np.asarray(concrete(index))
    wanted = [k for k in range(len(branches)) if (np.clip(numbers, 0, len(branches) - 1) == k).any()]
    result = branches[wanted[0]](*operands) if wanted else branches[0](*operands)
    for k in wanted[1:]:
        result = chosen(index == k, branches[k](*operands), result)
    return result
