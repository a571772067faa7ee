"""`jit`: traces a function once per signature, compiles it, and then calls the compiled program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from gradix._api.arguments import (
    check_callable,
    complete,
    name_of,
)
from gradix._api.jit.argument_roles import ArgumentRoles
from gradix._api.jit.checked import (
    names_of,
    refuse_other,
)
from gradix._api.jit.jitted_function import (
    JitFunction,
    Result,
)
from gradix._api.jit.placed import shardings_of
from gradix._api.jit.settings import Settings
from gradix._base.lazy import lazy_module
from gradix._core import seams

_abstracted = lazy_module("gradix._api.jit.abstracted")
_symbolic = lazy_module("gradix._api.jit.symbolic")


@overload
def jit(
    fun: Callable[..., Result],
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    abstracted_axes: Any = ...,
    compiler_options: dict | None = ...,
    max_traces: int | None = ...,
    specialize: bool = ...,
    max_paths: int = ...,
    donate_strict: bool = ...,
    symbolic: Any = ...,
    check: str | None = ...,
) -> JitFunction[Result]: ...


@overload
def jit(
    fun: None = None,
    /,
    *,
    in_shardings: Any = ...,
    out_shardings: Any = ...,
    static_argnums: Any = ...,
    static_argnames: Any = ...,
    donate_argnums: Any = ...,
    donate_argnames: Any = ...,
    keep_unused: bool = ...,
    device: Any = ...,
    backend: str | None = ...,
    inline: bool = ...,
    abstracted_axes: Any = ...,
    compiler_options: dict | None = ...,
    max_traces: int | None = ...,
    specialize: bool = ...,
    max_paths: int = ...,
    donate_strict: bool = ...,
    symbolic: Any = ...,
    check: str | None = ...,
) -> Callable[[Callable[..., Result]], JitFunction[Result]]: ...


def jit(
    fun: Callable | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused: bool = False,
    device=None,
    backend: str | None = None,
    inline: bool = False,
    abstracted_axes=None,
    compiler_options: dict | None = None,
    max_traces: int | None = None,
    specialize: bool = False,
    max_paths: int = 128,
    donate_strict: bool = False,
    symbolic: Any = None,
    check: str | None = None,
):
    """`fun` compiled by XLA.

    It is traced and compiled once per signature, which is the tree, the shapes and dtypes, and the
    static values of its arguments; further calls only run the compiled program.

    Args:
        fun: a pure function of arrays in pytrees. Without it, a decorator is returned.
        in_shardings, out_shardings: how arguments and results are divided over devices: shardings,
            or PartitionSpecs on the mesh in force, as tree prefixes of the positional arguments and
            of the result; None leaves it open.
        device, backend: the device, or platform, to run on; `device_put` of the arguments does the
            same.
        static_argnums, static_argnames: arguments that are Python values, not arrays; the function
            is traced again for each value. Lists, dicts, sets, NumPy arrays and plain objects are
            compared by their content.
        donate_argnums, donate_argnames: arguments whose memory the results may take over.
        keep_unused: keep arguments the function does not use in the compiled program.
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
            (out of bounds), "user" (`checkify.check`), "float", "automatic", "all". Each call then
            waits for its results.

    Returns:
        The compiled function; it has `lower`, `trace`, `eval_shape`, `stats` and `clear_cache`.

    Raises:
        TypeError: `fun` is not callable, `abstracted_axes` does not name axes, or a leaf of an
            argument is not an array.
        ValueError: a static argument is an array, or has neither a hash nor content that can be
            compared; axes of one name differ in size; with donate_strict, a donated argument cannot
            be used.
        RetraceError: more than `max_traces` traces.
        FloatingPointError, ZeroDivisionError, IndexError: with `check`, the error that a call
            found, with its source line.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.jit
        ... def norm(x):
        ...     return jnp.sqrt((x ** 2).sum())
        >>> norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    if fun is None:
        return functools.partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            abstracted_axes=abstracted_axes,
            compiler_options=compiler_options,
            max_traces=max_traces,
            specialize=specialize,
            max_paths=max_paths,
            donate_strict=donate_strict,
            symbolic=symbolic,
            check=check,
        )
    check_callable("jit", fun)
    nums: tuple = ()
    names: tuple = ()
    donated: tuple = ()
    donated_names: tuple = ()
    if static_argnums is not None or static_argnames is not None:
        nums, names = complete(fun, "static", static_argnums, static_argnames)
    if donate_argnums is not None or donate_argnames is not None:
        donated, donated_names = complete(fun, "donate", donate_argnums, donate_argnames)
    if set(nums) & set(donated) or set(names) & set(donated_names):
        raise ValueError(
            f"static and donated arguments cannot intersect: static_argnums={nums}, "
            f"donate_argnums={donated}. A static argument has no memory to donate."
        )
    if abstracted_axes is not None:
        _abstracted.check_form(abstracted_axes)
    if symbolic is not None:
        _symbolic.check_form(symbolic)
    if specialize and (donated or donated_names):
        raise ValueError(
            "jit with specialize=True cannot donate arguments, since a later segment may need them. Leave "
            "out donate_argnums and donate_argnames."
        )
    if check is not None:
        refuse_other(
            specialize=specialize,
            symbolic=symbolic,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            device=device,
        )
    shardings = None
    if not in_shardings is out_shardings is device is backend is None:
        shardings = shardings_of(in_shardings, out_shardings, device, backend)
    roles = ArgumentRoles(fun, name_of(fun), (nums, names), (donated, donated_names))
    return JitFunction(
        fun,
        roles,
        Settings(
            inline,
            keep_unused,
            compiler_options,
            max_traces,
            max_paths if specialize else None,
            donate_strict,
            abstracted_axes,
            symbolic,
            shardings,
            None if check is None else names_of(check),
        ),
    )


seams.jit = jit
