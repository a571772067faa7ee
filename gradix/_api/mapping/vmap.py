"""`vmap`: makes a function of one example a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradix._api.arguments import argument_names, check_callable, leaf_names, name_of, named_as, signature
from gradix._api.boundary import Flat, arrays, has_holders
from gradix._api.refs import Lent
from gradix._base.lazy import lazy_module
from gradix._base.tracebacks import filter_frames
from gradix._base.tree import flatten_axes, keystr, numbered, tree_flatten as flatten, tree_flatten_with_path
from gradix._core import library_values
from gradix._core.array import as_array, typeof
from gradix._core.aval import seen
from gradix._core.divisions import tracked_axes
from gradix._core.named_sharding import axes_of
from gradix._core.operators import Array
from gradix._core.refs import Ref
from gradix._core.trace import NeedsProgram
from gradix._ops.basis import move_axis, to_axis
from gradix._transforms.batch import AxisData, batch, divided_along
from gradix._transforms.jvp import called

T = TypeVar("T")
P = ParamSpec("P")

_chunks = lazy_module("gradix._api.mapping.chunks")
containers = lazy_module("gradix._api.mapping.containers")
counted = lazy_module("gradix._api.counted.mapping")

_NOTHING = nullcontext()
handed_on = library_values.handed_on


def vmap(
    fun: Callable[P, T],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    sum_match: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, T]:
    """`fun` mapped over an axis of its arguments.

    Args:
        fun: a function of one example.
        in_axes: which axis of each positional argument to map: an int (negative counts from the
            end), None for an argument that all examples share, or a tree prefix of the tuple of
            arguments. Keyword arguments map over axis 0. A dict gives the axes by the names of
            arguments, however these are passed; other arguments map over axis 0. Leaves that are
            not arrays (strings, functions) are passed on unchanged.
        out_axes: the position of the batch axis in each result, as a tree prefix of the result;
            None for a result that does not depend on the example.
        axis_name: a name of the axis for collectives such as `lax.psum`.
        axis_size: the number of examples; it is needed if no argument is mapped.
        spmd_axis_name: the mesh axis, or axes, over which examples are divided by sharding
            constraints and `shard_map` inside.
        sum_match: accepted for compatibility; results that do not depend on the example are not
            summed.
        chunk_size: the number of examples computed at a time, to save memory, also in derivatives.

    Returns:
        A function of batches, whose results have one more axis than those of `fun`.

    Raises:
        TypeError: `in_axes` or `out_axes` holds something other than ints and None.
        ValueError: the mapped sizes differ, an axis is out of range, or nothing is mapped; the
            message says where.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
        Array([2., 2., 2.], dtype=float32)
        >>> gradix.vmap(gradix.grad(lambda w, x: (w * x) ** 2), (None, 0))(2.0, jnp.arange(3.0))
        Array([ 0.,  4., 16.], dtype=float32, weak_type=True)

    See also:
        `lax.map`, which runs one example after the other; `jnp.vectorize`, `gradix.shard_map`,
        `gradix.jit`.
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (
        in_axes is None or isinstance(in_axes, (int, tuple, dict)) or hasattr(in_axes, "__index__") or _is_spec(in_axes)
    ):
        raise TypeError(
            f"vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
            f"arguments passed to the function, but got {in_axes!r} of type {type(in_axes).__name__}."
        )
    _check_entries("in_axes", in_axes)
    _check_entries("out_axes", out_axes)
    chunk = None if chunk_size is None else _chunks.check_chunk_size("vmap", chunk_size)
    if chunk is not None and axis_name is not None:
        raise ValueError(
            f"vmap cannot map over the named axis {axis_name!r} with chunk_size={chunk}: collectives "
            "need all examples at once. Leave out one of the two."
        )

    @named_as(fun)
    def vmap_f(*args, **kwargs):
        try:
            if library_values.containers and containers.are_met(fun, args, kwargs, in_axes, out_axes):
                options = {
                    "axis_name": axis_name,
                    "axis_size": axis_size,
                    "spmd_axis_name": spmd_axis_name,
                    "chunk_size": chunk_size,
                }
                return containers.mapped(vmap, fun, in_axes, out_axes, options, args=args, kwargs=kwargs)
            if isinstance(in_axes, tuple) and len(in_axes) != len(args):
                raise ValueError(
                    "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
                    f"arguments passed to the function, but got {len(in_axes)} entries in in_axes={in_axes} "
                    f"for {len(args)} positional arguments of {name_of(fun)}."
                )
            leaves, tree = flatten((args, kwargs))
            by_name = isinstance(in_axes, dict)
            if type(in_axes) is int and (in_axes == 0 or not kwargs):
                axes = [in_axes] * len(leaves)
            else:
                wanted_axes = _by_name(fun, in_axes, args, kwargs) if by_name else (in_axes, 0)
                axes = flatten_axes("vmap in_axes", tree, wanted_axes, not by_name)
            axes = [
                a if a is None or isinstance(x, Array) or not _is_no_array(x) else None for x, a in zip(leaves, axes)
            ]
            if seen.counts is not None:
                counted.check_axes(fun, (args, kwargs), axes)
            lent = _lent(fun, leaves, axes) if has_holders(leaves) else None
            if lent is not None:
                leaves, axes = lent.open(leaves), lent.spread(axes)
            shared = [i for i, a in enumerate(axes) if a is None]
            leaves = arrays("vmap", leaves, tree, "argument ", shared)
            axes = [_normalised(x, a, fun, args, kwargs, i) for i, (x, a) in enumerate(zip(leaves, axes))]
            size = _size(fun, leaves, axes, axis_size, args, kwargs)
            divided = _division(fun, leaves, axes, spmd_axis_name) if seen.meshes else None
            found: list = []

            def close(ys, out_tree):
                found[:] = ys  # an unbatched Python number is returned unchanged
                if handed_on:
                    ys = [0 if type(y) in handed_on else y for y in ys]
                return arrays(f"vmap of {name_of(fun)}", ys, out_tree, "output")

            given = tree.unflatten
            if seen.counts is not None:

                def given(operands):
                    return counted.rows_opened(tree.unflatten(operands))

            flat = Flat(fun, name_of(fun), given, close=close, lent=lent)
            axis = AxisData(axis_name, size, spmd_axis_name, divided)
            sizes = None
            with lent or _NOTHING:
                if chunk is None:
                    try:
                        vals, got = batch(flat, axis, leaves, axes, named=True)
                    except NeedsProgram:
                        if lent is not None:
                            raise counted.no_refs(fun) from None
                        vals, got, sizes = counted.batch_whole(flat, axis, leaves, axes)
                else:
                    vals, got = _chunks.batch_in_chunks(flat, axis, leaves, axes, chunk)
            if lent is not None:
                n = len(lent.places)
                last = zip(vals, got, [axes[i] for i in lent.places])
                vals = lent.close([_placed(fun, v, g, a, size) for v, g, a in last] + vals[n:])
                got = got[n:]
            if type(out_axes) is int:
                wanted = [out_axes] * len(got)
            else:
                wanted = flatten_axes("vmap out_axes", flat.out_tree, out_axes)
            if sizes:
                return counted.results(fun, flat.out_tree, vals, sizes, wanted)
            for i, (a, w) in enumerate(zip(got, wanted)):
                if w is None and a is not None:
                    raise _mapped_result(fun, flat.out_tree, i, vals[i], a)

            def placed(*vals):
                outs = [_placed(fun, v, a, w, size) for v, a, w in zip(vals, got, wanted)]
                if divided is None:
                    return outs
                return [divided_along(o, w, divided) for o, w in zip(outs, wanted)]

            results = [
                g if a is w is None and not isinstance(g, Array) or type(g) in handed_on else r
                for r, a, w, g in zip(called(placed, vals, "vmap", True), got, wanted, found)
            ]
            return flat.out_tree.unflatten(results)
        except Exception as error:
            filter_frames(error)
            raise

    return vmap_f


