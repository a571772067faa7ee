"""Abstract values: the type of an array, made once per (shape, dtype, weak_type)."""

from __future__ import annotations

from abc import ABCMeta
from math import prod
from sys import getrefcount
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from gradix._base import config as _config
from gradix._core.mesh import ManualAxisType, empty_abstract_mesh
from gradix._core.named_sharding import NamedSharding
from gradix._core.scalar_types import INEXACT, dtype_name, float0, short_name
from gradix._core.sharding import MemorySpace, PartitionSpec

_options = _config.state

NONE: frozenset = frozenset()
_table: dict[tuple, ShapedArray] = {}
_limit = 1 << 16


class _Reads:
    """How often something was read, by which a trace is found to depend on it."""

    def __init__(self):
        self.count = 0


auto_mesh_reads = _Reads()


class ShapedArray:
    """The type of an array: its shape, its dtype, and whether the dtype is weak.

    Equal types are one object, so that they compare and hash by identity. A shape may hold symbolic
    dimensions; then `size` is one, too.

    Example:
        >>> from gradix.core import ShapedArray
        >>> import numpy as np
        >>> ShapedArray((2, 3), np.dtype("float32"))
        ShapedArray(float32[2,3])
    """

    __slots__ = ("shape", "dtype", "weak_type", "ndim", "size", "__weakref__")
    division: Any = None  # the NamedSharding over explicit mesh axes, if any
    vma: frozenset = frozenset()
    # the Placement of a concrete array that is committed to devices
    place: Any = None
    plain = property(lambda self: self)
    manual_axis_type = mat = property(lambda self: manual_axis_type(self.vma))
    is_high = False  # types of libraries above arrays say otherwise
    memory_space = MemorySpace.Device  # a type does not tell in which memory a value is

    shape: tuple
    dtype: Any
    weak_type: bool
    ndim: int
    size: Any

    def __new__(
        cls,
        shape,
        dtype,
        weak_type: bool = False,
        *,
        sharding=None,
        manual_axis_type: ManualAxisType | None = None,
        **_,
    ):
        if isinstance(dtype, (type, str)):
            dtype = np.dtype(dtype)
        plain = make_aval(tuple(shape), dtype, bool(weak_type))
        return plain if sharding is manual_axis_type is None else _typed(plain, sharding, manual_axis_type)

    def update(self, *, shape=None, dtype=None, weak_type=None, **divided) -> ShapedArray:
        """The type with other properties.

        Args:
            divided: `sharding` and `manual_axis_type`, as for the class.
        """
        plain = make_aval(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )
        return ShapedArray(plain.shape, plain.dtype, plain.weak_type, **divided) if divided else plain

    @property
    def sharding(self) -> NamedSharding:
        """The sharding of an array of this type over `Explicit` mesh axes.

        For an array that is not divided, it is the empty sharding on the mesh in force, or on that over
        whose `Auto` axes the arguments of the function that is traced are divided.
        """
        if self.division is not None:
            return self.division
        mesh = _options.gradix_mesh
        if self.place is not None:  # of a concrete array
            own = getattr(self.place.sharding, "mesh", None)
            mesh = None if own is None and self.place.is_committed else mesh or own
        elif mesh is None:
            auto_mesh_reads.count += 1
            mesh = _options.gradix_auto_mesh
        return NamedSharding(
            empty_abstract_mesh if mesh is None else mesh.abstract_mesh, PartitionSpec(*[None] * self.ndim)
        )

    def strip_weak_type(self) -> ShapedArray:
        return make_aval(self.shape, self.dtype, False) if self.weak_type else self

    normalize = strip_weak_type  # as types of libraries above arrays are asked

    def lo_ty(self) -> list[ShapedArray]:
        """The types of the arrays that a value of this type is made of: itself."""
        return [self]

    def lower_val(self, hi_val) -> list:
        """The arrays that a value of this type is made of: itself."""
        return [hi_val]

    def raise_val(self, lo_val):
        """The value that is made of an array: itself."""
        return lo_val

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents: this type if its dtype is inexact, else one of dtype float0."""
        return self if self.dtype in INEXACT else make_aval(self.shape, float0)

    to_ct_aval = to_tangent_aval

    def leading_axis_spec(self) -> int:
        """Where a loop over rows of arrays steps along: the first axis."""
        return 0

    def dec_rank(self, size, spec: int | None) -> ShapedArray:
        """The type of a row along the axis `spec`, which has this size; of the whole if it is None."""
        return self if spec is None else self.update(shape=(*self.shape[:spec], *self.shape[spec + 1 :]))

    def inc_rank(self, size, spec: int | None) -> ShapedArray:
        """The type of rows of this type, stacked along a new axis `spec`; of one of them if it is None."""
        return self if spec is None else self.update(shape=(*self.shape[:spec], size, *self.shape[spec:]))

    def shard(self, mesh, manual_axes, check_vma: bool, spec) -> ShapedArray:
        """The type of the part that a device of a mesh has within `shard_map`."""
        return seen.part_type(self, spec, mesh, frozenset(manual_axes), check_vma)

    def unshard(self, mesh, check_vma: bool, spec) -> ShapedArray:
        """The type of the whole array of which the devices of a mesh have parts of this type."""
        return seen.whole_type(self, spec, mesh, frozenset(mesh.axis_names))

    def at_least_vspace(self) -> ShapedArray:
        """The type of tangents, as `to_tangent_aval`; rules of other libraries use this name."""
        return self.to_tangent_aval()

    def str_short(self, short_dtypes: bool = False) -> str:
        name = short_name(self.dtype) if short_dtypes else dtype_name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return "~" + self.str_short() if self.weak_type else self.str_short()

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


MOST_AXES = 64  # of NumPy


def make_aval(shape: tuple, dtype, weak_type: bool = False) -> ShapedArray:
    """The unique `ShapedArray` of these; `shape` must be a tuple, `dtype` a dtype object."""
    key = (shape, dtype, weak_type)
    found = _table.get(key)
    if found is not None:
        return found
    if len(shape) > MOST_AXES:
        raise ValueError(
            f"Arrays have at most {MOST_AXES} axes, as NumPy's, got a shape of {len(shape)}: {shape}. "
            "Join some of the axes by reshape."
        )
    aval = object.__new__(ShapedArray)
    aval.shape, aval.dtype, aval.weak_type = shape, dtype, weak_type
    aval.ndim, aval.size = len(shape), prod(shape)
    if len(_table) >= _limit:
        _drop_unused()
    return _table.setdefault(key, aval)


def _drop_unused() -> None:
    """Remove unused types from the table; those in use stay, as equal types are one object."""
    global _limit
    for key in list(_table):
        if getrefcount(_table[key]) <= 2:  # the table's reference and the argument's
            del _table[key]
    _limit = max(_limit, 2 * len(_table))


class Reduced(NamedTuple):
    """The mark of a mesh axis over which a value within `shard_map` is reduced.

    Such a value is the same on all devices, and each device has a summand of its cotangent.
    """

    axis: Any

    def __str__(self) -> str:
        return f"{self.axis} (reduced)"


class Unreduced(NamedTuple):
    """The mark of a mesh axis over which a value within `shard_map` is still to be summed.

    Each device has a summand of such a value, and the cotangent is the same on all devices.
    """

    axis: Any
    kind: str = "unreduced"  # tuples of equal fields are equal, whatever their class

    def __str__(self) -> str:
        return f"{self.axis} (unreduced)"


def joined(vmas) -> frozenset:
    """What a result varies over if its operands vary over `vmas`.

    Unreduced outweighs the other two along an axis, and varying outweighs reduced.
    """
    whole = NONE.union(*vmas)
    if not any(type(m) is Reduced or type(m) is Unreduced for m in whole):
        return whole
    summed = unreduced_axes(whole)
    held = (whole | summed).difference(map(Reduced, reduced_axes(whole) & (whole | summed)))
    return held - summed


def reduced_axes(vma: frozenset) -> frozenset:
    """The axes over which values are reduced, among the axes and marks of a type."""
    return frozenset([m.axis for m in vma if type(m) is Reduced])


def unreduced_axes(vma: frozenset) -> frozenset:
    """The axes over which values are still to be summed, among the axes and marks of a type."""
    return frozenset([m.axis for m in vma if type(m) is Unreduced])


def varying_axes(vma: frozenset) -> frozenset:
    """The axes over which values vary, among the axes and marks of a type."""
    return frozenset([a for a in vma if type(a) is not Reduced and type(a) is not Unreduced])


def manual_axis_type(vma: frozenset) -> ManualAxisType:
    """The axes and marks of a type, in a public form."""
    return ManualAxisType(varying=varying_axes(vma), unreduced=unreduced_axes(vma), reduced=reduced_axes(vma))


class LocatedArray(ShapedArray):
    """The type of an array together with its place and division; equal types are one object, too.

    `place` is the `Placement` of a concrete array, `vma` the mesh axes over which a value within
    `shard_map` varies, with a mark for each over which it is unreduced or reduced, and `division` how an
    array is divided over `Explicit` mesh axes. `plain` is the type without these three.
    """

    __slots__ = ("plain", "place", "vma", "division")
    plain: Any
    place: Any
    vma: frozenset
    division: Any

    def update(self, *, shape=None, dtype=None, weak_type=None, **divided) -> ShapedArray:
        """The type with other properties; it is divided as before unless the shape is another."""
        plain = self.plain.update(shape=shape, dtype=dtype, weak_type=weak_type)
        division = self.division if plain.shape == self.shape else None
        if not divided:
            return located(plain, vma=self.vma, division=division)
        given = {"sharding": division, "manual_axis_type": self.mat, **divided}
        return _typed(plain, given["sharding"], given["manual_axis_type"])

    def strip_weak_type(self) -> ShapedArray:
        return located(self.plain.strip_weak_type(), self.place, self.vma, self.division)

    def str_short(self, short_dtypes: bool = False) -> str:
        name = short_name(self.dtype) if short_dtypes else dtype_name(self.dtype)
        sizes = [str(n) for n in self.shape]
        if self.division is not None:
            for i, p in enumerate(self.division.spec):
                if p is not None:
                    sizes[i] += f"@{p}" if not isinstance(p, tuple) else f"@({','.join(map(str, p))})"
        text = f"{name}[{','.join(sizes)}]"
        held, reduced = unreduced_axes(self.vma), reduced_axes(self.vma)
        if self.division is not None:
            held, reduced = held | self.division.spec.unreduced, reduced | self.division.spec.reduced
        marks = [("V", varying_axes(self.vma)), ("U", held), ("R", reduced)]
        parts = [f"{letter}:{_names(axes)}" for letter, axes in marks if axes]
        return f"{text}{{{', '.join(parts)}}}" if parts else text

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type)


def _names(axes) -> str:
    names = sorted(map(str, axes))
    return names[0] if len(names) == 1 else f"({','.join(names)})"


_located: WeakValueDictionary = WeakValueDictionary()


class Seen:
    """What this process has met: types with a division, and meshes (of these, or manual ones).

    Until then, no operation computes how its results are divided, or over which axes they vary.
    `counts` is what processes programs with sizes that values decide; None until there is one.
    `explicit_part` gives the division in a type for a sharding; the module `divisions` sets it.
    `part_type` and `whole_type` are what `shard_map` does to types; its module sets them.
    """

    __slots__ = ("divisions", "meshes", "counts", "explicit_part", "part_type", "whole_type")
    counts: Any
    explicit_part: Any
    part_type: Any
    whole_type: Any

    def __init__(self):
        self.divisions = self.meshes = False
        self.counts = None


seen = Seen()


def located(plain: ShapedArray, place=None, vma: frozenset = frozenset(), division=None) -> ShapedArray:
    """The unique type made of `plain` and these properties; `plain` itself if none is given."""
    if place is None and not vma and division is None:
        return plain
    key = (plain, place, vma, division)
    found = _located.get(key)
    if found is not None:
        return found
    aval = object.__new__(LocatedArray)
    aval.shape, aval.dtype, aval.weak_type = plain.shape, plain.dtype, plain.weak_type
    aval.ndim, aval.size = plain.ndim, plain.size
    aval.plain, aval.place, aval.vma, aval.division = plain, place, vma, division
    if division is not None:
        seen.divisions = seen.meshes = True
    return _located.setdefault(key, aval)


def _typed(plain: ShapedArray, sharding, manual: ManualAxisType | None) -> ShapedArray:
    """The type with the explicit part of a sharding, and with the manual axes that are named.

    Raises:
        ValueError: an axis cannot be divided evenly.
    """
    division = seen.explicit_part(sharding, plain.ndim)
    for n, f in zip(plain.shape, division.factors(plain.ndim) if division is not None else ()):
        if type(n) is int and n % f:
            raise ValueError(
                f"Sharding spec {division.spec} implies that array axis is partitioned {f} times, but {f} does not "
                f"evenly divide the dimension size {n} of {plain.str_short()} on {division.mesh}. Pad the axis to a "
                f"multiple of {f}, or divide another."
            )
    return located(plain, None, marks_of(manual), division)


def marks_of(manual: ManualAxisType | frozenset | None) -> frozenset:
    """The axes and marks in a type, from their public form."""
    if not isinstance(manual, ManualAxisType):
        return frozenset(manual or NONE)
    return manual.varying.union(map(Unreduced, manual.unreduced), map(Reduced, manual.reduced))


def within(aval: ShapedArray) -> ShapedArray:
    """The type of an array inside of a program: `aval` without its `place`."""
    return located(aval.plain, vma=aval.vma, division=aval.division)


class AbstractToken:
    """The type of an ordering token.

    Example:
        >>> from gradix.extend import core
        >>> token = core.AbstractToken()
        >>> token, token.shape, token.size
        (AbstractToken(), (), 0)
    """

    __slots__ = ()
    shape, dtype, weak_type, ndim, size = (), np.dtype(bool), False, 0, 0
    place = division = sharding = None
    vma: frozenset = frozenset()

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def __repr__(self) -> str:
        return "AbstractToken()"


class AbstractValue(metaclass=ABCMeta):  # noqa: B024
    """The type of a value in a program, for `isinstance`: `ShapedArray` for arrays.

    Example:
        >>> import gradix
        >>> from gradix import core
        >>> isinstance(gradix.typeof(1.0), core.AbstractValue), isinstance(1.0, core.AbstractValue)
        (True, False)
    """

    __slots__ = ()


AbstractValue.register(ShapedArray)
AbstractValue.register(AbstractToken)
abstract_token = AbstractToken()


def same_types(xs, ys) -> bool:
    """Whether two lists of avals agree in shape and dtype (weak types may differ)."""
    return len(xs) == len(ys) and all(x is y or (x.shape == y.shape and x.dtype == y.dtype) for x, y in zip(xs, ys))
