"""Convolution: conv_general_dilated with strides, dilations, feature and batch groups."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import as_dim, is_symbolic_shape
from gradix._core.divisions import entries, resized, undivided
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.basis import move_axis, zeros
from gradix._ops.conv.dimension_numbers import ConvDimensionNumbers, conv_dimension_numbers
from gradix._ops.conv.host import convolve
from gradix._ops.conv.types import check_operands, result_dtype, work_dtype
from gradix._ops.convert import convert_element_type
from gradix._ops.dot_types import rounded_to
from gradix._ops.families import bilinear_jvp
from gradix._ops.indexing.slicing import pad
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.precision import canonicalize_precision, precision_asked
from gradix._ops.shape import reshape, rev
from gradix._ops.sharding import divided, to_auto_p
from gradix._ops.window_padding import PaddingType, dilated, padtype_to_pads, per_axis, window_count

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.conv.dimension_numbers import ConvGeneralDilatedDimensionNumbers
    from gradix._ops.precision import PrecisionLike

_PARAMS = (
    "window_strides",
    "padding",
    "lhs_dilation",
    "rhs_dilation",
    "dimension_numbers",
    "feature_group_count",
    "batch_group_count",
    "precision",
    "preferred_element_type",
)
_COUNTS = np.dtype("int32")


class ConvGeneralDilated(Primitive):
    """Slide a kernel over an input and contract features, as `conv_general_dilated` describes."""

    mesh = MeshTraits(linear="one")
    costly = True

    def abstract(
        self,
        lhs,
        rhs,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
        preferred_element_type=None,
        **_,
    ):
        check_operands(lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        sizes = [lhs.shape[lhs_spec[0]] // batch_group_count, rhs.shape[rhs_spec[0]]]
        for i, (low, high) in enumerate(padding):
            n = dilated(lhs.shape[lhs_spec[i + 2]], lhs_dilation[i]) + low + high
            if type(n) is int and n < 0:
                raise ValueError(
                    f"conv_general_dilated: negative padding is larger than the size of the corresponding "
                    f"dimension: got padding={tuple(padding)}, which takes {-n} more elements from "
                    f"spatial axis {i} than the {n - low - high} there are."
                )
            window = dilated(rhs.shape[rhs_spec[i + 2]], rhs_dilation[i])
            sizes.append(window_count(n, window, window_strides[i]))
        shape = tuple([sizes[out_spec.index(i)] for i in range(len(out_spec))])
        return make_aval(shape, result_dtype(lhs.dtype, preferred_element_type), lhs.weak_type and rhs.weak_type)

    def host(self, lhs, rhs, *, preferred_element_type=None, precision=None, out_sharding=None, **params):
        out = lhs.dtype if preferred_element_type is None else preferred_element_type
        work = work_dtype(lhs.dtype, out)
        y = convolve(lhs.astype(work, copy=False), rhs.astype(work, copy=False), **params)
        if rounded_to(lhs.dtype, out) is not None:
            y = y.astype(lhs.dtype)
        return y if y.dtype == out else y.astype(out)

    jvp = bilinear_jvp

    def transpose(self, ct, lhs, rhs, **params):
        params.update(preferred_element_type=None)
        # Products are summed over the features of the result, or over batch and space: the compiler divides these.
        batch, features, *space = params["dimension_numbers"][2]
        row = entries(ct.aval)
        if any(row[i] is not None for i in ((features,) if type(lhs) is Linear else (batch, *space))):
            ct, lhs, rhs = [a if type(a) is Linear else _left_to_the_compiler(a) for a in (ct, lhs, rhs)]
        if type(lhs) is Linear:
            return [_lhs_cotangent(ct, lhs, convert_element_type(rhs, ct.aval.dtype), **params), None]
        return [None, _rhs_cotangent(ct, convert_element_type(lhs, ct.aval.dtype), rhs, **params)]

    def batch(self, size, args, axes, *, dimension_numbers, feature_group_count, batch_group_count, **params):
        (x, w), (a, b) = args, axes
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        groups = feature_group_count * batch_group_count
        out_axis, out_groups = out_spec[1], groups
        # The batch axis becomes the outermost group axis.
        if a is not None and b is not None:
            into = lhs_spec[0] if batch_group_count > 1 else lhs_spec[1]
            x, w, out_groups = _merged(x, a, into, 1), _merged(w, b, rhs_spec[0], 1), 1
            if batch_group_count > 1:
                batch_group_count *= size
            else:
                feature_group_count *= size
        elif a is not None:
            x, out_axis, out_groups = _merged(x, a, lhs_spec[0], batch_group_count), out_spec[0], 1
        else:
            w = _merged(w, b, rhs_spec[0], groups)
        y = bind(
            self,
            (x, w),
            {
                "dimension_numbers": dimension_numbers,
                "feature_group_count": feature_group_count,
                "batch_group_count": batch_group_count,
                **params,
            },
        )
        return _unmerged(y, size, out_axis, out_groups)

    def divide(self, mesh, avals, outs, params):
        (lhs, rhs), (l, r, o) = avals, params["dimension_numbers"]
        if params.get("batch_group_count", 1) != 1:
            return super().divide(mesh, avals, outs, params)
        undivided(self.name, lhs, l[1:2], "features")
        undivided(self.name, rhs, r[1:], "input features and space")
        sizes, out = list(lhs.shape), [None] * outs[0].ndim
        for i, k in zip(l[2:], o[2:]):
            sizes[i] = outs[0].shape[k]
        space = resized(self.name, lhs, sizes, mesh)  # devices exchange what windows reach of their neighbours
        for i, k in zip((l[0], *l[2:]), (o[0], *o[2:])):
            out[k] = space[i]
        out[o[1]] = entries(rhs)[r[0]]
        return [tuple(out)]

    def lower(
        self,
        em,
        out,
        lhs,
        rhs,
        *,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
        preferred_element_type=None,
        **_,
    ):
        aval, first = out, rounded_to(lhs.aval.dtype, out.dtype)
        if out.dtype in dtypes.BOOL:
            aval, lhs, rhs = (make_aval(out.shape, _COUNTS), em.convert(lhs, _COUNTS), em.convert(rhs, _COUNTS))
        asked = precision_asked(precision, lhs.aval.dtype) if isinstance(precision, tuple) else None
        # Where space is divided over some mesh axes and repeated over others, XLA counts twice.
        lhs = em.gathered(lhs, dimension_numbers[0][2:])
        rhs = em.gathered(rhs, dimension_numbers[1][2:])
        attrs = (
            f"window_strides = {em.i64_array(window_strides)}, "
            f"lhs_dilation = {em.i64_array(lhs_dilation)}, "
            f"padding = dense<{[list(p) for p in padding] or ''}> : tensor<{len(padding)}x2xi64>, "
            f"rhs_dilation = {em.i64_array(rhs_dilation)}, "
            f"dimension_numbers = #stablehlo.conv<{_layouts(dimension_numbers)}>, "
            f"feature_group_count = {feature_group_count} : i64, "
            f"batch_group_count = {batch_group_count} : i64{em.precision_text(asked)}"
        )
        if not is_symbolic_shape((*lhs.aval.shape, *rhs.aval.shape, *aval.shape)):
            outputs, inputs, *space = [rhs.aval.shape[i] for i in dimension_numbers[1]]
            terms = inputs * prod(space)
            em.facts.add_convolution(
                dtype=aval.dtype,
                kernel=tuple(space),
                result=tuple([aval.shape[i] for i in dimension_numbers[2][2:]]),
                inputs=inputs,
                outputs=outputs,
                feature_groups=feature_group_count,
                batch_groups=batch_group_count,
                lhs_dilation=tuple(lhs_dilation),
                multiplications=prod(aval.shape) * terms,
            )
            em.note_product("convolution", aval, lhs, rhs, attrs, terms)
        y = em.op("convolution", aval, lhs, rhs, attrs=attrs)
        y = em.gathered(y, dimension_numbers[2][2:])
        return em.convert(y if first is None else em.convert(y, first), out.dtype)

    def show(self, params):
        return {**{name: params[name] for name in _PARAMS}, "out_sharding": None}


def _left_to_the_compiler(x):
    """`x`, of whose division its type says nothing."""
    return x if x.aval.division is None else bind(to_auto_p, (x,), {})


conv_general_dilated_p = ConvGeneralDilated("conv_general_dilated")


def _layouts(numbers) -> str:
    """`[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`"""
    texts = []
    for spec, names in zip(numbers, ("bf", "oi", "bf")):
        order = [*names, *map(str, range(len(spec) - 2))]
        texts.append(f"[{', '.join([order[spec.index(i)] for i in range(len(spec))])}]")
    return f"{texts[0]}x{texts[1]}->{texts[2]}"


# -- adjoints --------------------------------------------------------------------------------------


def _sizes(shapes, numbers, lhs_dilation, rhs_dilation, strides):
    """Dilated extents of input, kernel and result along each axis of space."""
    return [
        [dilated(shape[i], d) for i, d in zip(spec[2:], dilation)]
        for shape, spec, dilation in zip(shapes, numbers, (lhs_dilation, rhs_dilation, strides))
    ]


def _lhs_cotangent(
    ct,
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    **params,
):
    """The cotangent of the input: `ct` convolved with the reversed kernel, features exchanged."""
    if not ct.aval.size or not rhs.aval.size:
        return zeros(lhs.aval)
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups = feature_group_count * batch_group_count
    kernel = _exchanged(rev(rhs, rhs_spec[2:]), rhs_spec[0], rhs_spec[1], groups)
    pads = []
    for n, k, m, (low, _) in zip(
        *_sizes(
            (lhs.shape, rhs.aval.shape, ct.aval.shape), dimension_numbers, lhs_dilation, rhs_dilation, window_strides
        ),
        padding,
    ):
        pads.append((k - 1 - low, n + low - m))
    numbers = ConvDimensionNumbers(out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec)
    x = bind(
        conv_general_dilated_p,
        (ct, kernel),
        {
            "window_strides": lhs_dilation,
            "padding": tuple(pads),
            "lhs_dilation": window_strides,
            "rhs_dilation": rhs_dilation,
            "dimension_numbers": numbers,
            "feature_group_count": groups,
            "batch_group_count": 1,
            **params,
        },
    )
    # The groups are among the features here, but belong to the batch.
    if batch_group_count > 1:
        x, axis = _unmerged(x, batch_group_count, lhs_spec[1], 1)
        x = _merged(x, axis, lhs_spec[0], 1)
    return convert_element_type(x, lhs.dtype)


def _rhs_cotangent(
    ct,
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count=1,
    batch_group_count=1,
    **params,
):
    """The cotangent of the kernel: the input convolved with `ct`, batch and features exchanged."""
    if not ct.aval.size or not lhs.aval.size:
        return zeros(rhs.aval)
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    pads = []
    for n, k, m, (low, _) in zip(
        *_sizes(
            (lhs.aval.shape, rhs.shape, ct.aval.shape), dimension_numbers, lhs_dilation, rhs_dilation, window_strides
        ),
        padding,
    ):
        pads.append((low, k - 1 + m - n - low))
    numbers = ConvDimensionNumbers(
        (lhs_spec[1], lhs_spec[0], *lhs_spec[2:]),
        (out_spec[1], out_spec[0], *out_spec[2:]),
        (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]),
    )
    w = bind(
        conv_general_dilated_p,
        (lhs, ct),
        {
            "window_strides": rhs_dilation,
            "padding": tuple(pads),
            "lhs_dilation": lhs_dilation,
            "rhs_dilation": window_strides,
            "dimension_numbers": numbers,
            "feature_group_count": batch_group_count,
            "batch_group_count": feature_group_count,
            **params,
        },
    )
    return convert_element_type(w, rhs.dtype)


def _exchanged(w, out: int, features: int, groups: int):
    """The kernel with its groups moved from the output features to the input features."""
    if groups == 1:
        return w
    w, axis = _unmerged(w, groups, out, 1)
    return _merged(w, axis, features, 1)


def _merged(x, axis: int, into: int, groups: int):
    """`x` with `axis` merged into the axis `into` of the rest, just inside of its `groups`."""
    x = move_axis(x, axis, 0)
    size, *shape = x.aval.shape
    if groups > 1:
        x = reshape(x, (size, *shape[:into], groups, shape[into] // groups, *shape[into + 1 :]))
    x = move_axis(x, 0, into + (groups > 1))
    return reshape(x, (*shape[:into], size * shape[into], *shape[into + 1 :]))


def _unmerged(y, size: int, out_of: int, groups: int):
    """The inverse of `_merged`: the result and the position of the axis taken out."""
    shape = y.aval.shape
    before, n, after = shape[:out_of], shape[out_of] // size, shape[out_of + 1 :]
    if groups == 1:
        return reshape(y, (*before, size, n, *after)), out_of
    y = move_axis(reshape(y, (*before, groups, size, n // groups, *after)), out_of + 1, out_of)
    return reshape(y, (*before, size, n, *after)), out_of


# -- face ------------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The n-dimensional convolution (correlation) of an input with a kernel.

    Args:
        lhs: the input, of rank n + 2.
        rhs: the kernel, of rank n + 2.
        window_strides: steps of the kernel, n integers.
        padding: "SAME", "SAME_LOWER", "VALID", or n pairs (low, high); negative ones crop.
        lhs_dilation: the distance of the input's elements after zeros are inserted between them, n
            integers; above 1 for transposed convolution.
        rhs_dilation: likewise for the kernel.
        dimension_numbers: three layouts such as ("NHWC", "HWIO", "NHWC"); None is NC…, OI…, NC….
        feature_group_count: the number of independent groups of input and output features.
        batch_group_count: the number of independent groups of the batch and the output features.
        precision, preferred_element_type: as for `dot_general`.

    Returns:
        An array of rank n + 2.

    Raises:
        TypeError: ranks or dtypes differ, or a layout does not fit.
        ValueError: sizes, groups or strides do not fit.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.conv_general_dilated(jnp.ones((1, 1, 5)), jnp.ones((1, 1, 3)), (1,), "SAME")
        Array([[[2., 3., 3., 3., 2.]]], dtype=float32)
    """
    if out_sharding is not None:
        return divided(
            conv_general_dilated,
            out_sharding,
            lhs,
            rhs,
            window_strides,
            padding,
            lhs_dilation,
            rhs_dilation,
            dimension_numbers,
            feature_group_count,
            batch_group_count,
            precision,
            preferred_element_type,
        )
    lhs, rhs = as_operand("conv_general_dilated", lhs), as_operand("conv_general_dilated", rhs)
    numbers = conv_dimension_numbers(lhs.aval.shape, rhs.aval.shape, dimension_numbers)
    n, name = len(numbers.lhs_spec) - 2, "conv_general_dilated"
    strides = per_axis(name, "window_strides", window_strides, n)
    lhs_dilation = per_axis(name, "lhs_dilation", lhs_dilation, n)
    rhs_dilation = per_axis(name, "rhs_dilation", rhs_dilation, n)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype(preferred_element_type, name)
    pads = _pads(lhs, rhs, padding, numbers, strides, (lhs_dilation, rhs_dilation))
    if any(map(is_symbolic_shape, pads)):
        lhs = _padded(lhs, pads, lhs_dilation, numbers)
        pads, lhs_dilation = ((0, 0),) * n, (1,) * n
    return bind(
        conv_general_dilated_p,
        (lhs, rhs),
        {
            "window_strides": strides,
            "padding": pads,
            "lhs_dilation": lhs_dilation,
            "rhs_dilation": rhs_dilation,
            "dimension_numbers": numbers,
            "feature_group_count": feature_group_count.__index__(),
            "batch_group_count": batch_group_count.__index__(),
            "precision": canonicalize_precision(precision),
            "preferred_element_type": preferred_element_type,
        },
    )