def _lent(fun, leaves, axes) -> Lent | None:
    """The mapped refs among the leaves of arguments, of which each example gets its row."""
    mapped = [a is not None and isinstance(x, Ref) for x, a in zip(leaves, axes)]
    return Lent(name_of(fun), leaves, mapped) if any(mapped) else None


def _by_name(fun, in_axes: dict, args, kwargs) -> tuple:
    """Axes given by the names of arguments, as a tree prefix of `(args, kwargs)`."""
    names = [n.partition("[")[0] for n in argument_names(fun, len(args))]
    sig = signature(fun)
    known = {*names, *kwargs, *(sig.parameters if sig is not None else ())}
    unknown = [n for n in in_axes if n not in known]
    if unknown:
        raise TypeError(
            f"vmap in_axes={in_axes!r} names {', '.join(map(repr, unknown))}, but {name_of(fun)} has the "
            f"arguments {', '.join(sorted(known)) or 'none'}."
        )
    return tuple([in_axes.get(n, 0) for n in names]), {k: in_axes.get(k, 0) for k in kwargs}


def _is_no_array(x) -> bool:
    """Whether a leaf is neither array nor number, so that it is passed on unchanged."""
    if isinstance(x, (Array, Ref, np.ndarray, np.generic, int, float, complex)):
        return False
    try:
        as_array(x)
    except TypeError:
        return not hasattr(x, "__array__")
    return False


def _is_spec(axis) -> bool:
    """Whether an axis is a specification for a container that a library defines."""
    return type(axis) in library_values.axes_of_containers


def _check_entries(name: str, axes) -> None:
    if type(axes) is int:
        return
    leaves = flatten(axes, lambda x: x is None)[0]
    bad = [
        a
        for a in leaves
        if a is not None
        and (isinstance(a, bool) or not hasattr(a, "__index__") or bool(getattr(a, "ndim", False)))
        and not _is_spec(a)
    ]
    if bad:
        raise TypeError(
            f"vmap {name} must be an int, None, or (nested) container with those types as leaves, but got "
            f"{axes!r}: {bad[0]!r} is of type {type(bad[0]).__name__}."
        )


