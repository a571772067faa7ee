"""Reductions over windows: reduce_window_sum, _max and _min, and what their derivatives need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import as_dim
from gradix._core.divisions import entries, resized
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import max_p, min_p
from gradix._ops.basis import to_axis, zeros
from gradix._ops.comparison import ge_p, le_p
from gradix._ops.indexing.slicing import pad
from gradix._ops.reduction_identities import highest, lowest
from gradix._ops.shape import broadcast_in_dim, reshape
from gradix._ops.window_padding import PaddingType, dilated, padtype_to_pads, window_count
from gradix._ops.windows.host import stretched, unstretched, windows
from gradix._ops.windows.lowering import (
    emit_gather_winners,
    emit_reduce_window,
    emit_scatter_winners,
    emit_select_and_scatter,
)

if TYPE_CHECKING:
    from gradix._core.annotations import Size

_WIDE = np.dtype("float32")


class Window(NamedTuple):
    """The parameters that all operations over windows share, with one entry per axis."""

    window_dimensions: tuple
    window_strides: tuple
    padding: tuple
    base_dilation: tuple
    window_dilation: tuple

    def result_shape(self, shape) -> tuple:
        return tuple(
            [
                window_count(dilated(n, b) + low + high, dilated(k, d), s)
                for n, k, s, (low, high), b, d in zip(shape, *self)
            ]
        )

    def with_axis(self, axis: int) -> Window:
        """The window for arrays with a new axis at `axis`, along which it has size 1."""
        new = (1, 1, (0, 0), 1, 1)
        return Window(*[(*v[:axis], n, *v[axis:]) for v, n in zip(self, new)])

    def params(self) -> dict:
        return self._asdict()


def windowed(params) -> Window:
    ones = (1,) * len(params["window_dimensions"])
    return Window(
        params["window_dimensions"],
        params["window_strides"],
        params["padding"],
        params.get("base_dilation", ones),
        params.get("window_dilation", ones),
    )


class ReduceWindow(Primitive):
    """Reduce each window of one array by a ufunc."""

    def __init__(self, name: str, ufunc, hlo: str, identity):
        super().__init__(name)
        self.ufunc, self.hlo, self.identity = ufunc, hlo, identity

    def abstract(self, x, **params):
        if x.dtype not in dtypes.NUMERIC:
            raise TypeError(
                f"{self.name} does not accept dtype {dtypes.dtype_name(x.dtype)}: give it numbers, for "
                "example x.astype('int32')."
            )
        return make_aval(windowed(params).result_shape(x.shape), x.dtype, x.weak_type)

    def host(self, x, **params):
        w = windowed(params)
        dtype, fill = x.dtype, self.identity(x.dtype)
        if dtype in dtypes.FLOAT and dtype.itemsize < 4:
            x = x.astype(_WIDE)
        seen = windows(
            stretched(x, w.base_dilation, w.padding, fill), w.window_dimensions, w.window_strides, w.window_dilation
        )
        if not seen.size:
            return np.full(seen.shape[: x.ndim], fill, dtype)
        y = self.ufunc.reduce(seen, axis=tuple(range(x.ndim, 2 * x.ndim)), dtype=x.dtype)
        return y if y.dtype == dtype else y.astype(dtype)

    def batch(self, size, args, axes, **params):
        return bind(self, args, windowed(params).with_axis(axes[0]).params()), axes[0]

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, avals[0], outs[0].shape, mesh)]

    def lower(self, em, out, x, **params):
        x = self.widened(em, x)
        aval, scalar = make_aval(out.shape, x.aval.dtype), make_aval((), x.aval.dtype)
        initial = em.constant(self.identity(scalar.dtype), scalar)
        (total,) = emit_reduce_window(em, [aval], [x], [initial], windowed(params), lambda a, b: [self.both(em, a, b)])
        return em.convert(total, out.dtype)

    def widened(self, em, x):
        """Convert the operand to the dtype of the reduction.

        Half precisions are summed in float32.
        """
        is_narrow = x.aval.dtype in dtypes.FLOAT and x.aval.dtype.itemsize < 4 and self.hlo == "add"
        return em.convert(x, _WIDE) if is_narrow else x

    def both(self, em, x, y):
        """Combine two numbers or arrays by the operation of the reduction."""
        return em.op(self.hlo, x.aval, x, y)


class ReduceWindowSum(ReduceWindow):
    mesh = MeshTraits(linear="all")

    def jvp(self, primals, tangents, **params):
        (t,) = tangents
        return bind(self, primals, params), None if t is None else bind(self, (t,), params)

    def transpose(self, ct, x, **params):
        w = windowed(params)
        if not ct.aval.size or not x.aval.size:
            return [zeros(x.aval)]
        if _tiles(w):  # each element is in at most one window
            return [
                pad(
                    _repeated(ct, w.window_dimensions),
                    _zero_of(ct),
                    [
                        (-low, n + low - m * k, 0)
                        for n, m, k, (low, _) in zip(x.shape, ct.aval.shape, w.window_dimensions, w.padding)
                    ],
                )
            ]
        config = []
        for n, m, k, s, (low, _), b, d in zip(x.shape, ct.aval.shape, *w):
            reach, spread = dilated(k, d) - 1, dilated(m, s)
            config.append((reach - low, dilated(n, b) + low - spread, s - 1))
        spread = pad(ct, _zero_of(ct), config)
        ones = (1,) * len(config)
        back = Window(w.window_dimensions, w.base_dilation, ((0, 0),) * len(config), ones, w.window_dilation)
        return [bind(self, (spread,), back.params())]


def _tiles(w: Window) -> bool:
    """Whether windows neither overlap nor leave gaps."""
    return w.window_strides == w.window_dimensions and all(d == 1 for d in (*w.base_dilation, *w.window_dilation))


def _repeated(x, counts):
    """Repeat each element `counts[i]` times along axis i."""
    shape = [m for pair in zip(x.aval.shape, counts) for m in pair]
    return reshape(
        broadcast_in_dim(x, shape, range(0, 2 * x.aval.ndim, 2)), [n * k for n, k in zip(x.aval.shape, counts)]
    )


class ReduceWindowExtremum(ReduceWindow):
    def both(self, em, x, y):
        return em.lower(max_p if self.hlo == "maximum" else min_p, x.aval, x, y)

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        y = bind(self, primals, params)
        if t is None or x.aval.dtype not in dtypes.INEXACT:
            return y, None
        prim = ge_p if self.hlo == "maximum" else le_p
        return y, bind(select_and_gather_add_p, (t, x), {"select_prim": prim, **windowed(params).params()})


def _zero_of(x):
    return zeros(make_aval((), x.aval.dtype))


def is_maximum(select_prim) -> bool:
    return select_prim is ge_p


def window_fill(select_prim, dtype):
    return lowest(dtype) if is_maximum(select_prim) else highest(dtype)


def _host_winners(x, w, select_prim):
    """The position of the first extremum in each flattened window."""
    if x.dtype.isbuiltin != 1:
        x = x.astype(_WIDE)
    seen = windows(
        stretched(x, w.base_dilation, w.padding, window_fill(select_prim, x.dtype)),
        w.window_dimensions,
        w.window_strides,
        w.window_dilation,
    )
    flat = seen.reshape((*seen.shape[: x.ndim], -1))
    return (np.argmax if is_maximum(select_prim) else np.argmin)(flat, axis=-1)


class SelectAndGatherAdd(Primitive):
    """For each window, the tangent at the operand's first extremum; linear in the tangents."""

    mesh = MeshTraits(linear="first")

    def abstract(self, t, x, *, select_prim, **params):
        if t.shape != x.shape:
            raise TypeError(f"{self.name} takes tangents and an operand of one shape, got {t.shape} and {x.shape}.")
        return make_aval(windowed(params).result_shape(x.shape), t.dtype)

    def host(self, t, x, *, select_prim, **params):
        w = windowed(params)
        seen = windows(
            stretched(t, w.base_dilation, w.padding), w.window_dimensions, w.window_strides, w.window_dilation
        )
        if not seen.size:
            return np.zeros(seen.shape[: t.ndim], t.dtype)
        flat = seen.reshape((*seen.shape[: t.ndim], -1))
        return np.take_along_axis(flat, _host_winners(x, w, select_prim)[..., None], -1)[..., 0]

    def jvp(self, primals, tangents, **params):
        t = tangents[0]
        return bind(self, primals, params), None if t is None else bind(self, (t, primals[1]), params)

    def transpose(self, ct, t, x, **params):
        return [bind(select_and_scatter_add_p, (ct, x), params), None]

    def batch(self, size, args, axes, *, select_prim, **params):
        axis = next(a for a in axes if a is not None)
        args = [to_axis(size, v, a, axis) for v, a in zip(args, axes)]
        return bind(self, args, {"select_prim": select_prim, **windowed(params).with_axis(axis).params()}), axis

    def divide(self, mesh, avals, outs, params):
        return [resized(self.name, a, outs[0].shape, mesh) for a in avals if a.division is not None][:1]

    def lower(self, em, out, t, x, *, select_prim, **params):
        if not out.size:
            return em.constant(0, out)
        fill = window_fill(select_prim, x.aval.dtype)
        return emit_gather_winners(
            em, out, t, x, windowed(params), "GT" if is_maximum(select_prim) else "LT", fill=fill
        )

    def show(self, params):
        return dict(params)


