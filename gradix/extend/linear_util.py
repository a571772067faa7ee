"""`WrappedFun`: functions in a wrapper, which libraries transform."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any

from gradix._base.config import trace_context
from gradix._base.listing import own_names as _own_names
from gradix._core.jaxpr import DebugInfo
from gradix._core.wrapped_functions import WrappedFun as WrappedFun


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """`call(wrapped, *args)`, cached for each function and arguments while the function lives.

    Args:
        call: a function of a `WrappedFun` and further arguments.
        explain: not used.

    Example:
        >>> calls = []
        >>> traced = cache(lambda f, *args: calls.append(args) or f.call_wrapped(*args))
        >>> double = lambda x: 2 * x
        >>> traced(wrap_init(double), 3), traced(wrap_init(double), 3), calls
        (6, 6, [(3,)])
    """
    kept: dict[Any, weakref.WeakKeyDictionary] = {}

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args):
        key = tuple(sorted(fun.params.items())), args, trace_context()
        try:
            found = kept.setdefault(key, weakref.WeakKeyDictionary())
        except TypeError:  # An argument cannot be hashed.
            return call(fun, *args)
        if fun.f in found:
            return found[fun.f]
        result = call(fun, *args)
        with contextlib.suppress(TypeError):  # The function may not allow weak references.
            found[fun.f] = result
        return result

    cached.cache_clear = kept.clear  # type: ignore[attr-defined]
    return cached


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: DebugInfo | None = None) -> WrappedFun:
    """The function `f` in a wrapper, with keyword arguments for its calls.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> lu.wrap_init(lambda x, k: x + k, {"k": 10}).call_wrapped(1)
        11
    """
    return WrappedFun(f, params, debug_info)


class StoreException(Exception):
    """A `Store` was read while it was empty, or stored to twice.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> try:
        ...     lu.Store().val
        ... except lu.StoreException as e:
        ...     print(type(e).__name__)
        StoreException
    """


class Store:
    """A place for one value that a transformation gives besides its results.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> store = lu.Store()
        >>> store.store(3)
        >>> store.val
        3
    """

    __slots__ = ("values",)

    def __init__(self):
        self.values: list = []

    def store(self, value) -> None:
        if self.values:
            raise StoreException(
                "Store occupied: the transformed function was called twice. Wrap the function again for each call."
            )
        self.values.append(value)

    @property
    def val(self):
        if not self.values:
            raise StoreException("Store empty: call the transformed function first.")
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(self.values)


def _decorating(function: Callable) -> Callable:
    """`function(gen, fun, *rest)` made a decorator where `gen` is its only argument."""

    @functools.wraps(function)
    def either(gen: Callable, *args, **kwargs):
        return function(gen, *args, **kwargs) if args else functools.partial(function, gen, **kwargs)

    return either


@_decorating
def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """`fun` transformed by a function: calls become `gen(f, *gen_static_args, *args)`.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> def doubled(f, *args):
        ...     return 2 * f(*args)
        >>> lu.transformation2(doubled, lu.wrap_init(lambda x: x + 1)).call_wrapped(3)
        8
    """
    return fun.wrap(lambda *args, **kwargs: gen(fun.call_wrapped, *gen_static_args, *args, **kwargs))


@_decorating
def transformation(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """`fun` transformed by a generator.

    The generator yields arguments as `(args, kwargs)`, is sent the results of `fun`, and yields the
    transformed results.

    Args:
        gen: the generator function, of `gen_static_args` and the arguments of a call.
        fun: the wrapped function; without it, the result is a decorator.
        *gen_static_args: the first arguments of the generator.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> @lu.transformation
        ... def scaled(factor, *args):
        ...     out = yield args, {}
        ...     yield out * factor
        >>> scaled(lu.wrap_init(lambda x: x + 1), 10).call_wrapped(2)
        30
    """

    def call(f, *args, **kwargs):
        steps = gen(*gen_static_args, *args, **kwargs)
        given, named = next(steps)
        out = steps.send(f(*given, **named))
        steps.close()
        return out

    return transformation2(call, fun)


@_decorating
def transformation_with_aux2(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation2`, with a `Store` as second argument of `gen`.

    The second result is a function that returns the value in the store.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> def counted(f, store, *args):
        ...     store.store(len(args))
        ...     return f(*args)
        >>> f, count = lu.transformation_with_aux2(counted, lu.wrap_init(lambda x, y: x + y))
        >>> f.call_wrapped(1, 2), count()
        (3, 2)
    """
    store = Store()
    return fun.wrap(
        lambda *args, **kwargs: gen(fun.call_wrapped, store, *gen_static_args, *args, **kwargs)
    ), lambda: store.val


@_decorating
def transformation_with_aux(
    gen: Callable, fun: WrappedFun, *gen_static_args: Any
) -> tuple[WrappedFun, Callable[[], Any]]:
    """As `transformation`, for generators whose last yield is a pair of results and another value.

    The second result is a function that returns that value.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> def counted(*args):
        ...     result = yield args, {}
        ...     yield result, len(args)
        >>> f, count = lu.transformation_with_aux(counted, lu.wrap_init(lambda x, y: x + y))
        >>> f.call_wrapped(1, 2), count()
        (3, 2)
    """

    def call(f, store, *args, **kwargs):
        steps = gen(*gen_static_args, *args, **kwargs)
        given, named = next(steps)
        out, aux = steps.send(f(*given, **named))
        steps.close()
        store.store(aux)
        return out

    return transformation_with_aux2(call, fun)


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """The value of the one of two such functions that has one, after True for the first.

    Example:
        >>> from gradix.extend import linear_util as lu
        >>> def counted(f, store, *args):
        ...     store.store(len(args))
        ...     return f(*args)
        >>> f, first = lu.transformation_with_aux2(counted, lu.wrap_init(lambda x: x))
        >>> g, second = lu.transformation_with_aux2(counted, lu.wrap_init(lambda x: x))
        >>> _ = g.call_wrapped(1)
        >>> lu.merge_linear_aux(first, second)
        (False, 1)
    """
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


__dir__ = _own_names(__name__)
