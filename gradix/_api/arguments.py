"""The arguments of a transformed function: their names, static ones, and argument numbers."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import weakref
from collections.abc import Callable, Sized
from types import FunctionType
from typing import Any

from gradix._base import source
from gradix._base.source import located
from gradix._base.tree import keystr, numbered, tree_flatten_with_path
from gradix._core.jaxpr import DebugInfo

# The references are weak, so that a closure and what it captured are freed with their last user.
_signatures: weakref.WeakKeyDictionary[Any, inspect.Signature | None] = weakref.WeakKeyDictionary()

# From Python 3.14 on, reading the annotations evaluates them, which may fail.
_ANNOTATIONS = "__annotate__" if sys.version_info >= (3, 14) else "__annotations__"


def signature(function) -> inspect.Signature | None:
    """The function's signature, or None where Python does not know it."""
    key = _decides_signature(function)
    try:
        return _signatures[key]
    except (KeyError, TypeError):  # it is new, or it cannot be hashed or referenced weakly
        pass
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        found = None
    try:
        _signatures[key] = found
    except TypeError:
        pass
    return found


def _decides_signature(function):
    """The code of a function whose code alone decides the signature; else the function itself.

    Programs make new functions of the same code in each step.
    """
    if (
        type(function) is FunctionType
        and function.__defaults__ is None
        and function.__kwdefaults__ is None
        and not function.__dict__
        and not getattr(function, _ANNOTATIONS)
    ):
        return function.__code__
    return function


def name_of(function) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name else type(function).__name__


def stand_in(wrapper, function) -> None:
    """Copy a function's name, documentation and attributes to the object called in its place.

    Attributes that the object's class defines stay as they are.
    """
    functools.update_wrapper(wrapper, function, updated=())
    own = type(wrapper)
    wrapper.__dict__.update({k: v for k, v in getattr(function, "__dict__", {}).items() if not hasattr(own, k)})


def named_as(function) -> Callable[[Callable], Callable]:
    """A decorator that gives a wrapper the name and documentation of the function it wraps."""

    def wrap(wrapper):
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            try:
                setattr(wrapper, attribute, getattr(function, attribute))
            except (AttributeError, TypeError):
                pass  # a callable object may lack the attribute, or have something else in its place
        wrapper.__dict__.update(getattr(function, "__dict__", ()))
        wrapper.__wrapped__ = function
        return wrapper

    return wrap


def found_by_name(wrapper) -> bool:
    """Whether its module holds this object under the name that it took over, so that the name can stand for it."""
    found: Any = sys.modules.get(getattr(wrapper, "__module__", None) or "")
    for part in getattr(wrapper, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is wrapper


def place_of(function) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return located(code.co_filename, code.co_firstlineno) if code is not None else ""


def hollow(function: Any, depth: int = 8) -> Callable:
    """A function with the name, place and parameters of `function`, but without what it captured.

    Programs are kept longer than the functions they were traced from, which may hold whole models.
    So do methods, partial functions and other callable objects. What C implements stays as it is.
    """
    kind = type(function)
    if kind is types.MethodType:
        return types.MethodType(hollow(function.__func__, depth), _nobody)
    inner = getattr(function, "__wrapped__", None)
    if depth and callable(inner):
        return hollow(inner, depth - 1)
    if kind is FunctionType:
        return _without_captures(function, function.__name__)
    if kind is functools.partial:
        given = [_nobody] * len(function.args)
        return functools.partial(hollow(function.func, depth), *given, **dict.fromkeys(function.keywords))
    call = kind.__dict__.get("__call__")
    if type(call) is FunctionType and not isinstance(function, type):
        return types.MethodType(_without_captures(call, name_of(function)), _nobody)
    return function


_nobody = object()


def _without_captures(function: FunctionType, name: str) -> FunctionType:
    code = function.__code__
    cells = tuple([types.CellType() for _ in code.co_freevars])
    return FunctionType(code, {}, name, None, cells)


class Names(DebugInfo):
    """The names of a function and of its arguments' leaves, found when a message needs them.

    Args:
        function: the function.
        tree: the structure of the pair of its positional and named arguments.
        statics: the numbers of positional arguments that the tree leaves out.
    """

    __slots__ = ("_function", "_tree", "_statics")
    result_paths = ()  # type: ignore[assignment]

    def __init__(self, function: Callable, tree, statics=()):
        self._function, self._tree, self._statics = hollow(function), tree, statics

    @property
    def name(self) -> str:  # type: ignore[override]
        return name_of(self._function)

    @property
    def place(self) -> str:  # type: ignore[override]
        return place_of(self._function)

    @property
    def arg_names(self) -> tuple[str, ...]:  # type: ignore[override]
        args, kwargs = numbered(self._tree)
        every = argument_names(self._function, len(args) + len(self._statics))
        given = [n for i, n in enumerate(every) if i not in self._statics]
        pairs = [*zip(given, args), *sorted(kwargs.items())]
        return tuple([n for name, value in pairs for n in leaf_names(name, value)])


def leaf_names(name: str, value: Any) -> list[str]:
    """`name` followed by the key path, for each leaf of `value`."""
    return [name + keystr(path) for path, _ in tree_flatten_with_path(value)[0]]


def argument_names(function, count: int) -> list[str]:
    """The names of the first `count` positional arguments; `args[i]` where there is none."""
    sig = signature(function)
    names: list[str] = []
    if sig is not None:
        for p in sig.parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
                break
    return names[:count] + [f"args[{i}]" for i in range(len(names), count)]


def is_one_number(argnums) -> bool:
    """Whether this is one argument number, and not a tuple, range or other collection of them."""
    return not isinstance(argnums, Sized) or getattr(argnums, "ndim", 1) == 0


def as_numbers(name: str, argnums) -> tuple[int, ...]:
    """Argument numbers, one or a collection of them, as a tuple of ints.

    Raises:
        TypeError: for anything but ints.
    """
    numbers = (argnums,) if is_one_number(argnums) else argnums
    try:
        return tuple([n.__index__() for n in numbers])
    except (AttributeError, TypeError):
        raise TypeError(f"{name} must be an int or a tuple of ints, got {argnums!r}.") from None


def as_names(name: str, argnames) -> tuple[str, ...]:
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"{name} must be a str or a collection of str, got {argnames!r}.")
    return names


