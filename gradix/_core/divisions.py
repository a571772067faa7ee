"""The division of arrays over explicit mesh axes in types, and rules that most operations share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from gradix._base import config as _config
from gradix._base.errors import ShardingTypeError as ShardingTypeError
from gradix._core.aval import Reduced, Unreduced, joined, located, seen, unreduced_axes
from gradix._core.mesh import AbstractMesh, AxisType, BaseMesh, Mesh
from gradix._core.named_sharding import NamedSharding, axes_of
from gradix._core.sharding import PartitionSpec, Sharding

_options = _config.state

# an entry for each axis of an array: None, the name of a mesh axis, or a tuple of names
Entries = tuple


def entries(aval) -> Entries:
    """The entries of a type: the explicit mesh axes over which each array axis is divided."""
    return (None,) * aval.ndim if aval.division is None else tuple(aval.division.spec)


class Sums(NamedTuple):
    """The explicit mesh axes over which a value is unreduced, and those over which it is reduced.

    A value is unreduced over an axis if it is still to be summed over it; it is reduced if its
    cotangent will be unreduced.
    """

    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()


NO_SUMS = Sums()


def sums(aval) -> Sums:
    """The explicit mesh axes over which an array is unreduced or reduced."""
    if aval.division is None:
        return NO_SUMS
    return Sums(aval.division.spec.unreduced, aval.division.spec.reduced)


def division(mesh: BaseMesh, row: Sequence, left: Sums = NO_SUMS) -> NamedSharding | None:
    """The sharding in a type for entries on a mesh; None if nothing is divided or summed."""
    if left == NO_SUMS and all(e is None for e in row):
        return None
    spec = PartitionSpec(*row, unreduced=left.unreduced, reduced=left.reduced)
    return NamedSharding(mesh.abstract_mesh, spec)


def of_cotangent(given: NamedSharding | None) -> NamedSharding | None:
    """The division of cotangents: axes that are reduced become unreduced, and the reverse."""
    if given is None or not (given.spec.unreduced or given.spec.reduced):
        return given
    return given.update(spec=given.spec.to_ct_spec())


def cotangent_aval(aval):
    """The type of cotangents of values of a type, as regards mesh axes."""
    division, vma = of_cotangent(aval.division), aval.vma
    if vma:  # each device has a summand of the cotangent of a reduced value
        other: dict = {Reduced: Unreduced, Unreduced: Reduced}
        vma = frozenset([other[type(a)](a.axis) if type(a) in other else a for a in vma])
    if division is aval.division and vma == aval.vma:
        return aval
    return located(aval.plain, aval.place, vma=vma, division=division)


def sums_kept(prim, mesh: BaseMesh, avals) -> Sums:
    """The axes over which the results of an operation on unreduced or reduced operands are so, too.

    Raises:
        ShardingTypeError: operands differ, so their result cannot be summed later.
        NotImplementedError: an operand is unreduced, and the operation does not commute with sums.
    """
    values = [a for a in avals if a.dtype.kind not in "biu"] or list(avals)
    shown = ", ".join([a.str_short() for a in avals])
    way_out = "with gradix.sharding.reshard(x, PartitionSpec(...))."
    kind = _way_of_sums(prim)
    unreduced = frozenset().union(*[sums(a).unreduced for a in values])
    reduced = frozenset().union(*[sums(a).reduced for a in values])
    # A number is the same on all devices, and multiplies every part.
    others = [a for a in values if a.ndim or a.division is not None]
    if unreduced and kind in ("product", "quotient"):
        held = [a for a in values if sums(a).unreduced]
        fits = len(held) == 1 and (kind == "product" or sums(values[0]).unreduced)
        if not fits or any(sums(a).reduced != unreduced for a in others if a is not held[0]):
            raise ShardingTypeError(
                f"{prim.name} of a value that is still to be summed over {_listed(unreduced)}: the other operand "
                f"must be reduced along the same axes. Got {shown}. Sum it first, {way_out}"
            )
        return Sums(unreduced)
    found = [sums(a) for a in (values if unreduced else others)]
    if unreduced and kind != "kept":
        raise NotImplementedError(
            f"unreduced rule for {prim.name} is not implemented: {shown} is still to be summed over "
            f"{_listed(unreduced)}, and {prim.name} of parts is not a part of {prim.name}. Sum it first, {way_out}"
        )
    if any(s.unreduced != unreduced for s in found):
        raise ShardingTypeError(
            f"{prim.name}: one operand is unreduced over {_listed(unreduced)} while another is not, so that the "
            f"result would be summed too often. Got {shown}. Give them the same sharding, {way_out}"
        )
    if any(s.reduced != reduced for s in found) or any(reduced & set(names_in(entries(a))) for a in others):
        raise ShardingTypeError(
            f"{prim.name}: inputs cannot be divided or replicated on the same axes that another input is reduced "
            f"on, {_listed(reduced)}. Got {shown}. Give them the same sharding, {way_out}"
        )
    return Sums(unreduced, reduced)


def _way_of_sums(prim) -> str:
    """How an operation treats values that are still to be summed, as `MeshTraits.sums` says."""
    return prim.mesh.sums or ("kept" if prim.live == "moves" else "")


_LINEAR = {"": "", "kept": "all", "product": "one", "quotient": "first"}


def alike_with_summands(prim, avals, needed: frozenset) -> list[frozenset]:
    """The manual axes and marks that operands must have, where one is still to be summed over some.

    Factors of summands become reduced: each device has a summand of their cotangents. To summands, equal
    values are added once.

    Args:
        prim: the operation.
        avals: the types of its operands.
        needed: the axes over which the operation needs operands that vary.

    Raises:
        ShardingTypeError: another operand varies over these axes.
        NotImplementedError: the operation does not commute with sums.
    """
    whole = joined([needed, *[a.vma for a in avals]])
    over = unreduced_axes(whole)
    shown = ", ".join([a.str_short() for a in avals])
    way_out = "Sum it first, with gradix.lax.psum or gradix.lax.psum_scatter."
    kind = prim.mesh.linear or _LINEAR[_way_of_sums(prim)]
    places = [i for i, a in enumerate(avals) if a.dtype.kind not in "biu"] or [*range(len(avals))]
    held = [i for i, a in enumerate(avals) if unreduced_axes(a.vma)]
    free = {"all": places, "one": held[:1], "first": [0], "last": [len(avals) - 1]}.get(kind, [])
    if not set(held) <= set(free):
        why = f"{prim.name} of parts is not a part of {prim.name}"
        why = "only one factor can be so" if kind == "one" else f"only the {kind} operand can be so" if free else why
        raise NotImplementedError(
            f"unreduced rule for {prim.name} is not implemented: {shown} is still to be summed over {_listed(over)}, "
            f"and {why}. {way_out}"
        )
    if needed & over or any(a.vma & over for a in avals):
        raise ShardingTypeError(
            f"{prim.name}: one operand is still to be summed over {_listed(over)} while another varies over it, so "
            f"that the parts of the result would be no summands of a value. Got {shown}. {way_out} Or say that the "
            "other is a summand, too: gradix.lax.pcast(x, ..., to='unreduced')."
        )
    rest = whole.difference(map(Unreduced, over))
    as_summand, as_factor = rest.union(map(Unreduced, over)), rest.union(map(Reduced, over))
    return [as_summand if i in free else as_factor for i in range(len(avals))]


def _listed(names) -> str:
    return ", ".join(sorted(map(repr, names)))


def tracked_axes(mesh: BaseMesh, axes) -> frozenset:
    """The axes of a mesh that types name, among `axes`: by an option only those of more than one device."""
    if not _options.jax_remove_size_one_mesh_axis_from_type:
        return frozenset(axes)
    return frozenset([a for a in axes if mesh.shape[a] != 1])


def explicit_part(sharding: Sharding | None, ndim: int) -> NamedSharding | None:
    """The division in the type of an array with this sharding: only over `Explicit` mesh axes."""
    mesh: Any = getattr(sharding, "mesh", None)
    if mesh is None or AxisType.Explicit not in mesh.axis_types:
        return None
    named, spec = tracked_axes(mesh, mesh.explicit_axes), sharding.spec  # type: ignore[union-attr]
    row = [_entry([a for a in axes_of(p) if a in named]) for p in spec]
    left = Sums(spec.unreduced & named, spec.reduced & named)
    return division(mesh, [*row, *[None] * (ndim - len(row))], left)


seen.explicit_part = explicit_part


def sharding_of_type(x) -> Sharding | None:
    """The sharding that the description of an array names, on devices; None without one.

    An `AbstractMesh` stands for the mesh in force, if that is like it.
    """
    given, mesh = getattr(x, "sharding", None), _options.gradix_mesh
    if not isinstance(given, Sharding):
        return None
    if not isinstance(getattr(given, "mesh", None), AbstractMesh):
        return given
    if not isinstance(mesh, Mesh) or mesh.shape_tuple != given.mesh.shape_tuple:  # type: ignore[attr-defined]
        return None
    return NamedSharding(mesh, given.spec)  # type: ignore[attr-defined]


def explicit_entries(sharding, ndim: int) -> Entries:
    """The entries of `explicit_part`."""
    part = explicit_part(sharding, ndim)
    return (None,) * ndim if part is None else tuple(part.spec)


def names_in(row) -> list:
    """The list of mesh axes that entries name, with repetitions."""
    return [n for e in row for n in axes_of(e)]


def _entry(names):
    return None if not names else names[0] if len(names) == 1 else tuple(names)


def without_axis(aval, axis: int):
    """The type of an array with one axis removed."""
    found = aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])
    if aval.division is None:
        return found
    row = entries(aval)
    return located(
        found.plain, vma=found.vma, division=division(aval.division.mesh, row[:axis] + row[axis + 1 :], sums(aval))
    )


def with_axis(aval, size, axis: int):
    """The type of an array with a new axis."""
    found = aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))
    if aval.division is None:
        return found
    row = entries(aval)
    return located(
        found.plain, vma=found.vma, division=division(aval.division.mesh, (*row[:axis], None, *row[axis:]), sums(aval))
    )


def mesh_of(avals) -> BaseMesh | None:
    """The mesh over which operands are divided; None if none is divided.

    Raises:
        ValueError: operands are divided over two meshes.
    """
    found = None
    for a in avals:
        if a.division is not None:
            mesh = a.division.mesh
            if found is not None and mesh != found:
                raise ValueError(
                    f"Sharding mesh of one operand does not match that of another: {found} and {mesh}. "
                    "Move them to one mesh with reshard or device_put."
                )
            found = mesh
    return found


def size_of(mesh: BaseMesh, entry) -> int:
    """The number of parts into which an entry divides an axis."""
    sizes = mesh.shape
    return prod([sizes[a] for a in axes_of(entry)])


def merged(name: str, avals, shape) -> Entries:
    """The entries of an elementwise result: those of the operands, which must agree on each axis.

    Raises:
        ShardingTypeError: operands disagree, or one mesh axis would divide two axes.
    """
    out: list = [None] * len(shape)
    for a in avals:
        if a.division is None:
            continue
        for i, e in enumerate(a.division.spec):
            if e is not None:
                if out[i] is not None and out[i] != e:
                    raise _disagreement(name, avals)
                out[i] = e
    used = names_in(out)
    if len(set(used)) != len(used):
        raise _disagreement(name, avals)
    return tuple(out)


def _disagreement(name: str, avals) -> ShardingTypeError:
    given = ", ".join([str(entries(a)) for a in avals if a.ndim])
    return ShardingTypeError(
        f"{name} got incompatible shardings for broadcasting: {given}. Give the operands the same "
        "sharding with gradix.sharding.reshard(x, PartitionSpec(...))."
    )


def undivided(name: str, aval, axes, what: str) -> Entries:
    """The entries of an operand that must not be divided along `axes`.

    Raises:
        ShardingTypeError: it is divided along one of them.
    """
    row = entries(aval)
    if any(row[i] is not None for i in axes):
        raise ShardingTypeError(
            f"{name} takes operands that are undivided over {what}; got one of type "
            f"{aval.str_short()}, axes {tuple(axes)}. Reshard it with "
            "gradix.sharding.reshard(x, PartitionSpec(...)), or let the compiler divide it inside of "
            "gradix.sharding.auto_axes."
        )
    return row


def resized(name: str, aval, sizes, mesh: BaseMesh) -> Entries:
    """The entries of an operand whose axes get new sizes; these must be divisible in the same way.

    Raises:
        ShardingTypeError: a new size is not divisible.
    """
    row = entries(aval)
    for i, (e, before, after) in enumerate(zip(row, aval.shape, sizes)):
        if e is not None and before != after and after % size_of(mesh, e):
            raise ShardingTypeError(
                f"{name} on sharded dims where out dim ({after}) is not divisible by mesh axes "
                f"({size_of(mesh, e)}) with spec ({e}) is not implemented: axis {i} of "
                f"{aval.str_short()}. Reshard it first with "
                "gradix.sharding.reshard(x, PartitionSpec(...))."
            )
    return row


def stacked(avals, lead: int, name: str) -> Entries:
    """The entries of the leading axes of stacks of matrices or vectors, whose axes are whole."""
    for a in avals:
        undivided(name, a, range(lead, a.ndim), "the axes of the matrices or vectors")
    return merged(name, [a for a in avals if a.division is not None], avals[0].shape)[:lead]


def reshaped(aval, sizes, mesh: BaseMesh) -> Entries:
    """The entries of an array after a reshape, which must follow from those before.

    Raises:
        ShardingTypeError: they do not follow.
    """
    row, shape = entries(aval), aval.shape
    out: list = [None] * len(sizes)
    for old, new in _blocks(shape, sizes):
        held = [i for i in old if row[i] is not None]
        if not held:
            continue
        wide_old, wide_new = [i for i in old if shape[i] != 1], [i for i in new if sizes[i] != 1]
        if len(wide_old) == len(wide_new) == 1 and held == wide_old:
            out[wide_new[0]] = row[held[0]]
        elif not wide_old and len(held) == 1 and len(new) >= 1:
            out[new[0]] = row[held[0]]
        elif len(wide_old) == 1 and _split(row[held[0]], [sizes[i] for i in wide_new], wide_new, mesh, out):
            continue
        elif len(wide_new) == 1 and (joined := _joined([(row[i], shape[i]) for i in wide_old], mesh)) is not None:
            out[wide_new[0]] = joined
        else:
            raise ShardingTypeError(
                "This reshape is not supported: how its result is to be divided is ambiguous. "
                "Please specify the sharding of the output via the `out_sharding` argument of "
                f"reshape: type {aval.str_short()} to the shape {tuple(sizes)}."
            )
    return tuple(out)


def _blocks(old, new):
    """Pairs of runs of axes, one of each shape, that hold the same elements."""
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = [], []
        m = n = 1
        if i < len(old):
            a, m, i = [i], old[i], i + 1
        if j < len(new):
            b, n, j = [j], new[j], j + 1
        while m != n:
            if (m < n and i < len(old)) or j >= len(new):
                a.append(i)
                m, i = m * old[i], i + 1
            else:
                b.append(j)
                n, j = n * new[j], j + 1
        while i < len(old) and old[i] == 1 and (j >= len(new) or new[j] != 1):
            a.append(i)
            i += 1
        while j < len(new) and new[j] == 1 and (i >= len(old) or old[i] != 1):
            b.append(j)
            j += 1
        yield a, b


def _split(entry, sizes, places, mesh: BaseMesh, out: list) -> bool:
    """Divide the axes into which one is split: each takes as many mesh axes as fit, in order."""
    names, at = list(axes_of(entry)), 0
    for place, n in zip(places, sizes):
        mine: list = []
        while at < len(names) and n % size_of(mesh, (*mine, names[at])) == 0:
            mine.append(names[at])
            at += 1
        out[place] = _entry(mine)
        if at == len(names):
            return True
        if size_of(mesh, tuple(mine)) != n:
            # the remaining mesh axes would divide a part of this axis, not the next one
            break
    for place in places:
        out[place] = None
    return False


def _joined(parts, mesh: BaseMesh):
    """The entry of the axis into which several are joined, if all or only the first are divided.

    Of several that are divided before one that is whole, all but the last have one element on each device.
    """
    first = next((i for i, (e, _) in enumerate(parts) if e is None), len(parts))
    if any(e is not None for e, _ in parts[first:]):
        return None
    if first < len(parts) and any(size_of(mesh, e) != n for e, n in parts[: max(first - 1, 0)]):
        return None
    return _entry([n for e, _ in parts[:first] for n in axes_of(e)])
