"""The options of `jit`, as one record: their names, defaults and documentation stand here alone."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, overload

from gradix._api.arguments import complete, name_of
from gradix._api.jit.argument_roles import ArgumentRoles
from gradix._api.jit.checked import names_of, names_of_all
from gradix._api.jit.placed import Shardings, shardings_of
from gradix._base.lazy import lazy_module

if TYPE_CHECKING:
    from gradix._api.jit.jitted_function import JitFunction, Result

_budget = lazy_module("gradix._api.costs.budget")
_abstracted = lazy_module("gradix._api.jit.abstracted")
_symbolic = lazy_module("gradix._api.jit.symbolic")


@dataclasses.dataclass(kw_only=True, slots=True)
class Options:
    """How a function is traced, compiled and called.

    Attributes:
        in_shardings, out_shardings: how arguments and results are divided over devices: shardings,
            or PartitionSpecs on the mesh in force, as tree prefixes of the positional arguments and
            of the result; None leaves it open.
        static_argnums, static_argnames: arguments that are Python values, not arrays; the function
            is traced again for each value. Lists, dicts, sets, NumPy arrays and plain objects are
            compared by their content.
        donate_argnums, donate_argnames: arguments whose memory the results may take over.
        keep_unused: keep arguments the function does not use in the compiled program.
        device, backend: the device, or platform, to run on; `device_put` of the arguments does the
            same.
        inline: inside another traced function, write the equations in place of a call.
        abstracted_axes: names for axes of the positional arguments: `{axis: name}` or a tuple of
            names, for all of them, or a tree of these that is a prefix of the arguments. Axes of
            one name must be of one size, or the call raises. XLA's programs are of fixed sizes, so
            each size is compiled as without names.
        compiler_options: XLA debug options by name.
        max_traces: how often the function may be traced; a further trace raises an error that says
            what differed.
        specialize: lets Python branch on traced values (`if`, `while`, `int(x)`, `x[mask]`, NumPy).
            The program so far is run to get the value, and each path that the function takes is
            kept as compiled segments.
        max_paths: how many paths to keep per signature; beyond it, the least recently taken path
            is dropped.
        donate_strict: raise, instead of warning, where no result can reuse the memory of a donated
            argument; also raise where a NumPy view of it is in use.
        symbolic: axes whose sizes the trace leaves open, so that one trace serves all sizes, and
            only XLA compiles for each size. It is a text with a dimension for each axis, such as
            ``"n"`` or ``"b, _"`` (see `export.symbolic_shape` for the grammar), None for fixed
            shapes, or a tree of these that is a prefix of the positional arguments. Sizes are at
            least 1. Further constraints follow after semicolons, as in
            ``"b, n; n >= 8; mod(n, 4) == 0"``; they decide comparisons while the function is
            traced, and are checked at every call.
        check: errors that the compiled program looks for, joined with commas: "nan", "div", "index"
            (out of bounds, where no `mode` says what to do then), "user" (`checkify.check`), "float",
            "automatic", "all". Each call then waits for its results.
        memory: the most memory for temporaries of the compiled program, such as "2GiB" or a number
            of bytes. Values are computed again in place of being kept until XLA's figure
            (`memory_analysis().temp_size_in_bytes`) keeps to it; if none does, a warning tells how
            near it came. Each attempt is a compilation.
    """

    in_shardings: Any = None
    out_shardings: Any = None
    static_argnums: int | Sequence[int] | None = None
    static_argnames: str | Sequence[str] | None = None
    donate_argnums: int | Sequence[int] | None = None
    donate_argnames: str | Sequence[str] | None = None
    keep_unused: bool = False
    device: Any = None
    backend: str | None = None
    inline: bool = False
    abstracted_axes: Any = None
    compiler_options: dict | None = None
    max_traces: int | None = None
    specialize: bool = False
    max_paths: int = 128
    donate_strict: bool = False
    symbolic: Any = None
    check: str | None = None
    memory: str | int | None = None

    def roles(self, fun: Callable) -> ArgumentRoles:
        """The roles of the function's arguments.

        Raises:
            ValueError: an argument is both static and donated, or there is none of this name.
        """
        static: tuple = (), ()
        donated: tuple = (), ()
        if self.static_argnums is not None or self.static_argnames is not None:
            static = complete(fun, "static", self.static_argnums, self.static_argnames)
        if self.donate_argnums is not None or self.donate_argnames is not None:
            donated = complete(fun, "donate", self.donate_argnums, self.donate_argnames)
        if any(set(a) & set(b) for a, b in zip(static, donated)):
            raise ValueError(
                f"static and donated arguments cannot intersect: static_argnums={static[0]}, "
                f"donate_argnums={donated[0]}. A static argument has no memory to donate."
            )
        return ArgumentRoles(fun, name_of(fun), static, donated)

    def check_forms(self) -> None:
        """Check the options that are checked before a call.

        Raises:
            TypeError: `abstracted_axes` or `symbolic` is not of its form.
            ValueError: a constraint of `symbolic` is malformed.
        """
        if self.abstracted_axes is not None:
            _abstracted.check_form(self.abstracted_axes)
        if self.symbolic is not None:
            _symbolic.check_form(self.symbolic)

    def shardings(self) -> Shardings | None:
        """The shardings, or the device, of arguments and results; None where none are asked for."""
        return shardings_of(self.in_shardings, self.out_shardings, self.device, self.backend)

    def checks(self) -> tuple[str, ...] | None:
        """The kinds of errors that the compiled program checks for."""
        return names_of_all() if self.check is None else names_of(self.check)

    def budget(self) -> int | None:
        """The most bytes for temporaries."""
        return None if self.memory is None else _budget.bytes_of(self.memory)


_NAMES = tuple([f.name for f in dataclasses.fields(Options)])
P = ParamSpec("P")
Given = ParamSpec("Given")


class _TakesOptions(Protocol, Generic[P]):
    """The type of `jit`: a function and options give a jitted function, options alone a decorator."""

    @overload
    def __call__(
        self, fun: Callable[Given, Result], /, *args: P.args, **kwargs: P.kwargs
    ) -> JitFunction[Given, Result]: ...

    @overload
    def __call__(
        self, fun: None = None, /, *args: P.args, **kwargs: P.kwargs
    ) -> Callable[[Callable[Given, Result]], JitFunction[Given, Result]]: ...


def takes(record: Callable[P, Any]) -> Callable[[Callable], _TakesOptions[P]]:
    """A decorator for a function `f(fun=None, /, **options)` whose options are those of a record.

    Its signature and documentation get those of the fields; `{options}` in the documentation stands
    for their descriptions.
    """

    def decorate(function: Callable) -> _TakesOptions[P]:
        first = inspect.Parameter("fun", inspect.Parameter.POSITIONAL_ONLY, default=None, annotation="Callable | None")
        fields = list(inspect.signature(record).parameters.values())
        function.__signature__ = inspect.Signature([first, *fields])  # type: ignore[attr-defined]
        if function.__doc__ and record.__doc__:
            texts = textwrap.dedent(record.__doc__.partition("Attributes:\n")[2]).strip()
            shown = textwrap.indent(texts, " " * 8).strip()
            function.__doc__ = function.__doc__.replace("{options}", shown)
        return function  # type: ignore[return-value]

    return decorate


def check_names(options: dict[str, Any]) -> None:
    """Raise for a keyword that is no option of `jit`.

    Raises:
        TypeError: the message names the option that is most like it.
    """
    for name in options:
        if name not in _NAMES:
            like = difflib.get_close_matches(name, _NAMES, 1)
            advice = f"Did you mean {like[0]}?" if like else f"There are {', '.join(_NAMES)}."
            raise TypeError(f"jit() got an unexpected keyword argument {name!r}. {advice}")
