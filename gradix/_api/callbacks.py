"""Calling Python from traced code: pure_callback, io_callback, debug.callback, debug.print."""

from __future__ import annotations

import logging
import string
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from gradix._api.arguments import name_of
from gradix._api.boundary import arrays, holders
from gradix._base.errors import CallbackResultError, JaxRuntimeError
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import boundary
from gradix._base.tree import equality_errors, keystr, tree_flatten as flatten
from gradix._control.callbacks import debug_callback_p, io_callback_p, pure_callback_p
from gradix._core import dtypes, seams
from gradix._core.array import as_array, wrap_host
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.trace import Tracer, bind

_parts = lazy_module("gradix._api.callbacks_by_part")
seams.call_by_part = lambda *args: _parts.Partitioner(*args)
_logger = logging.getLogger("gradix.debug")
# Libraries that show an exception themselves keep this logger's record of it out of the log, by its name.
_failures = logging.getLogger("jax._src.callback")
_METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class Told:
    """Whether exceptions of callbacks reach the caller as JaxRuntimeErrors that quote them."""

    __slots__ = ("as_runtime_errors",)

    def __init__(self):
        self.as_runtime_errors = False


told = Told()


def _same_but_for_lists(one, other) -> bool:
    """Whether two pytrees have the same structure if lists and tuples count as equal."""
    plain = type(one) in (list, tuple) and type(other) in (list, tuple)
    if plain or type(one) is type(other) is dict:
        if len(one) != len(other) or (not plain and one.keys() != other.keys()):
            return False
        return all(_same_but_for_lists(one[k], other[k]) for k in (range(len(one)) if plain else one))
    return flatten(one)[1] == flatten(other)[1]


def _flat_callback(callback, tree, out_tree, result_avals, name: str):
    """The callback as a function of NumPy arrays; the user's function gets gradix arrays.

    Args:
        name: the function that takes the callback, for the log.
    """
    result = None if out_tree is None else out_tree.unflatten(result_avals)

    def call(*values):
        args, kwargs = tree.unflatten([wrap_host(np.asarray(v)) for v in values])
        try:
            outs = callback(*args, **kwargs)
        except Exception as error:
            if not told.as_runtime_errors or isinstance(error, JaxRuntimeError):
                raise
            _failures.error("jax.%s failed", name, exc_info=error)
            text = "".join(traceback.format_exception(error))
            raise JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}") from error
        if out_tree is None:
            return []
        leaves, got = flatten(outs)
        if outs is None and not out_tree.num_leaves:
            return []
        if got != out_tree and not _same_but_for_lists(outs, result):
            unequal = "\n".join(
                [
                    f"  at result{keystr(path)}: declared {want}, returned {have}"
                    for path, want, have, _ in equality_errors(out_tree.unflatten(result_avals), outs)
                ]
            )
            raise CallbackResultError(
                f"The callback {name_of(callback)} returned the structure {got}, but result_shape_dtypes "
                f"has {out_tree}.\n{unequal}"
            )
        return leaves

    call.__name__ = name_of(callback)
    return call


def _result_avals(result_shape_dtypes):
    leaves, tree = flatten(result_shape_dtypes)
    avals = []
    for x in leaves:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            x = as_array(x)
        avals.append(make_aval(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), False))
    return tuple(avals), tree


def _call(prim, callback, result_shape_dtypes, args, kwargs, **params):
    if not callable(callback):
        raise TypeError(f"{prim.name} expects a function as its first argument, got {callback!r}.")
    leaves, tree = flatten((args, kwargs))
    leaves = arrays(prim.name, leaves, tree, "argument ")
    avals, out_tree = _result_avals(result_shape_dtypes)
    flat = _flat_callback(callback, tree, out_tree, avals, prim.name)
    outs = bind(prim, leaves, {"callback": flat, "result_avals": avals, **params})
    return out_tree.unflatten(outs)


@boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Array:
    """Call a Python function without side effects from traced or compiled code.

    The call may be dropped if its result is not used, and it may be repeated.

    Args:
        callback: takes `args` and `kwargs`, and returns arrays in the structure of
            `result_shape_dtypes`.
        result_shape_dtypes: `ShapeDtypeStruct`s in a pytree.
        args, kwargs: pytrees of arrays.
        sharding: the device on which the callback is called; None leaves it to the compiler.
        vmap_method: how `vmap` calls it. "sequential" calls it once per example. "expand_dims" and
            "broadcast_all" call it once, with a leading axis on every argument; on those that are
            not mapped it has size 1, or the full size.

    Returns:
        Arrays of the shapes and dtypes of `result_shape_dtypes`, in its structure.

    Raises:
        ValueError: it is differentiated, or a result has another shape than declared.

    Example:
        >>> import gradix, numpy as np
        >>> f = gradix.jit(lambda x: gradix.pure_callback(np.sin, gradix.ShapeDtypeStruct((), "float32"), x))
        >>> f(0.0)
        Array(0., dtype=float32)
    """
    if vmap_method not in _METHODS:
        raise ValueError(f"vmap_method must be one of {_METHODS}, got {vmap_method!r}.")
    method = "sequential" if vmap_method == "sequential_unrolled" else vmap_method
    return _call(pure_callback_p, callback, result_shape_dtypes, args, kwargs, sharding=sharding, vmap_method=method)


@boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function that may have side effects, exactly as often as the program runs it.

    Args:
        callback: takes `args` and `kwargs`, and returns arrays in the structure of
            `result_shape_dtypes`.
        result_shape_dtypes: `ShapeDtypeStruct`s in a pytree; None if nothing is returned.
        args, kwargs: pytrees of arrays.
        sharding: the device on which the callback is called; None leaves it to the compiler.
        ordered: keep the order of all ordered callbacks of the program.

    Returns:
        Arrays of the shapes and dtypes of `result_shape_dtypes`, in its structure.

    Example:
        >>> import gradix
        >>> from gradix.experimental import io_callback
        >>> seen = []
        >>> f = gradix.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))
        >>> f(1.5)
        >>> seen
        [1.5]
    """
    return _call(io_callback_p, callback, result_shape_dtypes, args, kwargs, sharding=sharding, ordered=ordered)


def debug_callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Call a Python function for its side effects, with the run-time values of the arguments.

    What the function returns is dropped.

    Args:
        callback: the function. Without it, the call takes options only and returns a function that
            takes the rest.
        args, kwargs: pytrees of arrays; other leaves are passed as they are.
        ordered: keep the order of all ordered callbacks of the program.
        partitioned: each device calls the function with its own part of the arguments; without it, the
            function is called once, with the whole.

    Raises:
        TypeError: `callback` is not a function, or arguments are given without it.
        ValueError: both `ordered` and `partitioned` are asked for.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: gradix.debug.callback(print, x))(3)
        3
        >>> gradix.debug.callback(ordered=True)(print, 4)
        4
    """
    if callback is None:
        _check_alone("debug.callback", args, kwargs)
        return lambda callback, *args, **kwargs: _debug_callback(callback, args, kwargs, ordered, partitioned)
    return _debug_callback(callback, args, kwargs, ordered, partitioned)


def _check_alone(name: str, args, kwargs) -> None:
    if args or kwargs:
        raise TypeError(
            f"{name} received unexpected arguments in the two-call form: args={args} kwargs={kwargs}. The "
            f"first call takes options only, as in {name}(ordered=True)(...)."
        )


def _debug_callback(callback, args: tuple, kwargs: dict, ordered: bool, partitioned: bool = False) -> None:
    if ordered and partitioned:
        raise ValueError(
            "debug.callback and debug.print take ordered=True or partitioned=True, but not both: devices reach their "
            "calls in no order. Leave out one of them."
        )
    if not callable(callback):
        raise TypeError(f"debug.callback expects a function as its first argument, got {callback!r}.")
    leaves, tree = flatten((args, kwargs))
    leaves = [_last_value(x) for x in leaves]
    is_array = [_is_array(x) for x in leaves]
    values = [as_array(x) for x, a in zip(leaves, is_array) if a]

    def call(*arrays_):
        given = iter(arrays_)
        full = [wrap_host(np.asarray(next(given))) if a else x for x, a in zip(leaves, is_array)]
        positional, named = tree.unflatten(full)
        callback(*positional, **named)
        return []

    call.__name__ = name_of(callback)
    params = {"callback": call, "result_avals": (), "ordered": ordered}
    if partitioned:
        params["whole"] = (0,) * len(values)  # no leading axes yet, which vmap adds
    bind(debug_callback_p, values, params)


