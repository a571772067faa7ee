"""`ShapeDtypeStruct`: the type of an array, as users write and read it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradix._base import config as _config
from gradix._base.errors import class_of
from gradix._core.array import ArrayImpl, as_array
from gradix._core.array_layouts import AutoLayout, Format, Layout, order_in
from gradix._core.aval import ShapedArray, dtype_name, located, make_aval, marks_of, within
from gradix._core.divisions import explicit_part
from gradix._core.dtypes import ExtendedDType, canonicalize_dtype
from gradix._core.named_sharding import NamedSharding
from gradix._core.operators import Array
from gradix._core.refs import AbstractRef, Ref
from gradix._core.sharding import PartitionSpec, Sharding
from gradix._runtime.placement import committed

_options = _config.state


class ShapeDtypeStruct:
    """The shape and dtype of an array without its values; accepted wherever only the type matters.

    Args:
        shape: a tuple of ints.
        dtype: the dtype.
        sharding: how the array is divided: a `Sharding`, a `Format`, or a PartitionSpec on the mesh
            in force where it is used.
        weak_type: whether the type is weak.
        manual_axis_type: the mesh axes over which values vary inside of `shard_map`.
        is_ref: whether it stands for a mutable array.

    Raises:
        ValueError: `dtype` is None, or `sharding` is not a sharding or does not fit the shape.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.eval_shape(jnp.dot, gradix.ShapeDtypeStruct((2, 3), jnp.float32), jnp.ones(3))
        ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    __slots__ = ("shape", "dtype", "_sharding", "weak_type", "manual_axis_type", "is_ref", "layout")

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type: bool = False, manual_axis_type=None, is_ref: bool = False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        if not hasattr(shape, "__iter__"):
            raise TypeError(f"ShapeDtypeStruct: shape must be a tuple of sizes, as ({shape!r},), got {shape!r}.")
        self.shape = tuple(shape)
        self.dtype = dtype if isinstance(dtype, ExtendedDType) else np.dtype(dtype)
        self._sharding, self.layout = _placed(sharding, self.shape)
        self.weak_type = bool(weak_type)
        self.manual_axis_type, self.is_ref = manual_axis_type, is_ref

    size = property(lambda self: prod(self.shape))
    ndim = property(lambda self: len(self.shape))
    sharding = property(lambda self: _on_mesh_in_force(self._sharding))
    format = property(lambda self: Format(self.layout, self.sharding))
    vma = property(lambda self: marks_of(self.manual_axis_type))

    @classmethod
    def like(cls, x) -> ShapeDtypeStruct:
        """The type of `x`, an array or anything with a shape and a dtype."""
        has_place = type(x) is not ArrayImpl or x.committed  # type: ignore[attr-defined]
        return cls(
            x.shape,
            x.dtype,
            sharding=getattr(x, "sharding", None) if has_place else None,
            weak_type=getattr(x, "weak_type", False),
        )

    def update(self, **changes) -> ShapeDtypeStruct:
        """A copy with some fields changed."""
        fields = {k.removeprefix("_"): getattr(self, k) for k in self.__slots__[:-1]}
        if self.layout is not None:
            if isinstance(changes.get("sharding"), (Sharding, PartitionSpec)):
                raise ValueError(
                    f"updating ShapeDtypeStruct with a sharding alone, {changes['sharding']}, where it has the layout "
                    f"{self.layout}, is ambiguous. Pass sharding=Format(layout, sharding)."
                )
            fields["sharding"] = self.format
        unknown = changes.keys() - fields.keys()
        if unknown:
            raise ValueError(f"ShapeDtypeStruct has no fields {sorted(unknown)}; it has {', '.join(fields)}.")
        fields.update(changes)
        return ShapeDtypeStruct(fields.pop("shape"), fields.pop("dtype"), **fields)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object: a ShapeDtypeStruct of shape () has no first axis.")
        return self.shape[0]

    def __repr__(self) -> str:
        rest = "".join(
            [
                f", {k}={v}"
                for k, v, given in (
                    ("sharding", self._sharding, self._sharding is not None),
                    ("format", self.layout, self.layout is not None),
                    ("weak_type", True, self.weak_type),
                    ("manual_axis_type", self.manual_axis_type, bool(self.vma)),
                    ("is_ref", True, self.is_ref),
                )
                if given
            ]
        )
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtype_name(self.dtype)}{rest})"

    def _key(self) -> tuple:
        return self.shape, self.dtype, self._sharding, self.layout, self.weak_type, self.is_ref, self.vma

    def __eq__(self, other) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _on_mesh_in_force(given: Sharding | PartitionSpec | None) -> Sharding | None:
    """A sharding, or a spec on the mesh that is in force now."""
    if not isinstance(given, PartitionSpec):
        return given
    mesh = _options.gradix_mesh
    if mesh is None or not mesh.axis_names:
        raise TypeError(
            "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be empty. "
            f"Please use `gradix.set_mesh` to set the mesh context, or pass NamedSharding(mesh, {given})."
        )
    return NamedSharding(mesh, given)


