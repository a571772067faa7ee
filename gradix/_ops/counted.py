"""Sizes that values decide: `size_p` gives a count its value, `prefix_p` cuts a buffer to it.

`size_p` defines a dimension variable for the equations after it. `prefix_p` has the first elements
of a buffer along one axis, as many as a size says; its transpose `whole_p` has zeros after them.
`buffer_p` has anything after them, for results of which the first elements are all that is read.
"""

from __future__ import annotations

from gradix._core.aval import make_aval
from gradix._core.dimensions.counts import bound_of, fresh_count
from gradix._core.divisions import undivided
from gradix._core.primitive import Primitive
from gradix._core.trace import NeedsProgram, bind
from gradix._ops.families import NonDifferentiable, Structural

_AXIS = "an axis whose size values decide"


class Size(NonDifferentiable, Primitive):
    """The integer operand, which becomes the value of the dimension variable `dim`."""

    defines_size = True

    def abstract(self, n, *, dim):
        return n

    def batch(self, size, args, axes, *, dim):
        raise NeedsProgram


class Prefix(Structural):
    """The first elements of a buffer along an axis, as many as the size `dim`."""

    def abstract(self, x, *, dim, axis):
        return make_aval((*x.shape[:axis], dim, *x.shape[axis + 1 :]), x.dtype, x.weak_type)

    def divide(self, mesh, avals, outs, params):
        return [undivided(self.name, avals[0], (params["axis"],), _AXIS)]

    def transpose(self, ct, x, *, dim, axis):
        return [whole(ct, axis, x.aval.shape[axis])]

    def batch(self, size, args, axes, *, dim, axis):
        (a,) = axes
        axis += a <= axis
        return bind(self, args, {"dim": dim, "axis": axis}), a


class Whole(Structural):
    """An array with further elements after its own along an axis, up to the size `bound`."""

    def abstract(self, x, *, axis, bound):
        return make_aval((*x.shape[:axis], bound, *x.shape[axis + 1 :]), x.dtype, x.weak_type)

    def divide(self, mesh, avals, outs, params):
        return [undivided(self.name, avals[0], (params["axis"],), _AXIS)]

    def transpose(self, ct, x, *, axis, bound):
        return [prefix(ct, x.aval.shape[axis], axis)]

    def batch(self, size, args, axes, *, axis, bound):
        (a,) = axes
        axis += a <= axis
        return bind(self, args, {"axis": axis, "bound": bound}), a


size_p, prefix_p = Size("size"), Prefix("prefix")
whole_p, buffer_p = Whole("whole"), Whole("buffer")


def define(n, bound, dim=None):
    """The dimension variable whose value is the traced integer `n`, at most `bound`."""
    dim = fresh_count(bound) if dim is None else dim
    bind(size_p, [n], {"dim": dim})
    return dim


def prefix(x, dim, axis: int = 0):
    """The first elements of a buffer along an axis, as many as the size `dim`."""
    if x.aval.shape[axis] is dim:
        return x
    return bind(prefix_p, [x], {"dim": dim, "axis": axis})


def whole(x, axis: int, bound=None):
    """An array with zeros after its elements along an axis; `bound` is its greatest size."""
    size = x.aval.shape[axis]
    bound = bound_of(size) if bound is None else bound
    return x if size is bound else bind(whole_p, [x], {"axis": axis, "bound": bound})


def buffer(x, axis: int):
    """As `whole`, with arbitrary elements after those of the array."""
    size = x.aval.shape[axis]
    return bind(buffer_p, [x], {"axis": axis, "bound": bound_of(size)})
