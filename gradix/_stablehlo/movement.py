"""Operations that move elements, such as slices. A symbolic shape becomes an operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape
from gradix._core.dtypes import index_dtype
from gradix._stablehlo.attributes import axes_by_name, i64_array
from gradix._stablehlo.dimensions import SIZE, Dimensions, is_open
from gradix._stablehlo.types import tensor_type
from gradix._stablehlo.writer import Value

_OF_A_SCALAR = f"broadcast_dimensions = {i64_array(())}"


class Movement(Dimensions):
    """Adds data movement to the writer."""

    # -- shapes ------------------------------------------------------------------------------------

    def broadcast_in_dim(self, x: Value, out, dims) -> Value:
        """`x` whose axis i becomes axis `dims[i]` of the result."""
        if x.type == tensor_type(out) and x.aval.shape == out.shape:
            return x
        if not x.aval.shape and not is_open(out):
            return self._fill(x, out)
        attrs = f"broadcast_dimensions = {i64_array(dims)}"
        if is_open(out):
            return self.op("dynamic_broadcast_in_dim", out, x, self.sizes(out.shape), attrs=attrs)
        found = self.op("broadcast_in_dim", out, x, attrs=attrs)
        found.definition = "broadcast_in_dim", x, tuple(dims)
        return found

    def _fill(self, x: Value, out) -> Value:
        """A scalar broadcast to `out`; written once per location in each function or region."""
        key = x.name, tensor_type(out), self.ending
        found = self._broadcast.get(key)
        if found is None:
            found = self.op("broadcast_in_dim", out, x, attrs=_OF_A_SCALAR)
            found.definition = "broadcast_in_dim", x, ()
            self._broadcast[key] = found
        elif found.aval is not out:
            found, written = Value(found.name, out, found.type), found
            found.definition = written.definition
        return found

    def broadcast(self, x: Value, shape) -> Value:
        """`x` with leading axes added, or a scalar filling `shape`."""
        shape = tuple(shape)
        dims = range(len(shape) - x.aval.ndim, len(shape))
        return self.broadcast_in_dim(x, make_aval(shape, x.aval.dtype, x.aval.weak_type), dims)

    def spread(self, x: Value, shape) -> Value:
        """`x`, a scalar or of the rank of `shape`, with its axes of size 1 stretched."""
        dims = range(len(shape)) if x.aval.ndim else ()
        return self.broadcast_in_dim(
            x, make_aval(tuple(shape), x.aval.dtype, x.aval.weak_type), dims
        )

    def reshape(self, x: Value, shape) -> Value:
        out = make_aval(tuple(shape), x.aval.dtype, x.aval.weak_type)
        return x if out.shape == x.aval.shape else self.reshape_to(x, out)

    def reshape_to(self, x: Value, out) -> Value:
        """The same elements as another type of the same storage."""
        return (
            self.op("dynamic_reshape", out, x, self.sizes(out.shape))
            if is_open(out)
            else self.op("reshape", out, x)
        )

    def transpose(self, x: Value, perm) -> Value:
        perm = tuple(perm)
        if perm == tuple(range(len(perm))):
            return x
        out = make_aval(tuple([x.aval.shape[i] for i in perm]), x.aval.dtype, x.aval.weak_type)
        found = self.op("transpose", out, x, attrs=f"permutation = {i64_array(perm)}")
        found.definition = "transpose", x, perm
        return found

    def reverse(self, x: Value, axes) -> Value:
        """`x` with the elements along these axes in reverse order."""
        return self.op("reverse", x.aval, x, attrs=f"dimensions = {i64_array(axes)}")

    def iota(self, out, axis: int) -> Value:
        """0, 1, 2, ... along an axis."""
        attrs = f"iota_dimension = {axis} : i64"
        if is_open(out):
            return self.op("dynamic_iota", out, self.sizes(out.shape), attrs=attrs)
        found = self.op("iota", out, attrs=attrs)
        found.definition = "iota", None, (axis,)
        return found

    # -- parts and wholes --------------------------------------------------------------------------

    def slice(
        self,
        x: Value,
        starts: Sequence,
        limits: Sequence,
        strides: Sequence | None = None,
        out=None,
    ) -> Value:
        """The elements from `starts` to before `limits` along each axis, in steps of `strides`.

        Args:
            out: the result's type, if it is at hand.
        """
        strides = (1,) * len(starts) if strides is None else strides
        if out is None:
            sizes = [(b - a + s - 1) // s for a, b, s in zip(starts, limits, strides)]
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        if is_symbolic_shape((*starts, *limits)):
            return self.op(
                "real_dynamic_slice",
                out,
                x,
                *[self.sizes(ends) for ends in (starts, limits, strides)],
            )
        return self.op(
            "slice",
            out,
            x,
            attrs=f"start_indices = {i64_array(starts)}, limit_indices = {i64_array(limits)}, "
            f"strides = {i64_array(strides)}",
        )

    def head(self, x: Value, shape) -> Value:
        """The first elements of `x` along its axes."""
        return x if x.aval.shape == tuple(shape) else self.slice(x, (0,) * len(shape), shape)

    def pad(
        self, x: Value, fill: Value, low: Sequence, high: Sequence, interior: Sequence, out=None
    ) -> Value:
        """`x` padded by the scalar `fill` before, behind and between elements.

        Negative widths crop.

        Args:
            out: the result's type, if it is at hand.
        """
        if out is None:
            sizes = [
                n + a + b + (max(n - 1, 0) * s if s else 0)
                for n, a, b, s in zip(x.aval.shape, low, high, interior)
            ]
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        if is_symbolic_shape((*low, *high)):
            return self.op(
                "dynamic_pad",
                out,
                x,
                fill,
                *[self.sizes(widths) for widths in (low, high, interior)],
            )
        return self.op(
            "pad",
            out,
            x,
            fill,
            attrs=f"edge_padding_low = {i64_array(low)}, edge_padding_high = {i64_array(high)}, "
            f"interior_padding = {i64_array(interior)}",
        )

    def pad_to(self, x: Value, shape, fill) -> Value:
        """`x` with elements `fill`, a number, added behind the ends of its axes."""
        if x.aval.shape == tuple(shape):
            return x
        none, more = [0] * len(shape), [n - m for n, m in zip(shape, x.aval.shape)]
        return self.pad(x, self.constant(fill, make_aval((), x.aval.dtype)), none, more, none)

    def concatenate(self, xs: Sequence[Value], axis: int, out) -> Value:
        """The concatenation of arrays along an axis; a single array is returned as it is."""
        return (
            xs[0]
            if len(xs) == 1
            else self.op("concatenate", out, *xs, attrs=f"dimension = {axis} : i64")
        )

    def index(self, i: Value, shape: Sequence) -> Value:
        """Indices into axes of these sizes, in a type in which XLA's arithmetic with them is exact."""
        return self._indices([i], shape)[0]

    def _indices(self, values: Sequence[Value], shape: Sequence) -> list[Value]:
        """`index` of several values, which mostly have one dtype."""
        own = known = None
        out = []
        for i in values:
            dtype = i.aval.dtype
            if dtype is not own:
                own, known = dtype, index_dtype(dtype, shape)
            out.append(i if known is own else self.convert(i, known))
        return out

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence, out=None) -> Value:
        """A block of these sizes; the start indices are clamped so that it lies inside."""
        if out is None:
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        starts = self._indices(starts, x.aval.shape)
        if not is_symbolic_shape(sizes):
            return self.op(
                "dynamic_slice", out, x, *starts, attrs=f"slice_sizes = {i64_array(sizes)}"
            )
        vector = make_aval((len(sizes),), SIZE.dtype, False)
        one = make_aval((1,), SIZE.dtype, False)
        first = self.concatenate(
            [self.op("reshape", one, self._int32(s)) for s in starts], 0, vector
        )
        span = self.sizes(sizes)
        last = self.op("subtract", vector, self.sizes(x.aval.shape), span)
        first = self.op(
            "clamp", vector, self.constant(np.zeros(len(sizes), np.int32), vector), first, last
        )
        return self.op(
            "real_dynamic_slice",
            out,
            x,
            first,
            self.op("add", vector, first, span),
            self.constant(1, vector),
        )

    def _int32(self, i: Value) -> Value:
        """Indices as int32, where those above its range become its largest number."""
        top = np.iinfo(np.int32).max
        if np.iinfo(i.aval.dtype).max > top:
            low, high = self.constant(0, i.aval), self.constant(top, i.aval)
            i = self.op("clamp", i.aval, low, i, high)
        return self.convert(i, SIZE.dtype)

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        """`x` with a block replaced.

        The start indices are clamped so that the block lies inside.
        """
        starts = [self.index(s, x.aval.shape) for s in starts]
        return self.op("dynamic_update_slice", x.aval, x, update, *starts)

    def gather(
        self,
        out,
        x: Value,
        indices: Value,
        numbers: Mapping[str, Sequence[int]],
        sizes: Sequence,
        is_sorted: bool,
    ) -> Value:
        """Windows of these sizes of `x` at the places that the index vectors name.

        Args:
            numbers: axes by the names of StableHLO's attribute; index vectors lie along the last
                axis of `indices`.
            is_sorted: whether the index vectors are in order.
        """
        indices = self.index(indices, x.aval.shape)
        attrs = f"dimension_numbers = #stablehlo.gather<{axes_by_name(numbers, indices.aval.ndim - 1)}>, "
        rest = f"indices_are_sorted = {str(is_sorted).lower()}"
        if is_symbolic_shape(sizes):
            return self.op("dynamic_gather", out, x, indices, self.sizes(sizes), attrs=attrs + rest)
        return self.op(
            "gather", out, x, indices, attrs=f"{attrs}slice_sizes = {i64_array(sizes)}, {rest}"
        )
