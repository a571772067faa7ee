"""`custom_vmap` and `sequential_vmap`: functions for which the user defines the vmap rule."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from gradix._api.arguments import Names, check_callable, name_of, signature, stand_in
from gradix._api.boundary import Flat, arrays, kind_of, positional
from gradix._api.derivatives.custom_derivatives import Found
from gradix._api.loops import scan
from gradix._base.tracebacks import boundary
from gradix._base.tree import keystr, tree_flatten as flatten, tree_flatten_with_path
from gradix._control.custom_vmap import call_custom_vmap

P = ParamSpec("P")
T = TypeVar("T")


class custom_vmap(Generic[P, T]):
    """A function for which the user defines the vmap rule; its derivatives use the rule as well.

    Args:
        fun: the function.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.custom_batching.custom_vmap
        ... def dot(x, y):
        ...     return x @ y
        >>> @dot.def_vmap
        ... def dot_rule(axis_size, in_batched, xs, y):
        ...     assert in_batched == [True, False]      # one product instead of many
        ...     return xs @ y, True
        >>> gradix.vmap(dot, in_axes=(0, None))(jnp.eye(2), jnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """

    def __init__(self, fun: Callable[P, T]):
        check_callable("custom_vmap", fun)
        stand_in(self, fun)
        self.fun = fun
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the rule, and return it.

        Args:
            vmap_rule: `vmap_rule(axis_size, in_batched, *args) -> (outs, out_batched)`.
                `in_batched` is a list that holds a tree of booleans for each argument; they say
                which leaves are mapped, along their first axis. `out_batched` is such a tree for
                `outs`.
        """
        check_callable("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __getattr__(self, name: str):
        if name in _RULES_OF_DERIVATIVES and "fun" in self.__dict__:
            return getattr(self.fun, name)  # of a function of custom_jvp or custom_vjp
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {name} using def_vmap. "
                f"Decorate its rule with @{name}.def_vmap before calling it."
            )
        leaves, tree = flatten(self._resolve(args, kwargs))
        leaves = arrays(name, leaves, tree, "argument")
        out = Found()

        def close(leaves, out_tree):
            out["tree"] = out_tree
            return arrays(name, leaves, out_tree, "output")

        flat = Flat(self.fun, name, positional(tree).unflatten, close=close)
        outs = call_custom_vmap(flat, self._flat_rule(tree, out), leaves, name, Names(self.fun, positional(tree)))
        return out["tree"].unflatten(outs)

    def _resolve(self, args, kwargs) -> tuple:
        """All arguments by position, defaults filled in."""
        sig = signature(self.fun)
        if sig is None:
            return args
        bound = sig.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"The custom_vmap function {name_of(self.fun)} has keyword-only arguments "
                f"{sorted(bound.kwargs)}, which its rule cannot receive. Make them positional."
            )
        return bound.args

    def _flat_rule(self, tree, out: dict) -> Callable:
        rule, name = self.vmap_rule, name_of(self.fun)
        assert rule is not None

        def flat(size: int, batched: list, leaves: list):
            result = rule(size, list(tree.unflatten(batched)), *tree.unflatten(leaves))
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise ValueError(
                    f"The vmap rule {name_of(rule)} of {name} must return a pair: the results, and which "
                    f"of them are batched. It returned {kind_of(result)}."
                )
            outs, out_tree = flatten(result[0])
            if out_tree != out["tree"]:
                raise ValueError(
                    f"The vmap rule {name_of(rule)} of {name} must return results in the structure "
                    f"{name} returns, {out['tree']}, but returned {out_tree}."
                )
            mapped = _flags(result[1], out_tree, name_of(rule), name)
            return arrays(f"the vmap rule of {name}", outs, out_tree, "output"), mapped

        return flat


_RULES_OF_DERIVATIVES = frozenset(("defjvp", "defjvps", "defvjp"))


def _flags(given, tree, rule: str, name: str) -> list[bool]:
    """The results that a rule says are batched, as a boolean for each."""
    flags, got = flatten(given)
    if got != tree:
        raise ValueError(
            "structure of output value and output batching specification returned by custom vmap rule "
            f"({rule}) of {name} do not match.\nOutput values: {tree}\nBatching spec: {got}\n"
            "Return a boolean for each result."
        )
    wrong = next((i for i, f in enumerate(flags) if not isinstance(f, bool)), None)
    if wrong is not None:
        path = keystr(tree_flatten_with_path(given)[0][wrong][0])
        raise ValueError(
            f"The vmap rule {rule} of {name} must say for each result whether it is batched, True or "
            f"False; at out_batched{path} it returned {flags[wrong]!r}."
        )
    return flags


def sequential_vmap(f: Callable) -> custom_vmap:
    """`f`, which `vmap` calls for one example after the other, in a loop.

    Args:
        f: the function.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> @gradix.custom_batching.sequential_vmap
        ... def f(x):
        ...     gradix.debug.print("{}", x)
        ...     return x + 1
        >>> gradix.vmap(f)(jnp.arange(3))
        0
        1
        2
        Array([1, 2, 3], dtype=int32)
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = flatten(args)
        flags = flatten(in_batched)[0]

        def step(_, rows):
            given = iter(rows)
            return None, wrapped(*tree.unflatten([next(given) if m else x for x, m in zip(leaves, flags)]))

        outs = scan(step, None, [x for x, m in zip(leaves, flags) if m], length=axis_size)[1]
        out_leaves, out_tree = flatten(outs)
        return outs, out_tree.unflatten([True] * len(out_leaves))

    return wrapped
