"""The methods and properties of arrays; importing this module installs them on `Array`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gradix import lax
from gradix._base.lazy import lazy_module
from gradix._core import array_members
from gradix._core.array import ArrayImpl
from gradix._core.operators import Array, install
from gradix.numpy import conversion, reductions, shapes
from gradix.numpy.indexing import getitem
from gradix.numpy.namespace_info import API_VERSIONS
from gradix.numpy.operators import OPERATORS
from gradix.numpy.placement import place

at = lazy_module("gradix.numpy.at")
cumulative = lazy_module("gradix.numpy.cumulative")
extremes = lazy_module("gradix.numpy.extremes")
joining = lazy_module("gradix.numpy.joining")
matrices = lazy_module("gradix.numpy.matrices")
moments = lazy_module("gradix.numpy.moments")
printing = lazy_module("gradix.numpy.printing")
products = lazy_module("gradix.numpy.products")
rounding_and_parts = lazy_module("gradix.numpy.rounding_and_parts")
searching = lazy_module("gradix.numpy.searching")
selection = lazy_module("gradix.numpy.selection")
sorting = lazy_module("gradix.numpy.sorting")
taking = lazy_module("gradix.numpy.taking")
views = lazy_module("gradix.numpy.views")

# -- arrangement -----------------------------------------------------------------------------------


def reshape(self, *args, order: str = "C", out_sharding=None):
    """The elements in their order, in another shape; one size may be -1.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.arange(4).reshape(2, -1)
        Array([[0, 1],
               [2, 3]], dtype=int32)
    """
    shape = args[0] if len(args) == 1 else args
    if order == "C" and type(shape) is tuple and out_sharding is None:
        for n in shape:
            if type(n) is not int or n < 0:
                break
        else:
            return lax.reshape(self, shape)
    return shapes.reshape(self, shape, order, out_sharding=out_sharding)


def transpose(self, *args):
    """The array with its axes in another order; they are reversed by default.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.ones((2, 3)).transpose(1, 0).shape
        (3, 2)
    """
    if not args or args == (None,):
        return lax.transpose(self, tuple(range(self.aval.ndim))[::-1])
    axes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
    return shapes.transpose(self, axes)


def flatten(self, order: str = "C", *, out_sharding=None):
    """The elements in one row, as a vector."""
    return shapes.ravel(self, order=order, out_sharding=out_sharding)


def ravel(self, order: str = "C", *, out_sharding=None):
    """The elements in one row, as a vector."""
    return shapes.ravel(self, order=order, out_sharding=out_sharding)


def squeeze(self, axis=None):
    """The array without its axes of size 1, or without the named ones of these."""
    return shapes.squeeze(self, axis)


def swapaxes(self, axis1: int, axis2: int):
    """The array with two axes exchanged."""
    return shapes.swapaxes(self, axis1, axis2)


def repeat(self, repeats, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding=None):
    """The array with each element repeated along an axis."""
    return joining.repeat(self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding)


# -- selection and order ---------------------------------------------------------------------------


def take(
    self,
    indices,
    axis: int | None = None,
    out=None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value=None,
):
    """The elements at `indices` along an axis; by default, the array is taken as one row."""
    return taking.take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)


def choose(self, choices, out=None, mode: str = "raise"):
    """The elements of the arrays `choices` that the array's integers choose."""
    return taking.choose(self, choices, out, mode)


def compress(self, condition, axis: int | None = None, *, out=None, size: int | None = None, fill_value=0):
    """The parts along an axis at which the condition is true."""
    return taking.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def nonzero(self, *, fill_value=None, size: int | None = None):
    """The indices of the elements other than zero, as an array for each axis."""
    return searching.nonzero(self, size=size, fill_value=fill_value)


def sort(self, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False):
    """The elements in increasing order along an axis."""
    return sorting.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def argsort(self, axis: int | None = -1, *, kind=None, order=None, stable: bool = True, descending: bool = False):
    """The indices that sort the array along an axis."""
    return sorting.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def argpartition(self, kth: int, axis: int = -1):
    """The indices that bring the smaller elements before element `kth`, the others after it."""
    return sorting.argpartition(self, kth, axis)


def searchsorted(self, v, side: str = "left", sorter=None, *, method: str = "scan"):
    """The indices at which elements can be inserted so that the array stays sorted."""
    return searching.searchsorted(self, v, side, sorter, method=method)


def dot(self, b, *, precision=None, preferred_element_type=None):
    """The dot product with another array."""
    return products.dot(self, b, precision=precision, preferred_element_type=preferred_element_type)


# -- elementwise -----------------------------------------------------------------------------------


def astype(self, dtype, copy: bool = False, device=None):
    """The array converted to a dtype.

    Example:
        >>> import gradix.numpy as jnp
        >>> jnp.array([1.7]).astype(int)
        Array([1], dtype=int32)
    """
    return conversion.converted(self, dtype, device, copy)


def clip(self, min=None, max=None):
    """The elements kept between `min` and `max`."""
    return selection.clip(self, min, max)


def conj(self):
    """The complex conjugate of each element."""
    return rounding_and_parts.conjugate(self)


def copy(self):
    """A copy of the array."""
    return conversion.copy(self)


