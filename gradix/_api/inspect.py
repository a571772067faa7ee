"""Looks at functions without running them: make_jaxpr, eval_shape, closure_convert, named_scope."""

from __future__ import annotations

import contextlib
import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from gradix._api.arguments import Names, as_numbers, check_callable, name_of, signature
from gradix._api.boundary import Flat, around, holders, opened, results, stand_ins, values
from gradix._api.structs import ShapeDtypeStruct, aval_of, struct_of
from gradix._base.errors import class_of
from gradix._base.lazy import lazy_module
from gradix._base.name_stack import current_names, set_names
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_map
from gradix._core import library_values
from gradix._core.array import ArrayImpl, as_array, typeof as _typeof
from gradix._core.aval import within
from gradix._core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, Literal, Var
from gradix._core.trace import Tracer, outside, state
from gradix._ops.basis import is_differentiable
from gradix._transforms.staging import eval_jaxpr as _eval_jaxpr

_hi_values = lazy_module("gradix._api.hi_values")
_jitted: Any = lazy_module("gradix._api.jit.jitted_function")
T = TypeVar("T")


class _Traced:
    """A traced function: its jaxpr, the values it captured, and the tree of its results."""

    __slots__ = ("jaxpr", "consts", "out_tree")

    def __init__(self, jaxpr, consts, out_tree):
        self.jaxpr, self.consts, self.out_tree = jaxpr, consts, out_tree


def _trace(fun, args: tuple, kwargs: dict, statics: dict | None = None) -> _Traced:
    """Trace `fun`; `statics` are values of positional arguments by number, left out of `args`."""
    leaves, tree = opened((args, kwargs))
    inside, names = stand_ins(leaves), Names(fun, tree, statics or ())
    fill = around(inside, len(leaves), tree)
    avals = [_leaf_aval(fun, x, i, names) for i, x in enumerate(leaves) if i not in inside]

    def merged(operands):
        positional, named = fill(operands)
        return _merged(positional, statics), named

    close = functools.partial(results, names)
    flat = Flat(fun, name_of(fun), merged if statics else fill, close=close, names=names)
    jaxpr, consts, refs, _ = flat.stage_call(avals, inside, is_shown=True)
    if refs or inside:
        jaxpr, consts = _with_ref_arguments(jaxpr, consts, refs, inside)
        empty = {i for i in inside if not holders[type(leaves[i])].holds}
        if empty:
            invars = [v for i, v in enumerate(jaxpr.invars) if i not in empty]
            jaxpr = jaxpr.replace(invars=invars, effects=jaxpr.effects)
    return _Traced(jaxpr, consts, flat.out_tree)


def _with_ref_arguments(jaxpr, consts, refs, inside: dict):
    """The program whose inputs hold the values of refs, in place of those among the arguments.

    The values of captured refs are constants.
    """
    n = len(jaxpr.invars) - len(refs)
    own: dict[Any, Any] = {r.ref: r.var for r in refs}
    taken: Any = {i: own.get(r) or Var(r.aval.inner_aval) for i, r in inside.items()}
    given = iter(jaxpr.invars[:n])
    invars = [taken[i] if i in taken else next(given) for i in range(n + len(inside))]
    captured = [r for r in refs if r.ref not in inside.values()]
    whole = jaxpr.replace(
        constvars=[*jaxpr.constvars, *[r.var for r in captured]], invars=invars, effects=jaxpr.effects
    )
    return whole, [*consts, *[r.ref.read() for r in captured]]


def _merged(dynamic, statics: dict) -> list:
    rest = iter(dynamic)
    return [statics[i] if i in statics else next(rest) for i in range(len(dynamic) + len(statics))]


def _leaf_aval(fun, x, index: int, names: Names):
    if type(x) is ArrayImpl:
        return x.aval
    try:
        return aval_of(x)
    except (TypeError, OverflowError) as e:
        raise type(e)(
            f"Cannot interpret the argument {names.arg_names[index]} of {name_of(fun)} as an abstract array: it is "
            f"of type {class_of(x)}. {e} Name arguments that the function only branches on in static_argnums."
        ) from None


@overload
def make_jaxpr(
    fun: Callable, static_argnums=(), axis_env=None, return_shape: typing.Literal[False] = False
) -> Callable[..., ClosedJaxpr]: ...


@overload
def make_jaxpr(
    fun: Callable, static_argnums=(), axis_env=None, *, return_shape: typing.Literal[True]
) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...