def _last_value(x):
    """What a ref of a traced program holds at this point of the program; other leaves as they are."""
    holder = holders.get(type(x))
    if holder is None or holder.holds != 1:
        return x
    (value,) = holder.open(x)
    return value if isinstance(value, Tracer) else x


def _is_array(x) -> bool:
    try:
        as_array(x)
    except (TypeError, OverflowError):
        return False
    return True


class _Formatter(string.Formatter):
    """Raises where a format string does not use an argument."""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [i for i in range(len(args)) if i not in used_args] + [k for k in kwargs if k not in used_args]
        if unused:
            raise ValueError(
                f"Unused arguments to debug.print: {unused}. Name each in the format string, as {{}} or "
                "{name}; to use an f-string, pass the value as an argument instead."
            )


_formatter = _Formatter()


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Print run-time values from traced or compiled code.

    Args:
        fmt: a format string for `str.format`, not an f-string, which would print tracers. Without
            it, the call takes options only and returns a function that takes the rest.
        args, kwargs: the values to print, in pytrees of arrays.
        ordered: keep the order of all ordered prints of the program.
        partitioned: each device prints its own part of the values.
        skip_format_check: accept arguments that `fmt` does not use.

    Raises:
        TypeError: `fmt` is not a string, or arguments are given without it.
        ValueError: an argument is not used in `fmt`; or both `ordered` and `partitioned` are asked for.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: gradix.debug.print("x = {}", x))(3)
        x = 3
    """
    if fmt is None:
        _check_alone("debug.print", args, kwargs)
        return lambda fmt, *args, **kwargs: _debug_print(
            fmt, args, kwargs, ordered, skip_format_check, partitioned=partitioned
        )
    return _debug_print(fmt, args, kwargs, ordered, skip_format_check, partitioned=partitioned)


def debug_log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Callable[..., None] | None:
    """Write run-time values to the logger `gradix.debug` at level INFO; see `debug.print`.

    Args:
        fmt, args, ordered, partitioned, skip_format_check, kwargs: as for `debug.print`.

    Raises:
        TypeError: `fmt` is not a string, or arguments are given without it.
        ValueError: an argument is not used in `fmt`; or both `ordered` and `partitioned` are asked for.

    Example:
        >>> import gradix
        >>> gradix.jit(lambda x: gradix.debug.log("x = {}", x))(3)
    """
    if fmt is None:
        _check_alone("debug.log", args, kwargs)
        return lambda fmt, *args, **kwargs: _debug_print(
            fmt, args, kwargs, ordered, skip_format_check, partitioned=partitioned, tell=_logger.info
        )
    return _debug_print(fmt, args, kwargs, ordered, skip_format_check, partitioned=partitioned, tell=_logger.info)


def _debug_print(
    fmt,
    args: tuple,
    kwargs: dict,
    ordered: bool,
    skip_format_check: bool,
    *,
    partitioned: bool,
    tell: Callable | None = None,
) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print expects a format string, got {fmt!r} of type {type(fmt).__name__}.")
    if not skip_format_check:
        _check_format(fmt, args, kwargs)

    # The program prints in another thread, which has not the options of the thread that asks for it.
    options = np.get_printoptions()

    def show(*values, **named):
        with np.printoptions(**options):
            text = fmt.format(*values, **named)
        if tell is None:  # a line at once, because devices print at the same time
            print(f"{text}\n", end="")
        else:
            tell(text)

    _debug_callback(show, args, kwargs, ordered, partitioned)


def _check_format(fmt: str, args: tuple, kwargs: dict) -> None:
    """Raise where the format string and the arguments do not fit, before the program runs."""
    given = f"{len(args)} positional and {', '.join(map(repr, kwargs)) or 'no keyword'} arguments were passed"
    try:
        _formatter.vformat(fmt, [_Any()] * len(args), {k: _Any() for k in kwargs})
    except IndexError:
        raise IndexError(
            f"debug.print: {fmt!r} has more {{}} than there are positional arguments: {given}. Pass the "
            "values as arguments, and write {{ and }} for braces."
        ) from None
    except KeyError as e:
        raise KeyError(
            f"debug.print: {fmt!r} names {e.args[0]!r}, but {given}. Pass {e.args[0]}=value, and write "
            "{{ and }} for braces."
        ) from None
    except ValueError as e:
        raise ValueError(str(e)) from None  # without the frame of Python's formatter


class _Any:
    """Accepts any format specification."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str):
        return self

    def __getitem__(self, key):
        return self