def var(self, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, *, where=None, correction=None):
    """The variance of the elements, over all axes or some."""
    return moments.var(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def std(self, axis=None, dtype=None, out=None, ddof: int = 0, keepdims: bool = False, *, where=None, correction=None):
    """The standard deviation of the elements, over all axes or some."""
    return moments.std(self, axis, dtype, out, ddof, keepdims, where=where, correction=correction)


def _round(self, ndigits=None):
    out = rounding_and_parts.round(self, 0 if ndigits is None else ndigits)
    return out if ndigits is not None else conversion.astype(out, int)


# -- containers ------------------------------------------------------------------------------------


def _iter(self):
    if not self.aval.ndim:
        raise TypeError(
            "A scalar array has no axis to iterate over. Use x.item() for its value, range(int(x)) or lax.fori_loop to "
            "count up to it."
        )
    if type(self) is ArrayImpl:
        return iter(array_members.rows(self))
    return (lax.index_in_dim(self, i, 0, False) for i in range(self.aval.shape[0]))


def _contains(self, element) -> bool:
    if getattr(element, "ndim", 0):
        raise ValueError(
            f"`in` looks for one element, got an array of shape {element.shape}. Write (x == row).all(axis=-1).any()."
        )
    return bool(reductions.any(self == element))


def _getitem(self, index):
    return getitem(self, index)


def _repr(self) -> str:
    return printing.array_repr(self)


def _str(self) -> str:
    return printing.array_str(self) if type(self) is ArrayImpl else repr(self)


def _array_namespace(self, *, api_version: str | None = None):
    if api_version is not None and api_version not in API_VERSIONS:
        raise ValueError(
            f"api_version: {api_version!r} is not an available version of the array API. Give one "
            f"of {', '.join(API_VERSIONS)}."
        )
    return sys.modules["gradix.numpy"]


def to_device(self, device, *, stream=None):
    """The array on another device."""
    if stream is not None:
        raise NotImplementedError(f"to_device: stream is not supported, got {stream!r}. Leave it out.")
    return place(self, device, None)


# -- properties ------------------------------------------------------------------------------------


def _matrix_transpose(self):
    if self.aval.ndim < 2:
        raise ValueError(f"x.mT: x must have at least two axes, got shape {self.aval.shape}. Use x.T.")
    n = self.aval.ndim
    return lax.transpose(self, (*range(n - 2), n - 1, n - 2))


def _flat(self):
    raise NotImplementedError("x.flat is not supported, since arrays are immutable. Use x.flatten().")


def _method(function: Any) -> Any:
    """A function of an array as a method: the same code, with `self` as its first argument."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    made.__module__, made.__qualname__ = function.__module__, f"Array.{function.__name__}"
    first, *rest = inspect.signature(function).parameters.values()
    made.__signature__ = inspect.Signature([first.replace(name="self"), *rest])  # type: ignore[attr-defined]
    doc = function.__doc__ or ""
    doc = re.sub(rf"^        {first.name}: .*\n(         .*\n)*", "", doc, flags=re.MULTILINE)
    made.__doc__ = doc.replace(f"`{first.name}`", "the array")
    return made


class _Later:
    """Stands for a member of arrays until it is asked for; then its module is loaded."""

    __slots__ = ("name", "make")

    def __init__(self, name: str, make: Callable[[], Any]):
        self.name, self.make = name, make

    def __get__(self, instance, owner=None):
        member = self.make()
        setattr(Array, self.name, member)
        return member.__get__(instance, owner)

    def __call__(self, instance, *args, **kwargs):
        return self.__get__(instance)(*args, **kwargs)

    @property
    def __signature__(self):
        """The member's signature, for tools that list a class without asking for its members."""
        return inspect.signature(self.make())


def _methods_later(module: Any, *names: str) -> dict[str, _Later]:
    """Functions of a module as methods that are loaded when they are asked for."""
    return {n: _Later(n, lambda n=n: _method(getattr(module, n))) for n in names}  # type: ignore[misc]


_METHODS = {
    f.__name__: f
    for f in (
        reshape,
        transpose,
        flatten,
        ravel,
        squeeze,
        swapaxes,
        repeat,
        take,
        choose,
        compress,
        nonzero,
        sort,
        argsort,
        argpartition,
        searchsorted,
        dot,
        astype,
        clip,
        conj,
        copy,
        var,
        std,
        to_device,
        *map(_method, (reductions.sum, reductions.prod, reductions.all, reductions.any)),
    )
}
_LATER = {
    "view": _Later("view", lambda: views.view),
    "byteswap": _Later("byteswap", lambda: views.byteswap),
    **_methods_later(extremes, "max", "min", "argmax", "argmin", "ptp"),
    **_methods_later(moments, "mean"),
    **_methods_later(cumulative, "cumsum", "cumprod"),
    **_methods_later(rounding_and_parts, "round"),
    **_methods_later(matrices, "diagonal", "trace"),
    "real": _Later("real", lambda: property(rounding_and_parts.real, doc="The real part.")),
    "imag": _Later("imag", lambda: property(rounding_and_parts.imag, doc="The imaginary part.")),
    "at": _Later(
        "at",
        lambda: property(
            at.IndexUpdateHelper, doc="Updates of elements: x.at[index].set(values), .add, .multiply, ..."
        ),
    ),
}
_SPECIAL = {
    "__getitem__": _getitem,
    "__iter__": _iter,
    "__contains__": _contains,
    "__repr__": _repr,
    "__str__": _str,
    "__round__": _round,
    "__array_namespace__": _array_namespace,
    "conjugate": conj,
}
_PROPERTIES = {
    "T": property(transpose, doc="The array with its axes reversed."),
    "mT": property(_matrix_transpose, doc="The array with its last two axes exchanged."),
    "flat": property(_flat, doc="Not supported."),
}

install({**array_members.MEMBERS, **OPERATORS, **_METHODS, **_LATER, **_SPECIAL, **_PROPERTIES})