def _normalised(x: Array, axis, fun, args, kwargs, index):
    if axis is None:
        return None
    ndim = x.aval.ndim
    axis = axis.__index__()
    if not -ndim <= axis < ndim:
        name = _names(fun, args, kwargs)[index]
        if not ndim:
            raise ValueError(
                f"vmap was requested to map its argument along axis {axis}, which implies that its rank "
                f"should be at least {axis + 1 if axis >= 0 else -axis}, but is only 0: argument {name} "
                f"of {name_of(fun)} has shape (). Give it in_axes=None to share it among all examples."
            )
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its rank "
            f"should be at least {axis + 1 if axis >= 0 else -axis}, but is only {ndim}: argument {name} "
            f"of {name_of(fun)} has shape {x.aval.shape}."
        )
    return axis % ndim


def _names(fun, args, kwargs) -> list[str]:
    out = []
    for n, a in zip(argument_names(fun, len(args)), args):
        out += leaf_names(n, a)
    for k in sorted(kwargs):
        out += leaf_names(k, kwargs[k])
    return out


def _size(fun, leaves, axes, axis_size, args, kwargs) -> int:
    sizes = {x.aval.shape[a] for x, a in zip(leaves, axes) if a is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes, or axis_size; nothing is mapped in "
            f"the call of {name_of(fun)} with {len(leaves)} array arguments."
        )
    rows = [
        (n, str(x.aval), a, x.aval.shape[a])
        for n, x, a in zip(_names(fun, args, kwargs), leaves, axes)
        if a is not None
    ]
    width = max(len(r[0]) for r in rows)
    table = "\n".join(f"  {n:<{width}}  {t}  axis {a}: size {s}" for n, t, a, s in rows)
    asked = f"\n  axis_size={axis_size}" if axis_size is not None else ""
    raise ValueError(
        "vmap got inconsistent sizes for array axes to be mapped, in the call of "
        f"{name_of(fun)}:\n{table}{asked}\n"
        "All mapped axes must have the same size; share an argument among the examples with in_axes=None."
    )


def _mapped_result(fun, tree, index: int, value, axis: int) -> ValueError:
    """The error for a result that depends on the example but has None as its axis in `out_axes`."""
    path = keystr(tree_flatten_with_path(numbered(tree))[0][index][0])
    return ValueError(
        f"at vmap out_axes{path}, got axis spec None but output was batched on axis {axis}: "
        f"out_axes is None for the result{path} of {name_of(fun)}, of shape {typeof(value).shape}, "
        "which depends on the mapped argument. Give it an axis, such as out_axes=0."
    )


def _division(fun, leaves, axes, spmd_axis_name) -> tuple | None:
    """The mesh and the entry of the mapped axis, if it is divided over explicit mesh axes.

    Raises:
        ValueError: arguments are divided differently along it, or in another way than `spmd_axis_name` says.
    """
    mapped = [(getattr(typeof(x), "division", None), a) for x, a in zip(leaves, axes) if a is not None]
    rows = [None if division is None else division.spec[a] for division, a in mapped]
    if all(entry is None for entry in rows):
        return None
    for entry in rows:
        if entry != rows[0]:
            raise ValueError(
                f"vmap of {name_of(fun)}: the mapped axes of the arguments are divided differently, over {rows[0]!r} "
                f"and over {entry!r}. Reshard one of them with gradix.sharding.reshard(x, PartitionSpec(...))."
            )
    mesh = next(division.mesh for division, _ in mapped if division is not None)
    if spmd_axis_name is not None and not _is_entry(spmd_axis_name, rows[0], mesh):
        raise ValueError(
            f"vmap of {name_of(fun)}: spmd_axis_name={spmd_axis_name!r} contradicts the type of an argument, whose "
            f"mapped axis is divided over {rows[0]!r}. Leave spmd_axis_name out: the types say how it is divided."
        )
    return mesh, rows[0]


def _is_entry(name, entry, mesh) -> bool:
    """Whether a mesh axis, or a tuple of them, is what types name for an axis divided over it."""
    tracked = tracked_axes(mesh, mesh.explicit_axes)
    return axes_of(entry) in (axes_of(name), tuple([a for a in axes_of(name) if a in tracked]))


def _placed(fun, value, axis, wanted, size):
    if wanted is None or (axis == wanted and type(wanted) is int):
        return value
    ndim = typeof(value).ndim + (axis is None)
    place = wanted.__index__()
    if not -ndim <= place < ndim:
        raise ValueError(
            f"vmap out_axes={place} is out of range for a result of {name_of(fun)} with {ndim} axes, "
            "including the mapped one."
        )
    place %= ndim
    return to_axis(size, value, None, place) if axis is None else move_axis(value, axis, place)
