"""`debug.breakpoint`: a debugger in the middle of compiled code, with the values of that moment."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from gradix._api.callbacks import debug_callback, pure_callback
from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.structs import ShapeDtypeStruct
from gradix._base import source
from gradix._base.tree import tree_flatten, tree_map
from gradix._core.array import as_array
from gradix._core.trace import FinishedTrace, Tracer

_AROUND = 5  # lines shown before and after the current one


class Frame(NamedTuple):
    """A function of the user's that was running where the breakpoint was met."""

    file: str
    line: int
    function: str
    local: dict[str, Any]
    globals: dict[str, Any]

    def listing(self) -> str:
        """The lines around the current one, which an arrow marks."""
        lines = linecache.getlines(self.file, self.globals)
        first = max(self.line - 1 - _AROUND, 0)
        rows = [f"> {self.file}({self.line})"]
        for number, text in enumerate(lines[first : self.line + _AROUND], first + 1):
            rows.append(f"{'->' if number == self.line else '  '}  {text.rstrip()}")
        return "\n".join(rows)

    def evaluate(self, text: str) -> Any:
        """The value of an expression in the names of this function."""
        return eval(text, self.globals, self.local)


class CommandLineDebugger(cmd.Cmd):
    """Reads commands and shows values: of the innermost function first, `up` leads to its callers.

    Args:
        frames: the functions, the innermost first.
        stdin: a stream of commands; None for the terminal.
        stdout: the stream for what is shown; None for the terminal.
    """

    prompt = "(jdb) "

    def __init__(self, frames: list[Frame], *, stdin=None, stdout=None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0

    def run(self) -> None:
        self._tell("Entering jdb:")
        self.cmdloop()

    @property
    def frame(self) -> Frame:
        return self.frames[self.at]

    def _tell(self, text: str) -> None:
        print(text, file=self.stdout)

    def _show(self, text: str, write: Callable[[Any], str]) -> None:
        try:
            self._tell(write(self.frame.evaluate(text)))
        except Exception as error:
            self._tell(f"*** {type(error).__name__}: {error}")

    def default(self, line: str) -> None:
        if line == "EOF":
            self.do_quit("")
        self._show(line, repr)

    def do_p(self, text: str) -> None:
        """p expression: show the value of an expression."""
        self._show(text, repr)

    def do_pp(self, text: str) -> None:
        """pp expression: show the value of an expression on several lines."""
        self._show(text, pprint.pformat)

    def do_locals(self, _: str) -> None:
        """locals: show all names of the current function with their values."""
        for name, value in self.frame.local.items():
            self._tell(f"{name} = {value!r}")

    def do_list(self, _: str) -> None:
        """l(ist): show the lines around the current one."""
        self._tell(self.frame.listing())

    def do_where(self, _: str) -> None:
        """w(here), bt: show the functions that led here, the innermost last."""
        rows = ["Traceback:"]
        for frame in reversed(self.frames):
            text = linecache.getline(frame.file, frame.line, frame.globals).strip()
            rows.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}\n    {text}')
        self._tell("\n".join(rows))

    def do_up(self, _: str) -> None:
        """u(p): go to the caller of the current function."""
        self._go(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """d(own): go to the function that the current one called."""
        self._go(-1, "At bottommost frame.")

    def _go(self, step: int, end: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
        else:
            self._tell(end)
        self._tell(self.frame.listing())

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): go on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit: end the program."""
        sys.exit(0)

    do_l, do_u, do_d = do_list, do_up, do_down
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit


_DEBUGGERS: dict[str, Callable[..., Any]] = {"cli": CommandLineDebugger}


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop at this point of the program, traced and compiled or not, and open a debugger there.

    The debugger sees the functions that led here and their variables, with the values they have
    when the compiled code gets here: once for each example of `vmap`, at each turn of a loop. Its
    commands are `p` and `pp` (show the value of an expression, which needs no command either),
    `locals`, `list`, `where`, `up`, `down`, `continue` and `quit`; `help` names them.

    Args:
        backend: the debugger; "cli", the default, is the only one.
        filter_frames: leave out functions of this package and of libraries that ask for it.
        num_frames: how many functions, from the innermost, the debugger sees; None for all.
        ordered: keep the order of all ordered breakpoints, prints and callbacks of the program.
        token: arrays in pytrees, instead of `ordered`: the breakpoint is met once they are
            computed, and it is left out of a program that does not use the token returned.
        kwargs: options of the debugger; "cli" takes `stdin` and `stdout`, streams of text that
            stand for the terminal.

    Returns:
        The token, unchanged; None without one.

    Raises:
        ValueError: there is no such debugger, or both `ordered` and `token` are given.

    Example:
        >>> import io, gradix
        >>> def f(x):
        ...     y = x * 3
        ...     gradix.debug.breakpoint(stdin=io.StringIO("p y\\ncontinue\\n"))
        ...     return y + 1
        >>> gradix.jit(f)(2)
        Entering jdb:
        (jdb) Array(6, dtype=int32)
        (jdb) Array(7, dtype=int32, weak_type=True)
    """
    name = "cli" if backend is None else backend
    if name not in _DEBUGGERS:
        raise ValueError(f"debug.breakpoint has no debugger {backend!r}. Write one of {sorted(_DEBUGGERS)}.")
    if ordered and token is not None:
        raise ValueError(
            "debug.breakpoint got both ordered=True and a token. Leave out one of them: a token "
            "orders the breakpoint by what it depends on."
        )
    frames = _frames(sys._getframe(1), filter_frames)
    frames = frames if num_frames is None else frames[: max(num_frames, 1)]
    leaves, tree = tree_flatten([_as_pytrees(frame.local) for frame in frames])
    traced = [i for i, x in enumerate(leaves) if isinstance(x, Tracer) and not _is_dead(x)]

    def stop(*values):
        known = list(leaves)
        for i, value in zip(traced, values):
            known[i] = value
        seen = [
            f._replace(local={k: v.value if type(v) is _Whole else v for k, v in local.items()})
            for f, local in zip(frames, tree.unflatten(known))
        ]
        _DEBUGGERS[name](seen, **kwargs).run()

    values = [leaves[i] for i in traced]
    if token is None:
        debug_callback(stop, *values, ordered=ordered)
        return None
    return _with_token(tree_map(as_array, token), values, stop)


def _with_token(token, values: list, stop: Callable) -> Any:
    """The token from a callback that stops first, with the derivative of the identity."""

    def stopped(token, *values):
        stop(*values)
        return tree_map(np.asarray, token)

    @custom_jvp
    def passed(token, values):
        types = tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype), token)
        return pure_callback(stopped, types, token, *values, vmap_method="sequential")

    @passed.defjvp
    def jvp(primals, tangents):
        return passed(*primals), tangents[0]

    return passed(token, values)


def _frames(frame: FrameType | None, filter_frames: bool) -> list[Frame]:
    """The functions from `frame` outwards."""
    found = []
    while frame is not None:
        code = frame.f_code
        if not (filter_frames and source.is_inside(code.co_filename)):
            found.append(
                Frame(code.co_filename, frame.f_lineno, code.co_qualname, dict(frame.f_locals), frame.f_globals)
            )
        frame = frame.f_back
    return found


class _Whole:
    """A leaf of a pytree that stands for a value of the user's that cannot be taken apart."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def _as_pytrees(local: dict[str, Any]) -> dict[str, Any]:
    """The variables, where those that cannot be taken apart are leaves."""
    found = {}
    for name, value in local.items():
        try:
            tree_flatten(value)
        except Exception:  # raised by a class of the user's, or by unsortable keys
            value = _Whole(value)
        found[name] = value
    return found


def _is_dead(x: Tracer) -> bool:
    """Whether a tracer outlived its trace, so that no value belongs to it any more."""
    return isinstance(x._trace, FinishedTrace)