def check_callable(name: str, function, takes_static: bool = False) -> None:
    if isinstance(function, staticmethod) and not takes_static:
        raise TypeError(
            f"staticmethod arguments are not supported by {name}, got {function!r}. Apply {name} to the function, and "
            f"staticmethod to the result: @staticmethod above @{name}."
        )
    if not callable(function):
        raise TypeError(
            f"{name} expects a function as its first argument, got {function!r} of type "
            f"{type(function).__name__}. Write {name}(f), not {name}(f(x))."
        )
    if inspect.isgeneratorfunction(function):
        raise TypeError(
            f"{name} expects a function that returns arrays, got the generator function "
            f"{name_of(function)}. Return a tuple or list instead of yielding."
        )


def here() -> str:
    return str(source.current())


def positions(numbers, count: int) -> set[int]:
    """The argument numbers that lie within `count` arguments; negative ones count from the end."""
    return {n % count for n in numbers if -count <= n < count}


def complete(fun, kind: str, nums, names) -> tuple[tuple, tuple]:
    """Check numbers and names of arguments by the signature; derive one from the other if None.

    Where both are given, neither is derived: a wrapper may have another function's signature.
    """
    given = nums is not None and names is not None
    nums = as_numbers(f"{kind}_argnums", nums) if nums is not None else ()
    names = as_names(f"{kind}_argnames", names) if names is not None else ()
    sig = signature(fun) if nums or names else None
    if sig is None:
        if names and kind == "donate" and not given:
            raise ValueError(
                f"Getting the signature of function {fun} failed. Pass donate_argnums instead of donate_argnames: "
                "without a signature, a name does not tell which of the arguments given by position it stands for."
            )
        return nums, names
    params = list(sig.parameters.values())
    kinds = [p.kind for p in params]
    positional = [p.name for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has_varargs = any(k is k.VAR_POSITIONAL for k in kinds)
    has_kwargs = any(k is k.VAR_KEYWORD for k in kinds)
    for n in nums:
        if not -len(positional) <= n < len(positional) and not has_varargs:
            raise ValueError(
                f"jitted function has {kind}_argnums={nums} but only accepts {len(positional)} positional "
                f"arguments: {', '.join(positional) or 'none'}."
            )
    for name in names:
        if name not in sig.parameters:
            if not has_kwargs:
                raise ValueError(
                    f"jitted function has invalid argname {name!r} in {kind}_argnames. Function signature: {sig}."
                )
        elif sig.parameters[name].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            raise ValueError(
                f"jitted function has invalid argname {name!r} in {kind}_argnames: it is only given by position. "
                f"Name its number in {kind}_argnums. Function signature: {sig}."
            )
    if not has_varargs:
        nums = tuple([n % len(positional) for n in nums])
    if given:
        return nums, names
    by_number = [positional[n] for n in nums if -len(positional) <= n < len(positional)]
    by_name = [positional.index(n) for n in names if n in positional]
    all_nums = tuple(dict.fromkeys([*nums, *by_name]))
    return all_nums, tuple(dict.fromkeys([*names, *[n for n in by_number if _by_keyword(sig, n)]]))


def _by_keyword(sig, name: str) -> bool:
    return sig.parameters[name].kind is not sig.parameters[name].POSITIONAL_ONLY