def _padded(lhs, pads, dilation, numbers):
    """The operand padded explicitly, as an attribute of a convolution cannot be symbolic."""
    config = [(0, 0, 0)] * lhs.aval.ndim
    for axis, (low, high), d in zip(numbers.lhs_spec[2:], pads, dilation):
        config[axis] = (low, high, d - 1)
    return pad(lhs, scalar_like(lhs, 0), config)


def _pads(lhs, rhs, padding, numbers, strides, dilations: tuple) -> tuple:
    lhs_dilation, rhs_dilation = dilations
    if isinstance(padding, (str, PaddingType)):
        if any(d != 1 for d in lhs_dilation):
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op: got "
                f"padding={padding!r} with lhs_dilation={lhs_dilation}. Please either exactly specify "
                "the required padding or use conv_transpose."
            )
        n = [lhs.aval.shape[i] for i in numbers.lhs_spec[2:]]
        k = [dilated(rhs.aval.shape[i], d) for i, d in zip(numbers.rhs_spec[2:], rhs_dilation)]
        return tuple(padtype_to_pads(n, k, strides, padding))
    try:
        pads = tuple([(as_dim(low), as_dim(high)) for low, high in padding])
    except (TypeError, AttributeError, ValueError):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence of (low, high) "
            f"pairs, got {padding}"
        ) from None
    if len(pads) != len(strides):
        raise TypeError(f"Wrong number of explicit pads for convolution: expected {len(strides)}, got {len(pads)}.")
    return pads
