"""Writes values, constants, regions and everyday operations, in MLIR's generic form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim, is_symbolic_shape, smaller
from gradix._core.dtypes import index_dtype
from gradix._stablehlo.attributes import i64_array
from gradix._stablehlo.dimensions import SIZE, dimension_value, is_open, sizes_attribute
from gradix._stablehlo.facts import Facts
from gradix._stablehlo.literals import dense, scalar_text
from gradix._stablehlo.types import element_type, known_types, storage_dtype, tensor_type

_OF_A_SCALAR = f"broadcast_dimensions = {i64_array(())}"


class Value:
    """An SSA value: its name in the text, its aval, and its number if it is known while lowering.

    `literal` is the whole number that each element of a constant is. For transposes, broadcasts,
    conversions and iotas, `definition` holds the name of the operation, its operand and its axes.
    """

    __slots__ = ("name", "aval", "type", "known", "literal", "definition")

    def __init__(self, name: str, aval, type: str, known: int | None = None):
        self.name, self.aval, self.type, self.known = name, aval, type, known
        self.literal: int | None = None
        # (operation, operand, axes), or None for other operations
        self.definition: Any = None

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    @property
    def number(self) -> int | None:
        """The whole number that each element is known to be."""
        made = self.definition
        return made[1].number if made is not None and made[0] == "broadcast_in_dim" else self.literal

    @property
    def transposed(self) -> tuple[Value, tuple] | None:
        """The value that this one transposes, and the permutation."""
        made = self.definition
        return made[1:] if made is not None and made[0] == "transpose" else None

    @property
    def converted_from(self) -> np.dtype | None:
        """The dtype that the value was converted from; None if it is not a conversion."""
        return self.definition[1].aval.dtype if self._is_made_by("convert") else None

    @property
    def filled_with(self) -> Value | None:
        """The scalar whose broadcast the value is, or None."""
        is_spread = self._is_made_by("broadcast_in_dim") and not self.definition[1].aval.shape
        return self.definition[1] if is_spread else None

    @property
    def counted_axis(self) -> int | None:
        """The axis along which the value is 0, 1, 2, ..., if it is an iota; else None."""
        return self.definition[2][0] if self._is_made_by("iota") else None

    def _is_made_by(self, operation: str) -> bool:
        return self.definition is not None and self.definition[0] == operation

    def __repr__(self) -> str:
        return f"{self.name} : {self.type}"


class Writer:
    """Writes one function body at a time.

    Constants go to the head of the function, so that each is written once and every region sees it.
    XLA accepts regions that read outer values in `while`, `case` and `if`; the regions of `reduce`,
    `reduce_window`, `sort`, `scatter`, `select_and_scatter` and `map` may read constants only.
    """

    def __init__(self):
        self._lines: list[str] = []
        self._head: list[str] = []
        self._count = 0
        self.ending = ""  # the location that is appended to operations
        self._constants: dict = {}
        # scalars already broadcast in this body, by name, type and location
        self._broadcast: dict[tuple[str, str, str], Value] = {}
        self.facts = Facts()
        # The values of the dimension variables in the function that is being written. Every private
        # function of a program with variables takes them as its first arguments, so that XLA can
        # replace them by numbers there too.
        self.variables: dict[str, Value] = {}

    # for the attributes that rules write
    i64_array = staticmethod(i64_array)

    def value(self, aval) -> Value:
        """A new name."""
        self._count = n = self._count + 1
        return Value(f"%{n}", aval, known_types.get(aval) or tensor_type(aval))

    def op(self, opname: str, out, *values: Value, attrs: str = "", regions=()) -> Value:
        """Write an operation with one result of aval `out`.

        Args:
            opname: the name; without a dialect (`chlo.erf`) it is StableHLO's.
            attrs: what stands between the braces of the attribute dictionary.
            regions: texts made by `region`.
        """
        self._count = n = self._count + 1
        if regions:
            self.facts.structured.add(opname)
        t = known_types.get(out) or tensor_type(out)
        if len(values) == 2:
            x, y = values
            names, types = f"{x.name}, {y.name}", f"{x.type}, {y.type}"
        elif len(values) == 1:
            names, types = values[0].name, values[0].type
        else:
            names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
        if "." not in opname:
            opname = "stablehlo." + opname
        middle = f" ({', '.join(regions)})" if regions else ""
        if attrs:
            self._lines.append(f'%{n} = "{opname}"({names}){middle} {{{attrs}}} : ({types}) -> {t}{self.ending}')
        else:
            self._lines.append(f'%{n} = "{opname}"({names}){middle} : ({types}) -> {t}{self.ending}')
        return Value(f"%{n}", out, t)

    def ops(self, opname: str, outs, *values: Value, attrs: str = "", regions=()) -> list[Value]:
        """Write an operation with any number of results."""
        if len(outs) == 1:
            return [self.op(opname, outs[0], *values, attrs=attrs, regions=regions)]
        types = [tensor_type(a) for a in outs]
        self._count = n = self._count + 1
        if regions:
            self.facts.structured.add(opname)
        head = f"%{n}:{len(outs)} = " if outs else ""
        name = opname if "." in opname else f"stablehlo.{opname}"
        middle = f" ({', '.join(regions)})" if regions else ""
        tail = f" {{{attrs}}}" if attrs else ""
        self._lines.append(
            f'{head}"{name}"({", ".join([v.name for v in values])}){middle}{tail}'
            f" : ({', '.join([v.type for v in values])}) -> ({', '.join(types)}){self.ending}"
        )
        return [Value(f"%{n}#{i}", a, t) for i, (a, t) in enumerate(zip(outs, types))]

    def written(self, text: str, outs, *values: Value) -> list[Value]:
        """Write an operation in its own form, `text`, in which its operands are named already."""
        types = [tensor_type(a) for a in outs]
        self._count = n = self._count + 1
        names = [f"%{n}"] if len(outs) == 1 else [f"%{n}#{i}" for i in range(len(outs))]
        results = types[0] if len(outs) == 1 else f"({', '.join(types)})"
        head = "" if not outs else f"%{n} = " if len(outs) == 1 else f"%{n}:{len(outs)} = "
        self._lines.append(f"{head}{text} : ({', '.join([v.type for v in values])}) -> {results}{self.ending}")
        return [Value(name, a, t) for name, a, t in zip(names, outs, types)]

    def constant(self, x, aval) -> Value:
        """A constant with the bits of `x`, a scalar or an array of the aval's shape.

        A scalar given for a larger aval fills it.
        """
        t = type(x)
        if t is int or t is bool or (t is float and x):  # not 0.0, which equals -0.0
            key = t, x, aval
            found = self._constants.get(key)
            if found is None:
                found = self._scalar(x, aval)
                if not is_symbolic_shape(aval.shape):
                    self._constants[key] = found
            return found
        host = getattr(x, "host", None)
        if host is not None and not host.ndim:
            # A scalar may occur at many places; it is kept, so that its id is not reused.
            known = id(x), aval
            kept = self._constants.get(known)
            if kept is None:
                kept = self._constants[known] = x, self._scalar(host[()], aval)
            return kept[1]
        x = x if host is None else host
        if not isinstance(x, np.ndarray) or not x.ndim:
            return self._scalar(x[()] if isinstance(x, np.ndarray) else x, aval)
        if x.shape != aval.shape:
            raise ValueError(f"constant of shape {x.shape} does not fit the type {aval}")
        dtype = storage_dtype(aval.dtype)
        return self._constant(dense(x if x.dtype == dtype else x.astype(dtype)), aval)

    splat = constant

    def _scalar(self, x, aval) -> Value:
        if is_symbolic_shape(aval.shape):  # of size 0 too
            return self.broadcast_in_dim(self._scalar(x, make_aval((), aval.dtype, False)), aval, ())
        text = scalar_text(x, storage_dtype(aval.dtype))
        found = self._constant(f"dense<{text}>" if aval.size != 0 else "dense<>", aval)
        if text.lstrip("-").isdigit():
            found.literal = int(text)
        return found

    def _constant(self, literal: str, aval) -> Value:
        t = tensor_type(aval)
        key = (literal, t)
        found = self._constants.get(key)
        if found is None or found.aval is not aval:
            if found is None:
                self._count = n = self._count + 1
                self._head.append(f'%{n} = "stablehlo.constant"() {{value = {literal} : {t}}} : () -> {t}')
                found = self._constants[key] = Value(f"%{n}", aval, t)
            else:
                found = Value(found.name, aval, t)
        return found

    def region(self, arg_avals, fn) -> str:
        """The text of a region; `fn` takes its arguments as values and returns its results."""
        outer = self._lines, self._broadcast, self.ending
        self._lines, self._broadcast = [], {}
        self.ending = ""  # the operation that has the region carries the location
        try:
            args = [self.value(a) for a in arg_avals]
            outs = fn(*args)
            outs = [outs] if isinstance(outs, Value) else list(outs)
            names, types = ", ".join([v.name for v in outs]), ", ".join([v.type for v in outs])
            self._lines.append(f'"stablehlo.return"({names}) : ({types}) -> ()\n}}')
            body = "\n".join(self._lines)
        finally:
            self._lines, self._broadcast, self.ending = outer
        head = f"^bb0({', '.join([f'{v.name}: {v.type}' for v in args])}):\n" if args else ""
        return f"{{\n{head}{body}"

    def isolated_region(self, arg_avals, fn, end: str) -> str:
        """As `region`, for operations whose regions cannot read outer values, even constants."""
        saved = self._lines, self._broadcast, self._head, self._constants, self.ending
        self._lines, self._broadcast, self._head, self._constants, self.ending = [], {}, [], {}, ""
        try:
            args = [self.value(a) for a in arg_avals]
            outs = list(fn(*args))
            body = "".join([line + "\n" for line in (*self._head, *self._lines)])
        finally:
            self._lines, self._broadcast, self._head, self._constants, self.ending = saved
        head = f"^bb0({', '.join([f'{v.name}: {v.type}' for v in args])}):\n" if args else ""
        names, types = ", ".join([v.name for v in outs]), ", ".join([v.type for v in outs])
        return f'{{\n{head}{body}"{end}"({names}) : ({types}) -> ()\n}}'

    def body(self, arg_avals, fn, prefix: str = "%arg") -> tuple[list[Value], list[Value], str]:
        """The arguments, results and text of a function body, with its own names and constants."""
        saved = self._lines, self._broadcast, self._head, self._constants, self._count, self.ending
        self._lines, self._broadcast, self._head, self._constants = [], {}, [], {}
        self._count, self.ending = 0, ""
        try:
            args = [Value(f"{prefix}{i}", a, tensor_type(a)) for i, a in enumerate(arg_avals)]
            outs = list(fn(*args))
            return args, outs, "\n".join(self._head + self._lines)
        finally:
            (self._lines, self._broadcast, self._head, self._constants, self._count, self.ending) = saved

    # -- sizes --------------------------------------------------------------------------------------

    def dimension(self, dim) -> Value:
        """The value of a dimension, an int32 scalar.

        Raises:
            KeyError: the dimension has a variable that the program does not define.
        """
        return dimension_value(self, dim) if type(dim) is SymbolicDim else self.constant(int(dim), SIZE)

    def number(self, n, dtype) -> Value:
        """An integer, or the value of a dimension, as a scalar of a dtype."""
        if type(n) is not SymbolicDim:
            return self.constant(n, make_aval((), dtype, False))
        return self.convert(self.dimension(n), dtype)

    def sizes(self, dims) -> Value:
        """A shape, or another list of dimensions, as an int32 vector."""
        if SymbolicDim not in map(type, dims):
            return self.constant(np.array(dims, np.int32), make_aval((len(dims),), SIZE.dtype, False))
        one = make_aval((1,), SIZE.dtype, False)
        parts = [self.op("reshape", one, self.dimension(d)) for d in dims]
        if len(parts) == 1:
            return parts[0]
        return self.op("concatenate", make_aval((len(parts),), SIZE.dtype, False), *parts, attrs="dimension = 0 : i64")

    def sizes_attribute(self, names, *lists) -> str:
        """The attribute that tells the sizes within a region, in terms of the dimension variables `names`."""
        return sizes_attribute(names, *lists)

    # -- shapes -------------------------------------------------------------------------------------

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
        return self.broadcast_in_dim(x, make_aval(tuple(shape), x.aval.dtype, x.aval.weak_type), dims)

    def reshape(self, x: Value, shape) -> Value:
        out = make_aval(tuple(shape), x.aval.dtype, x.aval.weak_type)
        return x if out.shape == x.aval.shape else self.reshape_to(x, out)

    def reshape_to(self, x: Value, out) -> Value:
        """The same elements as another type of the same storage."""
        return self.op("dynamic_reshape", out, x, self.sizes(out.shape)) if is_open(out) else self.op("reshape", out, x)

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

    # -- parts and wholes ---------------------------------------------------------------------------

    def slice(self, x: Value, starts: Sequence, limits: Sequence, strides: Sequence | None = None, out=None) -> Value:
        """The elements from `starts` to before `limits` along each axis, in steps of `strides`.

        Args:
            out: the result's type, if it is at hand.
        """
        strides = (1,) * len(starts) if strides is None else strides
        if out is None:
            sizes = [(b - a + s - 1) // s for a, b, s in zip(starts, limits, strides)]
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        if is_symbolic_shape((*starts, *limits, *strides)):
            # An empty slice backwards may begin behind its limit, which XLA refuses.
            starts = [smaller(a, b) for a, b in zip(starts, limits)]
            return self.op("real_dynamic_slice", out, x, *[self.sizes(ends) for ends in (starts, limits, strides)])
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

    def pad(self, x: Value, fill: Value, low: Sequence, high: Sequence, interior: Sequence, out=None) -> Value:
        """`x` padded by the scalar `fill` before, behind and between elements.

        Negative widths crop.

        Args:
            out: the result's type, if it is at hand.
        """
        if out is None:
            sizes = [
                n + a + b + (max(n - 1, 0) * s if s else 0) for n, a, b, s in zip(x.aval.shape, low, high, interior)
            ]
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        if is_symbolic_shape((*low, *high)):
            return self.op("dynamic_pad", out, x, fill, *[self.sizes(widths) for widths in (low, high, interior)])
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
        return xs[0] if len(xs) == 1 else self.op("concatenate", out, *xs, attrs=f"dimension = {axis} : i64")

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

    def inside(self, starts: Sequence[Value], shape: Sequence, sizes: Sequence) -> list[Value]:
        """Start indices of a block of these sizes, moved so that it lies inside.

        XLA moves them itself, but not where it makes one block of a block of a block.
        """
        found = []
        for i, n, m in zip(self._indices(starts, shape), shape, sizes):
            if type(n) is int and type(m) is int and (i.literal is None or not 0 <= i.literal <= n - m):
                i = self.op("clamp", i.aval, self.constant(0, i.aval), i, self.constant(n - m, i.aval))
            found.append(i)
        return found

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence, out=None) -> Value:
        """A block of these sizes; the start indices are clamped so that it lies inside."""
        if out is None:
            out = make_aval(tuple(sizes), x.aval.dtype, False)
        starts = self._indices(starts, x.aval.shape)
        if not is_symbolic_shape(sizes):
            return self.op("dynamic_slice", out, x, *starts, attrs=f"slice_sizes = {i64_array(sizes)}")
        vector = make_aval((len(sizes),), SIZE.dtype, False)
        one = make_aval((1,), SIZE.dtype, False)
        first = self.concatenate([self.op("reshape", one, self._int32(s)) for s in starts], 0, vector)
        span = self.sizes(sizes)
        last = self.op("subtract", vector, self.sizes(x.aval.shape), span)
        first = self.op("clamp", vector, self.constant(np.zeros(len(sizes), np.int32), vector), first, last)
        return self.op(
            "real_dynamic_slice", out, x, first, self.op("add", vector, first, span), self.constant(1, vector)
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

    # -- elements -----------------------------------------------------------------------------------

    def convert(self, x: Value, dtype) -> Value:
        """Convert `x`: floats to integers truncate and saturate, anything nonzero becomes True."""
        if x.aval.dtype == dtype:
            return x
        out = make_aval(x.aval.shape, dtype, False)
        if element_type(dtype) == "i1" and element_type(x.aval.dtype) != "i1":
            return self.compare(x, self.constant(0, x.aval), "NE")
        if storage_dtype(x.aval.dtype).kind == "c" and storage_dtype(dtype).kind != "c":
            real = np.dtype("float32" if storage_dtype(x.aval.dtype).itemsize == 8 else "float64")
            return self.convert(self.op("real", make_aval(x.aval.shape, real, False), x), dtype)
        found = self.op("convert", out, x)
        found.definition = "convert", x, ()
        return found

    def bitcast(self, x: Value, out) -> Value:
        """The same bits as another type; `out` has an axis more or less when the widths differ."""
        return self.op("bitcast_convert", out, x)

    def compare(self, x: Value, y: Value, direction: str, kind: str | None = None) -> Value:
        """Compare by EQ, NE, LT, LE, GT or GE.

        The `kind` TOTALORDER sorts -NaN < -0 < 0 < NaN; by default the kind follows from the dtype.
        """
        kind = kind or compare_kind(x.aval.dtype)
        out = make_aval(x.aval.shape, np.dtype(bool), False)
        attrs = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op("compare", out, x, y, attrs=attrs)

    def select(self, pred: Value, x: Value, y: Value) -> Value:
        """`x` where `pred`, else `y`; `pred` is a scalar or of their shape."""
        return self.op("select", x.aval, pred, x, y)


def compare_kind(dtype) -> str:
    element = element_type(dtype)
    return "FLOAT" if element[0] in "fbc" else "UNSIGNED" if element == "i1" or element[0] == "u" else "SIGNED"