class SelectAndScatterAdd(Primitive):
    """Add the source of each window at the operand's first extremum there; linear in the source."""

    mesh = MeshTraits(linear="first")

    def abstract(self, source, x, *, select_prim, **params):
        shape = windowed(params).result_shape(x.shape)
        if source.shape != shape:
            raise TypeError(f"{self.name} takes one source element per window, of shape {shape}, got {source.shape}.")
        return make_aval(x.shape, source.dtype)

    def host(self, source, x, *, select_prim, **params):
        w = windowed(params)
        if not source.size or not x.size:
            return np.zeros(x.shape, source.dtype)
        at = np.unravel_index(_host_winners(x, w, select_prim), w.window_dimensions)
        places = np.indices(source.shape, sparse=True)
        coordinates = tuple([p * s + k * d for p, k, s, d in zip(places, at, w.window_strides, w.window_dilation)])
        extent = [dilated(n, b) + low + high for n, b, (low, high) in zip(x.shape, w.base_dilation, w.padding)]
        wide = np.zeros(extent, source.dtype)
        np.add.at(wide, coordinates, source)
        return unstretched(wide, x.shape, w.base_dilation, w.padding)

    def jvp(self, primals, tangents, **params):
        t = tangents[0]
        return bind(self, primals, params), None if t is None else bind(self, (t, primals[1]), params)

    def transpose(self, ct, source, x, **params):
        return [bind(select_and_gather_add_p, (ct, x), params) if type(source) is Linear else None, None]

    def batch(self, size, args, axes, *, select_prim, **params):
        axis = next(a for a in axes if a is not None)
        args = [to_axis(size, v, a, axis) for v, a in zip(args, axes)]
        return bind(self, args, {"select_prim": select_prim, **windowed(params).with_axis(axis).params()}), axis

    def divide(self, mesh, avals, outs, params):
        source, x = avals
        if x.division is None:
            return [resized(self.name, source, x.shape, mesh)]
        resized(self.name, x, source.shape, mesh)
        return [entries(x)]

    def lower(self, em, out, source, x, *, select_prim, **params):
        w = windowed(params)
        if not out.size or not source.aval.size:
            return em.constant(0, out)
        fill = window_fill(select_prim, x.aval.dtype)
        if any(d != 1 for d in w.window_dilation):
            return emit_scatter_winners(
                em, out, source, x, w, "maximum" if is_maximum(select_prim) else "minimum", fill=fill
            )
        return emit_select_and_scatter(em, out, source, x, w, "GE" if is_maximum(select_prim) else "LE", fill=fill)

    def show(self, params):
        shown = dict(params)
        for name in ("base_dilation", "window_dilation"):
            if all(d == 1 for d in shown.get(name, ())):
                shown.pop(name, None)
        return shown


