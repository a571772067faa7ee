"""Traces the functions given to control flow, and says how their results differ."""

from __future__ import annotations

import functools
from collections.abc import Callable

from gradix._api.arguments import Names, name_of, place_of, signature
from gradix._api.boundary import Flat, around, arrays, positional
from gradix._base import config as _config
from gradix._base.tree import equality_errors, keystr, numbered, tree_flatten_with_path
from gradix._control.program_interning import interned
from gradix._core.array import ArrayImpl
from gradix._core.divisions import entries, sums
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.promotion import promote_pair
from gradix._core.trace import outside
from gradix._ops.collectives import vary
from gradix._ops.convert import convert
from gradix._transforms.staging import hoist, with_refs

_options = _config.state


_ROLES = {"scan": ("carry", "x"), "while_loop": ("carry",), "fori_loop": ("i", "val")}


def called(what: str, function: Callable, *args, roles: tuple[str, ...] | None = None):
    """`function(*args)`; if it takes other arguments, an error says how `what` calls it."""
    try:
        return function(*args)
    except TypeError:
        sig = signature(function)
        if sig is None:
            raise
        try:
            sig.bind(*args)
        except TypeError as e:
            roles = roles or _ROLES.get(what, tuple(f"operand {i}" for i in range(len(args))))
            given = f"({', '.join(roles)})" if args else "no arguments"
            raise TypeError(
                f"{what} calls {described(function)} with {given}, but its arguments are {sig}: {e}. Write "
                f"it with {len(args)} positional argument{'s' * (len(args) != 1)}, and let it close over "
                "further values."
            ) from None
        raise


def flat_body(what: str, function: Callable, tree, finish: Callable | None = None, others: dict | None = None) -> Flat:
    """A function given to control flow, as one of the leaves of `tree`, a tuple of its arguments.

    Args:
        what: the name of the operation that calls it, for errors.
        finish: changes its results before they are flattened.
        others: leaves that are no operands, by number.
    """

    def close(leaves, out_tree):
        return arrays(what, leaves, out_tree, f"the output of {name_of(function)}")

    def finished(*args):
        return finish(called(what, function, *args))

    call = functools.partial(called, what, function) if finish is None else finished
    whole = positional(tree)
    given = around(others, tree.num_leaves, whole) if others else whole.unflatten
    return Flat(call, what, given, close=close, names=Names(function, whole))


def opened_with_refs(traced, order, give_back: bool = True) -> tuple[ClosedJaxpr, list]:
    """A result of `stage_with_refs` as a program of constants, values of refs and arguments."""
    jaxpr, consts, refs = traced
    if refs or order:
        jaxpr, consts = with_refs(jaxpr, consts, refs, order, give_back)
    closed, consts = hoist(jaxpr, consts)
    return interned(closed), consts


def promoted(values, avals, outs) -> list | None:
    """The first values with the dtypes and varying axes the body returns; None if unchanged."""
    out, changed = list(values), False
    for i, (x, a, o) in enumerate(zip(values, avals, outs)):
        if o.vma - a.vma:
            out[i], changed = vary(x, o.vma - a.vma), True
        if a.weak_type and a.dtype != o.dtype and a.shape == o.shape:
            try:
                dtype, _ = promote_pair(a.dtype, True, o.dtype, o.weak_type, _options.jax_enable_x64)
            except (ValueError, TypeError):
                continue
            if dtype != a.dtype:
                out[i], changed = _converted(x, dtype), True
    return out if changed else None


def _converted(x, dtype):
    if type(x) is ArrayImpl:
        with outside():
            return convert(x, dtype)
    return convert(x, dtype)


def described(function) -> str:
    """A function's name, and its file and line."""
    place = place_of(function)
    return f"{name_of(function)} at {place}" if place else name_of(function)


# -- carries ---------------------------------------------------------------------------------------


def check_carry(what: str, name: str, in_tree, in_avals, out_tree, out_avals) -> None:
    """Check that a loop's body returns the type of carry that it takes.

    Args:
        what: "scan" or "while_loop".
        name: the body's name for its carry.

    Raises:
        TypeError: the carries differ; the message names every component that does.
    """
    if in_tree != out_tree:
        raise TypeError(_carry_trees(what, name, in_tree, in_avals, out_tree, out_avals))
    wrong = [i for i, (a, b) in enumerate(zip(in_avals, out_avals)) if _differ(a, b)]
    if wrong:
        raise TypeError(_carry_types(what, name, in_tree, in_avals, out_avals, wrong))


def _carry_trees(what, name, in_tree, in_avals, out_tree, out_avals) -> str:
    lines = []
    for path, one, two, why in equality_errors(in_tree.unflatten(in_avals), out_tree.unflatten(out_avals)):
        lines.append(
            f"the input carry {_component(name, path)} is {_node(one)} but the corresponding component of the "
            f"carry output is {_node(two)}, so {_WHY[why]}"
        )
    return (
        f"{what} body function carry input and carry output must have the same pytree structure, but they "
        f"differ:\n\n{_listed(lines)}\n\nRevise the function so that the carry output has the same pytree "
        f"structure as the carry input: it takes {in_tree} and returns {out_tree}."
    )