def make_jaxpr(
    fun: Callable, static_argnums: int | Sequence[int] = (), axis_env: Any = None, return_shape: bool = False
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for the types of its arguments.

    Args:
        fun: the function.
        static_argnums: numbers of arguments that are Python values, not arrays.
        axis_env: pairs (name, size) of named axes to consider bound.
        return_shape: return the pair of the jaxpr and the tree of result types.

    Raises:
        TypeError: `fun` is not callable.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.make_jaxpr(lambda x: 2.0 * jnp.sin(x))(1.0)
        { lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul 2.0:f32[] b in (c,) }
    """
    if not callable(fun):
        raise TypeError(
            f"the first argument must be callable: make_jaxpr(f)(*args); got {fun!r} of type {class_of(fun)}."
        )
    numbers = as_numbers("static_argnums", static_argnums)
    if numbers:
        _check_numbers(fun, numbers)
    env = list(axis_env or ())

    @functools.wraps(fun)
    @boundary
    def make_jaxpr_f(*args, **kwargs):
        dynamic, statics = _separate(args, numbers) if numbers else (args, None)
        with _bound_axes(env) if env else contextlib.nullcontext():
            traced = _trace(fun, dynamic, kwargs, statics)
        closed = ClosedJaxpr(_with_dropped(traced.jaxpr), traced.consts)
        if not return_shape:
            return closed
        return closed, traced.out_tree.unflatten([struct_of(a) for a in closed.out_avals[: traced.out_tree.num_leaves]])

    make_jaxpr_f.__name__ = f"make_jaxpr({name_of(fun)})"
    make_jaxpr_f.__qualname__ = f"make_jaxpr({getattr(fun, '__qualname__', name_of(fun))})"
    make_jaxpr_f.__module__ = "gradix"
    return make_jaxpr_f


def _check_numbers(fun, numbers) -> None:
    sig = signature(fun)
    if sig is None or any(p.kind is p.VAR_POSITIONAL for p in sig.parameters.values()):
        return
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in sig.parameters.values())
    if any(not -count <= n < count for n in numbers):
        raise ValueError(f"static_argnums={numbers}, but {name_of(fun)} only accepts {count} positional arguments.")


def _separate(args, numbers) -> tuple[tuple, dict]:
    count = len(args)
    places = {n % count for n in numbers if -count <= n < count}
    return tuple([a for i, a in enumerate(args) if i not in places]), {i: args[i] for i in places}


class _Axis:
    """A named axis bound from outside: it has a size, and takes no operations."""

    __slots__ = ("size", "level")

    def __init__(self, size):
        self.size, self.level = size, -1


@contextlib.contextmanager
def _bound_axes(env):
    saved = state.axes
    state.axes = {**saved, **{name: _Axis(size) for name, size in env}}
    try:
        yield
    finally:
        state.axes = saved


def _with_dropped(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with a `DropVar` for each result that is not used."""
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal}
    used.update([v for v in jaxpr.outvars if type(v) is not Literal])
    for eqn in jaxpr.eqns:
        for v in eqn.outvars:
            if v not in used:
                eqn.outvars = [v if v in used else DropVar(v.aval) for v in eqn.outvars]
                break
    return jaxpr


@boundary
def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """The types of the results of `fun(*args, **kwargs)`, found by tracing without computing.

    Args:
        fun: the function.
        args, kwargs: its arguments: arrays, or `ShapeDtypeStruct`s in place of arrays.

    Returns:
        A tree of `ShapeDtypeStruct` like the function's result, with the type in place of a value
        above arrays. Those of a jitted function have the shardings and formats that its
        `out_shardings` names.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.eval_shape(lambda x: x @ x.T, gradix.ShapeDtypeStruct((2, 3), jnp.float32))
        ShapeDtypeStruct(shape=(2, 2), dtype=float32)
        >>> gradix.eval_shape(lambda p: {"sum": p[0] + p[1]}, (jnp.ones(3), jnp.ones((2, 1))))
        {'sum': ShapeDtypeStruct(shape=(2, 3), dtype=float32)}

    See also:
        `gradix.make_jaxpr`, `gradix.jit`, `gradix.ShapeDtypeStruct`, `gradix.typeof`.
    """
    check_callable("eval_shape", fun)
    own: Any = fun
    if type(own) is _jitted.JitFunction and own._shardings is not None:
        return own.eval_shape(*args, **kwargs)
    traced = _trace(fun, args, kwargs)
    out = traced.out_tree.unflatten([struct_of(v.aval) for v in traced.jaxpr.outvars[: traced.out_tree.num_leaves]])
    if not values:
        return out
    is_value = _hi_values.is_value
    return tree_map(lambda x: _hi_values.type_of(x) if is_value(x) else x, out, is_leaf=is_value)


