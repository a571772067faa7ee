"""Containers that libraries define for `vmap`: how an example is taken out of a batch, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gradix._base.tree import flatten_axes, tree_flatten as flatten
from gradix._core.array import as_array
from gradix._core.library_values import axes_of_containers as specs, containers
from gradix._core.trace import state
from gradix._ops.creation import iota
from gradix._transforms.batch import AxisData, BatchTracer, batch, batch_of, example_of


class Container(NamedTuple):
    """How `vmap` maps over a class.

    The functions are `to_elt(cont, get_index, many, spec)` and `from_elt(cont, axis_size, one,
    spec)`. They call `cont` for each array: in `to_elt`, `cont(array, axis)` turns the array of all
    examples into that of one example, and in `from_elt`, `cont(axis_size, array, axis)` the reverse.
    """

    spec: type
    axis_size: type
    to_elt: Callable
    from_elt: Callable
    make_iota: Callable | None


def register(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable,
    from_elt: Callable,
    make_iota: Callable | None,
) -> None:
    if data_type in containers:
        raise ValueError(
            f"{data_type.__name__} is registered for vmap already: unregister_vmappable({data_type.__name__}) first."
        )
    containers[data_type] = Container(spec_type, axis_size_type, to_elt, from_elt, make_iota)
    specs.add(spec_type)


def unregister(data_type: type) -> None:
    del containers[data_type]
    specs.clear()
    specs.update(c.spec for c in containers.values())


def is_container(x) -> bool:
    return type(x) in containers


def are_met(fun: Callable, args, kwargs, in_axes, out_axes) -> bool:
    """Whether the arguments or axes of a mapped call hold containers.

    If a class is mapped by numbers, each call may return its instances.
    """
    if getattr(fun, "has_open_containers", False):
        return False
    given = flatten((args, kwargs, in_axes, out_axes), lambda x: is_container(x) or type(x) in specs)[0]
    return any(is_container(x) or type(x) in specs for x in given)


def mapped(vmap: Callable, fun: Callable, in_axes, out_axes, options: dict, *, args, kwargs) -> Any:
    """Call `fun` mapped, where arguments or results are containers; `vmap` maps their arrays."""
    leaves, tree = flatten((args, kwargs), is_container)
    axes = flatten_axes("vmap in_axes", tree, (in_axes, 0))
    _check(leaves, axes, "in_axes")
    arrays: list = []
    places: list = []

    def spread(x, axis):
        arrays.append(x)
        places.append(axis)
        return x

    def spread_all():
        trace = state.mapped
        for x, axis in zip(leaves, axes):
            if is_container(x) and axis is not None:
                containers[type(x)].to_elt(
                    lambda x, axis: example_of(trace, as_array(spread(x, axis)), axis), _no_index, x, axis
                )
            elif not is_container(x):
                spread(x, axis)
        return []

    batch(spread_all, AxisData(options["axis_name"], None), [], [])
    size, chunk = options.pop("axis_size"), options["chunk_size"]
    if size is None:
        size = next((as_array(x).shape[a] for x, a in zip(arrays, places) if isinstance(a, int)), None)
    form: list = []
    made: dict = {}
    axes_of_results: list = []

    def flat(index, given):
        rest = iter(given)
        ones = [
            next(rest)
            if not is_container(x)
            else x
            if axis is None
            else containers[type(x)].to_elt(lambda x, axis: next(rest), lambda: index, x, axis)
            for x, axis in zip(leaves, axes)
        ]
        args, kwargs = tree.unflatten(ones)
        outs, out_tree = flatten(fun(*args, **kwargs), is_container)
        wanted = flatten_axes("vmap out_axes", out_tree, out_axes)
        _check(outs, wanted, "out_axes")
        found: list = []
        axes_of_results.clear()
        # Where examples are mapped at once, rules get the arrays of all; else the rule is called twice.
        trace = index._trace if chunk is None and type(index) is BatchTracer else None
        made.clear()
        for i, (x, axis) in enumerate(zip(outs, wanted)):
            if not is_container(x):
                found.append(x)
                axes_of_results.append(axis)
            elif axis is not None and trace is not None:
                made[i] = containers[type(x)].from_elt(lambda _, x, axis: batch_of(trace, x, axis), size, x, axis)
            elif axis is not None:
                containers[type(x)].from_elt(
                    lambda size, x, axis: (found.append(x), axes_of_results.append(axis), x)[2], size, x, axis
                )
        form[:] = outs, out_tree, wanted
        return found

    flat.has_open_containers = True  # type: ignore[attr-defined]
    counts = iota(as_array(0).dtype, size) if size is not None else None
    results = iter(
        vmap(flat, (None if counts is None else 0, places), axes_of_results, axis_size=size, **options)(counts, arrays)
    )
    outs, out_tree, wanted = form
    return out_tree.unflatten(
        [
            made[i]
            if i in made
            else next(results)
            if not is_container(x)
            else x
            if axis is None
            else containers[type(x)].from_elt(lambda size, x, axis: next(results), size, x, axis)
            for i, (x, axis) in enumerate(zip(outs, wanted))
        ]
    )


def _check(leaves, axes, name: str) -> None:
    for x, axis in zip(leaves, axes):
        spec = containers[type(x)].spec if is_container(x) else None
        fits = isinstance(axis, spec) if spec else type(axis) is int or type(axis) not in specs
        if axis is not None and not fits:
            raise ValueError(
                f"vmap {name} has {axis!r} for a {type(x).__name__}, which is mapped by "
                f"{f'an instance of {spec.__name__}' if spec else 'the number of an axis'}, or None."
            )


def _no_index():
    """The example index while arrays are collected, before any example is taken."""
    return as_array(0)
