"""How products are sharded over explicit mesh axes, and over which axes they are unreduced."""

from __future__ import annotations

from gradix._core.divisions import Entries, ShardingTypeError, Sums, entries, explicit_entries, names_in, sums
from gradix._ops.basis import free_axes


def product_sums(avals, params) -> Sums:
    """The mesh axes over which `out_sharding` leaves the result of `dot_general` unreduced.

    Raises:
        ShardingTypeError: an operand is unreduced, or is reduced over axes over which the other is
            not divided; or the unreduced axes are not those of the contracted dimensions.
    """
    wanted = params.get("out_sharding")
    asked_for = Sums() if wanted is None else Sums(wanted.spec.unreduced, wanted.spec.reduced)
    (lhs, rhs), ((lc, rc), _) = avals, params["dimension_numbers"]
    shown = f"{lhs.str_short()} and {rhs.str_short()}"
    if sums(lhs).unreduced or sums(rhs).unreduced:
        raise ShardingTypeError(
            f"lhs or rhs passed to dot_general cannot be unreduced. Got {shown}. Sum it first, with "
            "gradix.sharding.reshard(x, PartitionSpec(...))."
        )
    for one, other in ((lhs, rhs), (rhs, lhs)):
        missing = sums(one).reduced - set(names_in(entries(other)))
        if missing:
            raise ShardingTypeError(
                f"dot_general: where one operand is reduced over {sorted(missing)} the other must be "
                f"divided over these axes. Got {shown}. Reshard one of them."
            )
    left, right = entries(lhs), entries(rhs)
    summed = set(names_in([*[left[i] for i in lc], *[right[i] for i in rc]]))
    if asked_for.unreduced and any(left[i] != right[j] for i, j in zip(lc, rc)):
        raise ShardingTypeError(
            "dot_general: lhs and rhs contracting dims should be sharded identically where out_sharding is unreduced, "
            f"over {set(asked_for.unreduced)}. Got {shown}. Reshard one of them, with gradix.sharding.reshard."
        )
    if asked_for.unreduced and asked_for.unreduced != summed:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes={set(asked_for.unreduced)} and contracting axes={summed or '{}'}, of {shown}."
        )
    return asked_for


def product_division(avals, ndim: int, params) -> Entries:
    """Over which mesh axes each axis of the result of `dot_general` is divided.

    Raises:
        ShardingTypeError: this does not follow from how the operands are divided.
    """
    wanted = params.get("out_sharding")
    if wanted is not None:
        return explicit_entries(wanted, ndim)
    (lhs, rhs), ((lc, rc), (lb, rb)) = avals, params["dimension_numbers"]
    left, right = entries(lhs), entries(rhs)
    summed = [(left[i], right[j]) for i, j in zip(lc, rc)]
    if any(a != b for a, b in summed if a is not None and b is not None):
        raise ShardingTypeError(
            "dot_general requires contracting dimensions to have consistent sharding, got "
            f"{tuple([a for a, _ in summed])} and {tuple([b for _, b in summed])}: "
            f"{lhs.str_short()} and "
            f"{rhs.str_short()}. Reshard one of them, with gradix.sharding.reshard."
        )
    if any(a is not None and b is not None for a, b in summed):
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be "
            "sharded. Please specify the output sharding via the `out_sharding` parameter: "
            f"the product of {lhs.str_short()} and {rhs.str_short()}, summed over "
            f"{tuple([a for a, _ in summed])}."
        )
    both = [left[i] if left[i] is not None else right[j] for i, j in zip(lb, rb)]
    if any(None not in (left[i], right[j]) and left[i] != right[j] for i, j in zip(lb, rb)):
        raise ShardingTypeError(
            "dot_general requires batch dimensions to have consistent sharding, got "
            f"{lhs.str_short()} and {rhs.str_short()}. Reshard one of them, with "
            "gradix.sharding.reshard."
        )
    row = (*both, *[left[i] for i in free_axes(lhs.ndim, lc, lb)], *[right[i] for i in free_axes(rhs.ndim, rc, rb)])
    if len(set(names_in(row))) != len(names_in(row)):
        raise ShardingTypeError(
            f"dot_general operation with inputs: {lhs.str_short()}, {rhs.str_short()} "
            f"produces an illegally sharded result: {row} names a mesh axis twice. Reshard "
            "one of them with gradix.sharding.reshard, or pass `out_sharding`."
        )
    return row
