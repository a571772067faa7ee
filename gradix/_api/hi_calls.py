"""Traced operations on libraries' values above arrays: functions of arrays with library rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from gradix._api.derivatives.custom_jvp import custom_jvp
from gradix._api.derivatives.custom_vjp import custom_vjp
from gradix._api.derivatives.symbolic_zeros import SymbolicZero
from gradix._api.hi_values import (
    HiValue,
    arrays_of,
    is_above,
    is_value,
    lo_types,
    no_tangents,
    opened,
    tangent_type,
    type_of,
)
from gradix._base.tree import tree_flatten
from gradix._core.array import as_array, typeof
from gradix._core.operators import Array
from gradix._core.trace import Tracer
from gradix._ops.basis import is_differentiable, zeros


def is_traced(leaves) -> bool:
    """Whether any of the values is traced, or made of traced arrays."""
    return any(type(x) is HiValue or isinstance(x, Tracer) or is_value(x) and _holds_traced(x) for x in leaves)


def _holds_traced(x: Any) -> bool:
    """Whether a library's value is made of traced arrays."""
    aval = type_of(x)
    if getattr(aval, "has_qdd", False) or not is_above(aval):
        return False
    return any(isinstance(a, Tracer) for a in arrays_of(aval, x)[1])


def flat_types(leaves) -> list:
    """The types of arrays and of values above them, which say of which arrays these are made."""
    return [opened(x).aval if is_value(x) else typeof(x) for x in leaves]


def parts(x: Any) -> tuple:
    """The arrays that represent a value in a program."""
    if not is_value(x):
        return (as_array(x),)
    node = opened(x)
    return (*node.arrays, *node.carriers)


class Form:
    """How a tree of values is represented by a list of arrays."""

    def __init__(self, leaves, tree):
        self.tree, self.avals = tree, flat_types(leaves)
        self.counts = [len(parts(x)) for x in leaves]

    def nodes(self, arrays) -> list:
        """The values that the arrays represent; values above arrays are nodes."""
        given, out = iter(arrays), []
        for aval, n in zip(self.avals, self.counts):
            own = [next(given) for _ in range(n)]
            if is_above(aval):
                k = len(lo_types(aval))
                out.append(HiValue(aval, own[:k], own[k:]))
            else:
                out += own
        return out

    def values(self, arrays) -> Any:
        """The tree of the values; values above arrays are nodes."""
        return self.tree.unflatten(self.nodes(arrays))

    def perturbed(self, flags) -> Any:
        """The tree of whether a derivative is taken in any of the arrays that represent a value."""
        given = iter(flags)
        return self.tree.unflatten([any(list(itertools.islice(given, n))) for n in self.counts])

    def raised(self, arrays) -> Any:
        """The tree of the values; values above arrays are objects of their library."""
        nodes = self.nodes(arrays)
        return self.tree.unflatten([x.raised() if type(x) is HiValue else x for x in nodes])

    def tangents(self, arrays) -> Any:
        """The tree of the tangents, from arrays of this form that carry them."""
        given, out = iter(arrays), []
        for aval, n in zip(self.avals, self.counts):
            own = [next(given) for _ in range(n)]
            if is_above(aval):
                t, own = tangent_type(aval), own[len(lo_types(aval)) :]
                out.append(HiValue(t, own, no_tangents(t)) if is_above(t) else own[0])
            else:
                out += own
        return self.tree.unflatten(out)

    def carried(self, tangents, empty: Callable) -> list:
        """Arrays of this form that carry a tree of tangents; `empty(aval)` makes the others."""
        leaves = self.tree.flatten_up_to(tangents)
        out: list = []
        for t, aval, n in zip(leaves, self.avals, self.counts):
            if not is_above(aval):
                out.append(empty(aval) if t is None else t)
                continue
            own = [empty(a) for a in lo_types(aval)]
            carriers = lo_types(tangent_type(aval))
            if t is None:
                found = [empty(a) for a in carriers]
            else:
                found = list(opened(t).arrays) if is_value(t) else [t]
            out += [*own, *found[: n - len(own)]]
        return out


def _form(tree_of_values) -> tuple[list, Form]:
    leaves, tree = tree_flatten(tree_of_values, is_leaf=is_value)
    return leaves, Form(leaves, tree)


def called(
    args: tuple, expand: Callable, jvp: Callable | None, vjp: tuple[Callable, Callable] | None, name: str
) -> Any:
    """Call `expand(*args)`, where some of `args` are traced, with derivatives by rules.

    Args:
        args: trees of arrays and of values above arrays.
        jvp: `(primals, tangents) -> (out, tangent)`, on tuples like `args`.
        vjp: `(nzs_in, *args) -> (out, res)` and `(res, ct) -> cts`, a tuple like `args`; `nzs_in` is a tuple
            of whether derivatives are taken, likewise.
    """
    leaves, form = _form(args)
    out: dict = {}

    def lowered(result) -> list:
        """The arrays of the results; stores their form in `out`."""
        found, out["form"] = _form(result)
        return [a for x in found for a in parts(x)]

    def function(*arrays):
        return lowered(expand(*form.raised(arrays)))

    is_plain = not any(map(is_value, leaves))
    if jvp is not None:
        function = _with_jvp(function, form, out, lowered, jvp)
    elif not is_plain:
        function = _with_jvp(function, form, out, lowered, _no_jvp(name))
    if vjp is not None:
        function = _with_vjp(function, form, out, lowered, vjp)
    results = function(*[a for x in leaves for a in parts(x)])
    return out["form"].values(results)


def _with_jvp(function, form: Form, out: dict, lowered: Callable, jvp: Callable) -> Callable:
    ruled = custom_jvp(function)

    @ruled.defjvp
    def rule(primals, tangents):
        value, tangent = jvp(form.values(primals), form.tangents(tangents))
        ys = lowered(value)
        ts = out["form"].carried(tangent, lambda a: None)
        return ys, [_tangent(t, y) for t, y in zip(ts, ys)]

    return ruled


def _tangent(t, y):
    """The tangent of an array in the form that `custom_jvp` takes."""
    aval = as_array(y).aval
    return t if t is not None and is_differentiable(aval) else zeros(aval.to_tangent_aval())


def _with_vjp(function, form: Form, out: dict, lowered: Callable, rules) -> Callable:
    forward, backward = rules
    ruled = custom_vjp(function)

    def fwd(*given):
        value, res = forward(form.perturbed([g.perturbed for g in given]), *form.values([g.value for g in given]))
        return lowered(value), res

    def bwd(res, cts):
        cts = [zeros(ct.aval) if type(ct) is SymbolicZero else ct for ct in cts]
        back = backward(res, out["form"].tangents(cts))
        given = back if isinstance(back, tuple) else (back,)
        return tuple(form.carried(given, lambda a: None))

    ruled.defvjp(fwd, bwd, symbolic_zeros=True)
    return ruled


def _no_jvp(name: str) -> Callable:
    def jvp(primals, tangents):
        raise NotImplementedError(
            f"for jvp support, {name} must implement `jvp`, or `vjp_fwd` and `vjp_bwd_retval` for grad."
        )

    return jvp


def concrete(args: tuple) -> tuple:
    """Untraced arguments, with values above arrays as objects of their library."""
    leaves, tree = tree_flatten(args, is_leaf=is_value)
    return tree.unflatten([x.raised() if type(x) is HiValue else x if is_value(x) else _as_given(x) for x in leaves])


def _as_given(x):
    return x if isinstance(x, Array) else as_array(x)