def _placed(given, shape: tuple) -> tuple[Sharding | PartitionSpec | None, Layout | None]:
    """The sharding and the layout in the argument `sharding` of a ShapeDtypeStruct."""
    if given is None:
        return None, None
    layout = None
    if isinstance(given, Format):
        if isinstance(given.layout, AutoLayout):
            raise TypeError(
                f"`Layout.AUTO` cannot be used in place of a device-local layout in a `ShapeDtypeStruct`. Got {given}."
            )
        given, layout = given.sharding, given.layout
        if layout is not None:
            layout.check_compatible_aval(shape)
    if isinstance(given, PartitionSpec):
        if len(given) > len(shape):
            raise ValueError(
                f"PartitionSpec {given} is only valid for values of rank at least {len(given)}, but was applied to a "
                f"value of rank {len(shape)}: a ShapeDtypeStruct of shape {shape}."
            )
        return given, layout
    if given is not None and not isinstance(given, Sharding):
        raise ValueError(
            "sharding should be an instance of `gradix.sharding.Sharding`, `gradix.sharding.PartitionSpec` "
            f"or `gradix.experimental.layout.Format`. Got {given} of type {class_of(given)}."
        )
    if given is not None:
        given.check_compatible_aval(shape)
    return given, layout


def aval_of(x) -> Any:
    """The type of an array, of a value convertible to one, or of an object with shape and dtype."""
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, (np.ndarray, np.generic)) or not (hasattr(x, "shape") and hasattr(x, "dtype")):
        return as_array(x).aval
    plain = make_aval(
        tuple(x.shape), canonicalize_dtype(x.dtype, allow_extended_dtype=True), bool(getattr(x, "weak_type", False))
    )
    vma = marks_of(getattr(x, "manual_axis_type", None))
    return located(plain, vma=vma, division=explicit_part(getattr(x, "sharding", None), plain.ndim))


class Typed:
    """A leaf of which only the type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


def typed(x) -> Typed | Ref:
    """A leaf of the type of `x`, which may be the description of an array, or of a mutable array."""
    if isinstance(x, ShapedArray):  # a type has no place
        return Typed(within(x))
    if hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.ndarray, np.generic)):
        aval = make_aval(
            tuple(x.shape), canonicalize_dtype(x.dtype, allow_extended_dtype=True), bool(getattr(x, "weak_type", False))
        )
        sharding = getattr(x, "sharding", None)
        if isinstance(sharding, Sharding):
            layout = getattr(x, "layout", None)
            order: Any = order_in(layout) if isinstance(layout, Layout) else None
            aval = located(aval, committed(sharding, order), division=explicit_part(sharding, aval.ndim))
        elif marks := marks_of(getattr(x, "manual_axis_type", None)):
            aval = located(aval, vma=marks)
        return Ref(AbstractRef(aval), None) if getattr(x, "is_ref", False) is True else Typed(aval)
    return Typed(as_array(x).aval)


def struct_of(aval, sharding: Sharding | Format | None = None) -> ShapeDtypeStruct:
    """The `ShapeDtypeStruct` of a type; without a sharding, with its division over `Explicit` axes."""
    return ShapeDtypeStruct(
        aval.shape,
        aval.dtype,
        weak_type=aval.weak_type,
        sharding=sharding or aval.division,
        manual_axis_type=aval.mat if aval.vma else None,
    )