def eval_jaxpr(jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list:
    """The list of results of a program for these arguments.

    Args:
        jaxpr: the program.
        consts: the values of its `constvars`.
        args: the values of its `invars`.
        propagate_source_info: accepted for compatibility.

    Example:
        >>> import gradix
        >>> closed = gradix.make_jaxpr(lambda x: x + 1.0)(0.0)
        >>> gradix.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)
        [Array(3., dtype=float32, weak_type=True)]
    """
    return _eval_jaxpr(jaxpr, [as_array(c) for c in consts], *[as_array(a) for a in args])


def typeof(x: Any) -> Any:
    """The type of an array: its shape, dtype, whether it is weakly typed, and its division over `Explicit` axes.

    Arrays on different devices have equal types.

    Raises:
        TypeError: `x` is neither an array nor of a type that can be made one.

    Example:
        >>> import gradix
        >>> gradix.typeof(1.5)
        ShapedArray(float32[], weak_type=True)
    """
    if type(x) in library_values.types:
        return library_values.types[type(x)](x)
    if isinstance(x, ShapeDtypeStruct):
        return aval_of(x)
    try:
        aval = _typeof(x)
    except TypeError as e:
        raise TypeError(f"Argument {x!r} of type {class_of(x)} is not a valid JAX type. {e}") from None
    if getattr(aval, "place", None) is None:
        return aval
    anywhere = within(aval)
    return anywhere if anywhere.sharding == aval.sharding else aval


@boundary
def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """`fun` as a function that takes the traced arrays it captured as arguments, and these arrays.

    Only values that can be differentiated become arguments; the others stay captured.

    Args:
        fun: the function.
        example_args: arguments of the types that it will be called with.

    Returns:
        `(converted, captured)` with `converted(*args, *captured)` equal to `fun(*args)`.

    Raises:
        TypeError: the converted function is called with arguments of another structure.
        NotImplementedError: `fun` writes to a mutable array that it captured.

    Example:
        >>> import gradix
        >>> def line(w):
        ...     g, captured = gradix.closure_convert(lambda x: w * x, 1.0)
        ...     return g(2.0, *captured)
        >>> gradix.grad(line)(3.0)
        Array(2., dtype=float32, weak_type=True)
    """
    check_callable("closure_convert", fun)
    traced = _trace(fun, example_args, {})
    if len(traced.jaxpr.outvars) > traced.out_tree.num_leaves:
        raise NotImplementedError(
            f"closure_convert: {name_of(fun)} writes to a mutable array that it captured. "
            "Return the value, and write it where the converted function is called."
        )
    in_tree = opened(example_args)[1]
    moved = [isinstance(c, Tracer) and is_differentiable(c.aval) for c in traced.consts]

    def converted(*args):
        count = len(args) - sum(moved)
        leaves, tree = opened(tuple(args[:count]))
        if tree != in_tree:
            raise TypeError(
                f"the function converted by closure_convert takes arguments of structure {in_tree} "
                f"followed by {sum(moved)} captured arrays; got {tree}."
            )
        given = iter(args[count:])
        consts = [next(given) if m else c for c, m in zip(traced.consts, moved)]
        return traced.out_tree.unflatten(_eval_jaxpr(traced.jaxpr, consts, *map(as_array, leaves)))

    return converted, [c for c, m in zip(traced.consts, moved) if m]


def named_call(fun: Callable[..., T], *, name: str | None = None) -> Callable[..., T]:
    """`fun`, whose operations bear `name` in the metadata of compiled programs.

    Args:
        fun: the function.
        name: the name; by default, that of the function.

    Example:
        >>> import gradix
        >>> layer = gradix.named_call(lambda x: x * 2, name="layer")
        >>> "layer" in gradix.jit(layer).lower(1.0).compile().as_text()
        True
    """
    check_callable("named_call", fun)
    scope = name or name_of(fun)

    @functools.wraps(fun)
    @boundary
    def named(*args, **kwargs):
        with named_scope(scope):
            return fun(*args, **kwargs)

    return named


class named_scope(contextlib.ContextDecorator):
    """Context manager and decorator that names the operations inside, in programs and profiles.

    In compiled programs, the `op_name` of each operation holds the names of the scopes around it
    and its own, joined by `/`.

    Args:
        name: the name of the scope.

    Raises:
        TypeError: `name` is not a string.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> def f(x):
        ...     with gradix.named_scope("layer"):
        ...         return jnp.sin(x)
        >>> "layer/sin" in gradix.jit(f).lower(0.0).compile().as_text()
        True
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"named_scope name must be a string, got {name!r} of type {type(name).__name__}.")
        self.name, self._before = name, []

    def _recreate_cm(self):
        return named_scope(self.name)

    def __enter__(self):
        self._before.append(set_names(current_names().extend(self.name)))

    def __exit__(self, *exc):
        set_names(self._before.pop())


@contextlib.contextmanager
def ensure_compile_time_eval() -> Any:
    """Context manager in which operations on known values run at once, even in traced code.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.jit
        ... def f(x):
        ...     with gradix.ensure_compile_time_eval():
        ...         n = int(jnp.sum(jnp.arange(4)))
        ...     return x * n
        >>> f(1)
        Array(6, dtype=int32, weak_type=True)
    """
    with outside():
        yield


eval_context = ensure_compile_time_eval