_WHY = {
    "type": "their Python types differ",
    "keys": "their keys differ",
    "length": "the lengths do not match",
    "data": "their metadata differs",
}


def _node(description: str) -> str:
    if description == "None":
        return description
    return "an array" if description.startswith("a leaf") else f"a {description}"


def _component(name: str, path) -> str:
    return f"component {name}{keystr(path)}" if path else name


def _carry_types(what, name, tree, in_avals, out_avals, wrong) -> str:
    paths, lines, advice = _paths(tree), [], []
    for i in wrong:
        a, b, place = in_avals[i], out_avals[i], _component(name, paths[i])
        lines.append(
            f"the input carry {place} has type {a.str_short()} but the corresponding output carry "
            f"component has type {b.str_short()}, so {differs(a, b)}"
        )
        advice.append(_advice(a, b, f"{name}{keystr(paths[i])}"))
    return (
        f"{what} body function carry input and carry output must have equal types, but they differ:\n\n"
        f"{_listed(lines)}\n\nRevise the function so that all output types match the corresponding input types: "
        f"{'; '.join(advice)}."
    )


def _differ(a, b) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.vma != b.vma:
        return True
    return a.division is not b.division and _spread(a) != _spread(b)


def _spread(aval) -> tuple:
    """How a type says that values are divided over explicit mesh axes, and summed over them."""
    return entries(aval), sums(aval)


def _advice(a, b, place: str) -> str:
    if a.vma != b.vma and a.shape == b.shape and a.dtype == b.dtype:
        which, more = ("the output", a.vma - b.vma) if a.vma - b.vma else ("the initial", b.vma - a.vma)
        return f"apply lax.pcast(..., {tuple(sorted(map(str, more)))}, to='varying') to {which} value of {place}"
    if _spread(a) != _spread(b) and a.shape == b.shape and a.dtype == b.dtype:
        spec = b.division.spec if b.division is not None else "PartitionSpec()"
        why = "the sums over mesh axes differ" if sums(a) != sums(b) else "the two are divided differently"
        return f"start {place} with gradix.sharding.reshard(..., {spec}), as {why}"
    if a.shape != b.shape:
        return f"keep {place} of shape {a.shape} (for example with an array of fixed size and `.at[i].set`)"
    return f"return {place}.astype({a.dtype}), or start the carry with dtype {b.dtype}"


def differs(a, b) -> str:
    if a.shape != b.shape and a.dtype != b.dtype:
        return "the shapes and the dtypes do not match"
    if a.shape == b.shape and a.dtype == b.dtype:
        return "the manual axis types do not match" if a.vma != b.vma else "the shardings do not match"
    return "the shapes do not match" if a.shape != b.shape else "the dtypes do not match"


def _paths(tree) -> list:
    return [path for path, _ in tree_flatten_with_path(numbered(tree))[0]]


def _listed(lines) -> str:
    if len(lines) == 1:
        return f"{lines[0][0].upper()}{lines[0][1:]}."
    return ";\n".join(f"  * {line}" for line in lines) + "."


# -- branches --------------------------------------------------------------------------------------


def check_branches(what: str, names, functions, trees, avals) -> None:
    """Check that branches return equal trees and types.

    Raises:
        TypeError: they differ; the message names every result that does.
    """
    for k in range(1, len(functions)):
        pair = f"{names[0]} is {described(functions[0])}\n{names[k]} is {described(functions[k])}"
        revise = f"Revise {names[0]} and/or {names[k]} so that"
        if trees[k] != trees[0]:
            differences = equality_errors(trees[0].unflatten(avals[0]), trees[k].unflatten(avals[k]))
            lines = [
                f"{names[0]} output{_at(path)} is {_node(one)} but {names[k]} output{_at(path)} is {_node(two)}, "
                f"so {_WHY[why]}"
                for path, one, two, why in differences
            ]
            raise TypeError(
                f"{what} branch outputs must have the same pytree structure, but they differ:\n\n{pair}\n\n"
                f"{_plain(lines)}\n\n{revise} they have the same pytree structure."
            )
        wrong = [i for i, (a, b) in enumerate(zip(avals[0], avals[k])) if _differ(a, b)]
        if wrong:
            paths = _paths(trees[0])
            lines = [
                f"the output of {names[0]}{_at(paths[i])} has type {avals[0][i].str_short()} but the "
                f"corresponding output of {names[k]} has type {avals[k][i].str_short()}, so "
                f"{differs(avals[0][i], avals[k][i])}"
                for i in wrong
            ]
            varying = any(a.vma != b.vma for a, b in zip(avals[0], avals[k]))
            hint = (
                " Make a value varying with lax.pcast(value, axes, to='varying')."
                if varying
                else (" Convert Python numbers with jnp.asarray(value, dtype), and arrays with .astype(dtype).")
            )
            raise TypeError(
                f"{what} branches must have equal output types but they "
                f"differ.\n\n{pair}\n\n{_listed(lines)}\n\n"
                f"{revise} all output types match.{hint}"
            )


def _at(path) -> str:
    return f" at path {keystr(path)}" if path else ""


def _plain(lines) -> str:
    return f"{lines[0]}." if len(lines) == 1 else _listed(lines)
