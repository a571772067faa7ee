"""ragged_dot, with a matrix for each group of rows, and scaled_dot, with a scale for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradix._core import dtypes
from gradix._core.operators import Array
from gradix._ops.arithmetic import mul, sub
from gradix._ops.basis import broadcast_in_dim, move_axis, transpose
from gradix._ops.bitwise import bitwise_and
from gradix._ops.comparison import ge, lt
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.cumulative import cumsum
from gradix._ops.dot import dot_general
from gradix._ops.indexing.index_values import wide_index
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.select import choose
from gradix._ops.shape import reshape
from gradix._ops.sharding import divided

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, DTypeLike
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec
    from gradix._ops.dot import DotDimensionNumbers
    from gradix._ops.precision import PrecisionLike


class RaggedDotDimensionNumbers:
    """The axes of a ragged contraction: contracting, batch, ragged, and group axes.

    Args:
        dot_dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`,
            sequences of axes.
        lhs_ragged_dimensions: a sequence of one axis of `lhs`, which is divided into groups.
        rhs_group_dimensions: a sequence of one axis of `rhs`, along which the groups have their
            matrices; empty where the ragged axis is contracted or batched.

    Example:
        >>> from gradix import lax
        >>> lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0]).lhs_ragged_dimensions
        (0,)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(
        self, dot_dimension_numbers, lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]
    ):
        (lc, rc), (lb, rb) = dot_dimension_numbers
        self.dot_dimension_numbers = (tuple(lc), tuple(rc)), (tuple(lb), tuple(rb))
        self.lhs_ragged_dimensions = tuple(lhs_ragged_dimensions)
        self.rhs_group_dimensions = tuple(rhs_group_dimensions)

    def _key(self) -> tuple:
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __eq__(self, other) -> bool:
        return isinstance(other, RaggedDotDimensionNumbers) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return "RaggedDotDimensionNumbers(" + ", ".join([f"{n}={getattr(self, n)}" for n in self.__slots__]) + ")"


class _Plan(NamedTuple):
    """A ragged contraction: the ragged axis, its use, and the axes along which groups differ."""

    ragged: int
    kind: str  # "free", "contracted" or "batched"
    outer: tuple[int, ...]


def _plan(lhs, rhs, numbers: RaggedDotDimensionNumbers) -> _Plan:
    (lc, _), (lb, _) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            f"ragged_dot_general expects exactly one lhs ragged dimension, got {numbers.lhs_ragged_dimensions}."
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    if not 0 <= ragged < lhs.ndim:
        raise TypeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less than the "
            f"number of axes of the lhs value, got {ragged} for lhs of rank {lhs.ndim}."
        )
    groups = numbers.rhs_group_dimensions
    if ragged in lc or ragged in lb:
        if groups:
            raise TypeError(
                "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension is "
                f"contracting or batch, got {groups}."
            )
        if ragged in lb:
            return _Plan(ragged, "batched", tuple(lb[: lb.index(ragged)]))
        return _Plan(ragged, "contracted", (*lb, *lc[: lc.index(ragged)]))
    if len(groups) != 1 or not 0 <= groups[0] < rhs.ndim:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension is "
            f"noncontracting, got {groups} for rhs of rank {rhs.ndim}."
        )
    free = [i for i in range(ragged) if i not in lc and i not in lb]
    return _Plan(ragged, "free", (*lb, *free))


def _sizes(lhs, rhs, group_sizes, plan: _Plan, numbers):
    """The sizes of groups for each place of the outer axes."""
    if group_sizes.aval.dtype not in dtypes.INTEGER:
        raise TypeError(
            f"ragged_dot_general requires that group_sizes.dtype is subtype of np.integer, got {group_sizes.aval}."
        )
    group_sizes = wide_index(group_sizes, lhs.aval.shape[plan.ragged])
    count = group_sizes.aval.shape[-1] if group_sizes.aval.ndim else 0
    want = (*[lhs.aval.shape[i] for i in plan.outer], count)
    if plan.kind == "free":
        (at,) = numbers.rhs_group_dimensions
        if rhs.aval.shape[at] != count:
            raise TypeError(
                f"ragged_dot: expected rhs group dimension size to be {count}, the number of group_sizes, of shape "
                f"{group_sizes.aval.shape}; got {rhs.aval.shape[at]}, axis {at} of rhs, of shape {rhs.aval.shape}. "
                "Give a matrix, and a size, for each group."
            )
    if group_sizes.aval.shape == (count,):
        return broadcast_in_dim(group_sizes, want, (len(want) - 1,))
    if group_sizes.aval.shape != want:
        raise TypeError(
            f"expected group_sizes to have shape {want}, or {(count,)} for all alike, got {group_sizes.aval.shape}."
        )
    return group_sizes


def _grouped(lhs, sizes, plan: _Plan):
    """`lhs` once for each group, along a new first axis, with zeros outside the group."""
    shape, last = (sizes.aval.shape[-1], *lhs.aval.shape), sizes.aval.ndim - 1
    order = sorted(range(last), key=lambda k: plan.outer[k])
    sizes = transpose(sizes, (last, *order))
    ends, dims = cumsum(sizes, 0), (0, *[plan.outer[k] + 1 for k in order])
    place = broadcasted_iota(sizes.aval.dtype, shape, plan.ragged + 1)
    inside = bitwise_and(
        ge(place, broadcast_in_dim(sub(ends, sizes), shape, dims)), lt(place, broadcast_in_dim(ends, shape, dims))
    )
    copies = broadcast_in_dim(lhs, shape, tuple(range(1, len(shape))))
    return choose(inside, broadcast_in_dim(scalar_like(lhs, 0), shape, ()), copies)


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The contraction of `dot_general`, with one axis of `lhs` divided into groups.

    Where the ragged axis is neither contracted nor batched, each group is contracted with its own
    part of `rhs`, along its group axis. Where it is contracted, each group is contracted on its
    own, and the results are stacked along a new first axis. Where it is batched, groups make no
    difference.

    Args:
        lhs, rhs: arrays; `rhs` holds a part for each group along its group axis, if it has one.
        group_sizes: integers; the last axis counts groups, the others are the batch axes of `lhs`
            and the axes of the same use outside of the ragged one. One axis alone holds for all.
        ragged_dot_dimension_numbers: the axes.
        precision: as for `dot_general`.
        preferred_element_type: the dtype of the result.
        group_offset: must be None.
        out_sharding: as for `dot_general`.

    Returns:
        An array as from `dot_general`; rows that belong to no group are zero.

    Raises:
        TypeError: axes, sizes or dtypes do not fit.
        NotImplementedError: there is a `group_offset`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> numbers = lax.RaggedDotDimensionNumbers((([0], [0]), ([], [])), [0], [])
        >>> x = jnp.array([[1.0], [2.0], [3.0]])
        >>> lax.ragged_dot_general(x, x, jnp.array([1, 2]), numbers)
        Array([[[ 1.]],
        <BLANKLINE>
               [[13.]]], dtype=float32)
    """
    if out_sharding is not None:
        return divided(
            ragged_dot_general,
            out_sharding,
            lhs,
            rhs,
            group_sizes,
            ragged_dot_dimension_numbers,
            precision,
            preferred_element_type,
            group_offset,
        )
    lhs, rhs, group_sizes = (as_operand("ragged_dot_general", x) for x in (lhs, rhs, group_sizes))
    if group_offset is not None:
        raise NotImplementedError(
            "ragged_dot_general does not take a group_offset: give group_sizes and rhs from that group on."
        )
    numbers = ragged_dot_dimension_numbers
    if not hasattr(numbers, "dot_dimension_numbers"):
        raise TypeError(
            "ragged_dot_general: ragged_dot_dimension_numbers must be lax.RaggedDotDimensionNumbers(...), got "
            f"{numbers!r}. For rows in groups, use lax.ragged_dot, which takes none."
        )
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    plan = _plan(lhs.aval, rhs.aval, numbers)
    _check_contracted(lhs.aval, rhs.aval, lc, rc)
    sizes = _sizes(lhs, rhs, group_sizes, plan, numbers)
    options: dict[str, Any] = {
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "out_sharding": out_sharding,
    }
    if plan.kind == "batched":
        return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), **options)
    masked = _grouped(lhs, sizes, plan)
    lc, lb = tuple([i + 1 for i in lc]), tuple([i + 1 for i in lb])
    if plan.kind == "free":  # contract the group axis too, where all terms but one are zero
        return dot_general(masked, rhs, (((0, *lc), (*numbers.rhs_group_dimensions, *rc)), (lb, rb)), **options)
    return move_axis(dot_general(masked, rhs, ((lc, rc), (lb, rb)), **options), len(lb), 0)


def _check_contracted(lhs, rhs, lc, rc) -> None:
    ours, theirs = (tuple([x.shape[i] for i in c if i < x.ndim]) for x, c in ((lhs, lc), (rhs, rc)))
    if ours != theirs:
        raise TypeError(
            f"dot_general requires contracting dimensions to have the same shape, got {ours} and {theirs}, of lhs of "
            f"shape {lhs.shape} and rhs of shape {rhs.shape} in a ragged product."
        )


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Array:
    """The rows of `lhs`, in consecutive groups, each of which is multiplied with its own matrix.

    Args:
        lhs: shape (m, k).
        rhs: shape (g, k, n).
        group_sizes: integers, shape (g,): how many rows belong to each group.
        precision: as for `dot_general`.
        preferred_element_type: the dtype of the result.
        group_offset: must be None.
        out_sharding: as for `dot_general`.

    Returns:
        Shape (m, n); rows beyond the groups are zero.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.ragged_dot(jnp.ones((3, 1)), jnp.array([[[2.0]], [[5.0]]]), jnp.array([1, 2]))
        Array([[2.],
               [5.],
               [5.]], dtype=float32)
    """
    if out_sharding is not None:
        return divided(ragged_dot, out_sharding, lhs, rhs, group_sizes, precision, preferred_element_type, group_offset)
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The contraction of two arrays that are stored with a scale for each block.

    Args:
        lhs, rhs: arrays of any numeric dtype, of one rank, at least 2.
        lhs_scale, rhs_scale: arrays of that rank. Along contracted axes an element is the scale of
            a block of two or more; along the others the sizes are those of the operand. None for 1.
        dimension_numbers: as for `dot_general`; None for the product of matrices, with batch axes
            in front.
        preferred_element_type: the dtype of sums and result; None for bfloat16, which operands and
            scales are multiplied in.

    Raises:
        TypeError: ranks or sizes do not fit.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> scale = jnp.full((1, 1), 0.5)
        >>> lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=scale, preferred_element_type="float32")
        Array([[2.]], dtype=float32)
    """
    lhs, rhs = as_operand("scaled_dot", lhs), as_operand("scaled_dot", rhs)
    scales = [None if s is None else as_operand("scaled_dot", s) for s in (lhs_scale, rhs_scale)]
    ranks = [x.aval.ndim for x in (lhs, rhs, *[s for s in scales if s is not None])]
    if min(ranks[:2]) < 2:
        raise TypeError(
            "scaled_dot does not support 0-rank and 1-rank operands, got shapes "
            f"{lhs.aval.shape} and {rhs.aval.shape}. x[None] makes a matrix of a vector."
        )
    if len(set(ranks)) > 1:
        raise TypeError(f"All input tensors must have the same rank. Got ranks {ranks} of lhs, rhs and their scales.")
    if dimension_numbers is None:
        n = ranks[0]
        lead = tuple(range(n - 2))
        dimension_numbers = (((n - 1,), (n - 2,)), (lead, lead))
    (lc, rc), (lb, rb) = dimension_numbers
    for i, j in zip(lc, rc):
        if lhs.aval.shape[i] != rhs.aval.shape[j]:
            raise TypeError(
                f"LHS contracting dim {i} of size {lhs.aval.shape[i]} does not match RHS contracting dim "
                f"{j} of size {rhs.aval.shape[j]}."
            )
    dtype = dtypes.canonicalize_dtype("bfloat16" if preferred_element_type is None else preferred_element_type)
    lhs, rhs = (_scaled(name, x, s, c) for name, x, s, c in (("LHS", lhs, scales[0], lc), ("RHS", rhs, scales[1], rc)))
    return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), preferred_element_type=dtype)


def _scaled(name: str, x, scale, contracted):
    wide = convert_element_type(x, dtypes.bfloat16)
    if scale is None:
        return wide
    shape, split, dims = x.aval.shape, [], []
    for i, (n, blocks) in enumerate(zip(shape, scale.aval.shape)):
        if i not in contracted:
            if n != blocks:
                raise TypeError(f"{name} dim {i} of size {n} does not match scale dim size {blocks}.")
        elif not blocks or n % blocks:
            raise TypeError(
                f"{name} contracting dim {i} of size {n} must be divisible by its scale's dim size {blocks}."
            )
        elif n // blocks < 2:
            raise TypeError(
                f"The ratio of {name} contracting dim {i} to its scale's dim size ({n // blocks}) must be at least 2."
            )
        dims.append(len(split))
        split += [blocks, n // blocks] if i in contracted else [n]
    spread = reshape(broadcast_in_dim(convert_element_type(scale, dtypes.bfloat16), tuple(split), tuple(dims)), shape)
    return mul(wide, spread)
