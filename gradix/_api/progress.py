"""`progress`: shows how far loops are, in Python and inside of compiled programs.

A watched loop carries two more numbers: the steps done, and the step at which to report next. The
report is a callback that returns the next step to report, so that it is called some ten times a
second, however long a step takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from gradix._api.control import cond
from gradix._api.derivatives.implicit import stop_gradient
from gradix._api.progress_lines import Bar, Lines, display
from gradix._base import config
from gradix._control.callbacks import io_callback_p
from gradix._control.custom_vmap import call_custom_vmap
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.jaxpr import no_debug
from gradix._core.trace import bind
from gradix._ops.arithmetic import add
from gradix._ops.comparison import ge
from gradix._ops.convert import convert
from gradix._ops.reductions import reduce_max
from gradix._ops.shape import reshape

_OPTION = "gradix_progress"
_INT, _FLOAT = np.dtype("int32"), np.dtype("float32")
_NEVER = (1 << 31) - 1
_options = config.state


class _Loop:
    """A loop that is shown: when it was last reported, and at which step."""

    __slots__ = ("display", "total", "steps", "at", "drawn")

    def __init__(self, shown: Lines | Bar, total: int | None):
        self.display, self.total = shown, total
        self.steps, self.at = 0, time.perf_counter()
        self.drawn = self.at

    def report(self, steps: int, value: str) -> int:
        """Show the step, if it is time, and return the step to report next."""
        now = time.perf_counter()
        done, seconds = steps - self.steps, now - self.at
        if now - self.drawn >= self.display.every:
            self.display.show(steps, value)
            self.drawn = now
        self.steps, self.at = steps, now
        soon = int(done * self.display.every / seconds) if seconds > 0 else 2 * done
        return steps + max(1, min(2 * done, soon))


class progress:
    """Show how far loops are: their steps, rate, time left, and a number of your choice.

    As a context manager, it watches every `scan`, `fori_loop` and `while_loop` that runs within,
    also in functions that were compiled before. Loops inside of a watched loop are part of its
    steps. As an iterator, it watches a Python loop.

    In terminals and notebooks, tqdm draws a bar if it is installed. Elsewhere a line is written
    every few seconds, and one at the end.

    Args:
        what: an iterable to loop over in Python, or the name of the loops in a `with` block.
        name: the name of a Python loop.
        show: a function from the carry of a watched loop to a scalar, which is shown. Loops whose
            carry it does not fit show none.
        total: the number of steps of an iterable that has no length.
        file: the stream to write to; standard error by default.

    Example:
        >>> import gradix, sys
        >>> from gradix import lax
        >>> with gradix.progress("adding", file=sys.stdout):
        ...     total = lax.fori_loop(0, 1000, lambda i, total: total + i, 0)
        adding: 1000/1000 steps, ... steps/s, done in ... s
        >>> for row in gradix.progress(range(3), "rows", file=sys.stdout):
        ...     pass
        rows: 3/3 steps, ... steps/s, done in ... s
    """

    def __init__(
        self,
        what: Iterable | str = "progress",
        name: str | None = None,
        *,
        show: Callable[[Any], Any] | None = None,
        total: int | None = None,
        file: Any = None,
    ):
        self.iterable = None if isinstance(what, str) else what
        self.name = name or (what if isinstance(what, str) else "progress")
        self.total, self.file = total, file
        self.value: Any = None  # a Python loop sets this number to show it
        self._show = show
        self._loops: dict[int, _Loop] = {}
        self._before: list = []

    # -- loops in Python ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        if self.iterable is None:
            raise TypeError(
                f"progress({self.name!r}) watches the loops inside of a `with` block. To loop in Python, "
                f"pass the iterable: for x in gradix.progress(rows, {self.name!r})."
            )
        total = self.total if self.total is not None else getattr(self.iterable, "__len__", lambda: None)()
        loop = _Loop(display(self.name, total, self.file), total)
        due, steps = 1, 0
        try:
            for item in self.iterable:
                yield item
                steps += 1
                if steps >= due:
                    due = loop.report(steps, _text(self.value))
        finally:
            loop.display.close(steps, _text(self.value))

    def __len__(self) -> int:
        return len(self.iterable) if self.total is None else self.total  # type: ignore[arg-type]

    # -- loops in programs -------------------------------------------------------------------------

    def __enter__(self) -> progress:
        override = config._Override(_OPTION, self._show or True)
        override.__enter__()
        self._before.append(override)
        with _lock:
            _active.append(self)
        return self

    def __exit__(self, *exc) -> None:
        self._before.pop().__exit__(*exc)
        with _lock:
            _active.remove(self)

    def _start(self, total: int | None) -> int:
        number = next(_numbers)
        self._loops[number] = _Loop(display(self.name, total, self.file), total)
        return number

    def _report(self, number: int, steps: int, value: str) -> int:
        return self._loops[number].report(steps, value)

    def _finish(self, number: int, steps: int, value: str) -> None:
        self._loops.pop(number).display.close(steps, value)


def _text(value: Any) -> str:
    return "" if value is None else f"{float(value):.4g}"


_lock = threading.Lock()
_active: list[progress] = []  # it is global, since callbacks of programs run in other threads
_numbers = iter(range(1, 1 << 31))
_owners: dict[int, progress] = {}


# -- the callbacks of a watched loop ---------------------------------------------------------------


def _on_start(total: np.ndarray) -> list:
    if not _active:
        return [np.asarray(0, _INT), np.asarray(_NEVER, _INT)]
    owner, n = _active[-1], int(total)
    number = owner._start(n if n >= 0 else None)
    _owners[number] = owner
    return [np.asarray(number, _INT), np.asarray(1, _INT)]


def _on_step(number: np.ndarray, steps: np.ndarray, *value: np.ndarray) -> list:
    owner = _owners.get(int(number))
    due = owner._report(int(number), int(steps), _text(*value or [None])) if owner is not None else _NEVER
    return [np.asarray(min(due, _NEVER), _INT)]


def _on_finish(number: np.ndarray, steps: np.ndarray, *value: np.ndarray) -> list:
    owner = _owners.pop(int(number), None)
    if owner is not None:
        owner._finish(int(number), int(steps), _text(*value or [None]))
    return []


_SCALAR = make_aval((), _INT)


def _call(callback: Callable, args: list, results: int) -> list:
    return bind(
        io_callback_p,
        args,
        {"callback": callback, "result_avals": (_SCALAR,) * results, "sharding": None, "ordered": False},
    )


# -- watching --------------------------------------------------------------------------------------


class unwatched(config._Override):
    """Context manager in which loops are not watched."""

    __slots__ = ()

    def __init__(self):
        super().__init__(_OPTION, False)


def _of_all(x):
    """The number itself; under `vmap` the greatest of all examples, so that it is not mapped."""
    return call_custom_vmap(lambda x: [x], _of_examples, [x], "_of_all", no_debug)[0]


def _of_examples(size, batched, xs):
    return ([_of_all(reduce_max(xs[0], (0,)))] if batched[0] else xs), [False]


class Watch:
    """The parts added to a watched loop: two numbers in its carry, and calls that report."""

    def __init__(self, total: Any):
        self.show = _options.gradix_progress
        total = convert(as_array(total), _INT)
        self.number, due = _call(_on_start, [_of_all(total)], 2)
        self.first = as_array(np.asarray(0, _INT)), due

    def after(self, state: tuple, carry: Any) -> tuple:
        """The two numbers after one more step, which returned this carry."""
        steps, due = state
        steps = add(steps, as_array(np.asarray(1, _INT)))
        now, then = _of_all(steps), _of_all(due)
        values = self.values(carry)
        due = cond(ge(now, then), lambda: _call(_on_step, [self.number, now, *values], 1)[0], lambda: then)
        return steps, due

    def finish(self, state: tuple, carry: Any) -> None:
        _call(_on_finish, [self.number, _of_all(state[0]), *self.values(carry)], 0)

    def values(self, carry: Any) -> list:
        """The chosen scalar, if there is one and it fits the carry."""
        if not callable(self.show):
            return []
        try:
            chosen = as_array(self.show(carry))
        except (AttributeError, IndexError, KeyError, TypeError):
            return []
        return [_of_all(reshape(convert(stop_gradient(chosen), _FLOAT), ()))] if chosen.size == 1 else []


def watched_scan(scan: Callable, f: Callable, init: Any, xs: Any, steps: int, **options: Any):
    """A scan that reports."""
    watch = Watch(steps)

    def body(state, x):
        carry, numbers = state
        carry, y = f(carry, x)
        return (carry, watch.after(numbers, _own(f, carry))), y

    with unwatched():
        (carry, numbers), ys = scan(body, (init, watch.first), xs, steps, **options)
        watch.finish(numbers, _own(f, carry))
    return carry, ys


def watched_while(while_loop: Callable, cond_fun: Callable, body_fun: Callable, init: Any, total: Any = -1):
    """A while loop that reports."""
    watch = Watch(total)

    def body(state):
        carry, numbers = state
        carry = body_fun(carry)
        return carry, watch.after(numbers, _own(body_fun, carry))

    with unwatched():
        carry, numbers = while_loop(lambda state: cond_fun(state[0]), body, (init, watch.first))
        watch.finish(numbers, _own(body_fun, carry))
    return carry


def _own(body: Callable, carry: Any) -> Any:
    """The user's part of the carry; that of a fori_loop is its last child."""
    return carry[-1] if hasattr(body, "body_fun") else carry