reduce_window_sum_p = ReduceWindowSum("reduce_window_sum", np.add, "add", lambda dtype: 0)
reduce_window_max_p = ReduceWindowExtremum("reduce_window_max", np.maximum, "maximum", lowest)
reduce_window_min_p = ReduceWindowExtremum("reduce_window_min", np.minimum, "minimum", highest)
select_and_gather_add_p = SelectAndGatherAdd("select_and_gather_add")
select_and_scatter_add_p = SelectAndScatterAdd("select_and_scatter_add")


# -- faces -----------------------------------------------------------------------------------------


def window_of(
    name: str, shape, window_dimensions, window_strides, padding, *, base_dilation, window_dilation
) -> Window:
    """The checked window over arrays of `shape`; padding may be a name.

    Raises:
        TypeError: lengths differ, or an entry is not positive.
    """
    n = len(shape)
    dims = tuple(map(as_dim, window_dimensions))
    if len(dims) != n:
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape "
            f"{tuple(shape)} with window_dimensions {dims}."
        )
    fields = {
        "window_dimensions": dims,
        "window_strides": window_strides,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    for field, values in fields.items():
        values = fields[field] = (1,) * n if values is None else tuple(map(as_dim, values))
        if len(values) != n:
            raise TypeError(
                f"{name} got inconsistent {field} and window_dimensions: got {field} {values} and "
                f"window_dimensions {dims}."
            )
        if any(v < 1 for v in values):
            raise TypeError(f"{name} {field} must have every element be strictly positive, got {values}.")
    if isinstance(padding, (str, PaddingType)):
        reach = [dilated(k, d) for k, d in zip(dims, fields["window_dilation"])]
        padding = padtype_to_pads(shape, reach, fields["window_strides"], padding)
    pads = tuple([(as_dim(low), as_dim(high)) for low, high in padding])
    if len(pads) != n:
        raise ValueError(
            f"{name} needs one (low, high) padding per axis: got {len(pads)} for operand shape {tuple(shape)}."
        )
    return Window(dims, fields["window_strides"], pads, fields["base_dilation"], fields["window_dilation"])


def reduce_window_shape_tuple(
    operand_shape: Sequence[Size],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple:
    """The shape of a reduction over windows.

    Args:
        operand_shape: the sizes of the operand's axes.
        window_dimensions, window_strides: the sizes and steps of the windows, one for each axis.
        padding: pairs (low, high), one for each axis.
        base_dilation, window_dilation: the distance of elements of operand and window
            after others are inserted between them; None is 1.

    Example:
        >>> from gradix import lax
        >>> lax.reduce_window_shape_tuple((2, 8), (2, 2), (1, 2), ((0, 0), (1, 1)))
        (1, 5)
    """
    return window_of(
        "reduce_window",
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    ).result_shape(operand_shape)
