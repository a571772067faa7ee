"""The common part of custom_jvp and custom_vjp: resolves arguments, and splits off static ones."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradix._api.arguments import argument_names, check_callable, found_by_name, name_of, signature, stand_in
from gradix._api.boundary import Arguments, Flat, arrays
from gradix._base.tree import tree_flatten as flatten
from gradix._core.array import as_array
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.trace import Tracer
from gradix._ops.basis import add_any, tangent_aval, zeros

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


class CustomDerivative:
    """The base class of custom_jvp and custom_vjp: resolves arguments, and wraps the function."""

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        check_callable(type(self).__name__, fun, takes_static=True)
        stand_in(self, fun)
        self.fun = fun
        self._name = name_of(fun)
        names = argument_names(fun, 64) if nondiff_argnames else []
        numbers = [*nondiff_argnums, *(names.index(n) for n in nondiff_argnames if n in names)]
        self.nondiff_argnums = tuple(sorted(set(numbers)))

    def __class_getitem__(cls, types: Any) -> Any:
        """The class as the type of a function: of parameters and result, or as before of the result alone."""
        given = types if isinstance(types, tuple) else (..., types)
        return super().__class_getitem__(given)  # type: ignore[misc]

    def __get__(self, instance, owner=None) -> Any:
        return self if instance is None else types.MethodType(self, instance)  # type: ignore[arg-type]

    def __getattr__(self, name: str):
        if name == "fun":
            raise AttributeError(name)
        return getattr(self.fun, name)

    def __reduce_ex__(self, protocol):
        """Pickle by name if the module holds it, else as the function and its rules."""
        return self.__qualname__ if found_by_name(self) else super().__reduce_ex__(protocol)

    def _resolve(self, args, kwargs) -> tuple:
        """All arguments by position, with defaults filled in; keyword-only ones keep theirs."""
        sig = signature(self.fun)
        if sig is None:
            return args
        try:
            bound = sig.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(
                f"The input arguments to the {type(self).__name__}-decorated function {self._name} could "
                f"not be resolved to positional-only arguments: {e}."
            ) from None
        only_named = [n for n in bound.arguments if sig.parameters[n].kind in _NAMED]
        if only_named:
            raise TypeError(
                f"The {type(self).__name__}-decorated function {self._name} could not be resolved to "
                f"positional-only arguments: its rule cannot receive the keyword-only arguments "
                f"{sorted(only_named)}. Make them positional, or leave them at their defaults."
            )
        bound.apply_defaults()
        return bound.args

    def _split(self, args):
        """Split the arguments into those not differentiated, their traced values, and the others."""
        for n in self.nondiff_argnums:
            if n >= len(args):
                raise ValueError(
                    f"nondiff_argnums={self.nondiff_argnums} is out of bounds for {self._name}, called "
                    f"with {len(args)} arguments."
                )
        static, traced = Static.of([args[n] for n in self.nondiff_argnums])
        return static, traced, [a for i, a in enumerate(args) if i not in self.nondiff_argnums]

    def _flat(self, static, args, out: dict) -> Flat:
        """The function on leaves, with static arguments inserted; puts its tree into `out`."""
        numbers, k = self.nondiff_argnums, len(static.places)

        def given(operands):
            full = list(args.filled(operands[k:]))
            for n, a in zip(numbers, static.filled(operands[:k])):
                full.insert(n, a)
            return full, {}

        def close(leaves, tree):
            out["tree"] = tree
            return arrays(self._name, leaves, tree, "output")

        return Flat(self.fun, self._name, given, close=close)


class Static(Arguments):
    """The arguments not differentiated; traced values among them are passed as operands."""

    __slots__ = ()

    @classmethod
    def of(cls, values: list) -> tuple[Static, list]:
        """The arguments without the traced values among them, and these."""
        leaves, tree = flatten(values)
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tracer)]
        traced = [leaves[i] for i in places]
        return cls(leaves, tree, places), traced


class Given(Arguments):
    """The arguments of a call: arrays, which rules apply to, and other leaves, kept as is."""

    __slots__ = ("avals",)
    avals: list

    @classmethod
    def of(cls, name: str, given) -> tuple[Given, list]:
        """The arguments without the arrays among them, and these."""
        leaves, tree = flatten(tuple(given))
        places = [i for i, x in enumerate(leaves) if is_array_like(x)]
        shown = tree if len(places) == len(leaves) else flatten([0] * len(places))[1]
        values = arrays(name, [leaves[i] for i in places], shown, "argument")
        known = cls(leaves, tree, places)
        known.avals = [x.aval for x in values]
        return known, values

    def interning_key(self) -> tuple:
        """What is equal for arguments that mean the same, by which programs are recognised."""
        return *super().interning_key(), tuple(self.avals)


class Found(dict):
    """What a call found out about its results: their tree, and that of residuals."""

    def interning_key(self):
        """The tree, from which the rest follows."""
        return self.get("tree")


def is_array_like(x) -> bool:
    if isinstance(x, Ref):  # a ref raises its own error when it is used as an array
        return False
    return isinstance(x, (Array, np.ndarray, np.generic, bool, int, float, complex)) or hasattr(x, "__jax_array__")


def add_trees(x, y):
    (xs, tree), (ys, _) = flatten(x), flatten(y)
    return tree.unflatten([add_any(as_array(a), as_array(b)) for a, b in zip(xs, ys)])


def zeros_like_tree(x):
    leaves, tree = flatten(x)
    return tree.unflatten([zeros(tangent_aval(as_array(a).aval)) for a in leaves])
