"""`reduce`: arrays folded along axes by a function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._api.arguments import hollow
from gradix._api.boundary import arrays
from gradix._api.tracing import flat_body
from gradix._base.bounded import BoundedCache, on_clear
from gradix._base.tracebacks import boundary
from gradix._base.tree import tree_flatten as flatten, treedef_tuple
from gradix._control.reduce import reduce_p
from gradix._core.array import ArrayImpl, scalar_array
from gradix._core.aval import make_aval
from gradix._core.dtypes import INTEGER
from gradix._core.jaxpr import ClosedJaxpr
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops import reductions as _reductions
from gradix._ops.reduction_identities import all_bits, highest, lowest

if TYPE_CHECKING:
    from gradix._core.named_sharding import NamedSharding
    from gradix._core.sharding import PartitionSpec

_KNOWN: dict[str, tuple[Callable, Callable]] = {
    "add": (_reductions.reduce_sum, lambda dtype: 0),
    "mul": (_reductions.reduce_prod, lambda dtype: 1),
    "max": (_reductions.reduce_max, lowest),
    "min": (_reductions.reduce_min, highest),
    "and": (_reductions.reduce_and, all_bits),
    "or": (_reductions.reduce_or, lambda dtype: 0),
    "xor": (_reductions.reduce_xor, lambda dtype: 0),
}

_computations: BoundedCache[int, tuple[ClosedJaxpr, Callable]] = BoundedCache(1024, drop=1)
on_clear(_computations.clear)


@boundary
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> Any:
    """Reduce axes of the operands with `computation`, from the initial values.

    Args:
        operands: arrays of one shape, in any pytree.
        init_values: a scalar for each, in the same tree: the identity of `computation`.
        computation: an associative function of two trees of scalars to one; the order in which it
            is applied is not defined.
        dimensions: the axes to reduce.
        out_sharding: accepted for compatibility.

    Returns:
        Arrays of the dtypes of `operands` without these axes, in the same tree.

    Raises:
        TypeError: an initial value has another dtype than its operand.
        ValueError: the trees differ, an initial value is not a scalar, or an axis is out of range.

    Example:
        >>> from gradix import lax
        >>> import numpy as np
        >>> lax.reduce(np.arange(6).reshape(2, 3), 0, lax.add, (1,))
        Array([ 3, 12], dtype=int32)
    """
    leaves, tree = flatten(operands)
    xs = arrays("reduce", leaves, tree, "operands")
    given, init_tree = flatten(init_values)
    if init_tree != tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {tree} vs. {init_tree}")
    inits = [_start(i, x) for i, x in zip(arrays("reduce", given, tree, "init_values"), xs)]
    if any(i.aval.shape for i in inits):
        raise ValueError(f"reduce found non-scalar initial value: {[i.aval.shape for i in inits]}")
    dims = _dimensions(dimensions, xs[0])
    flat = flat_body("reduce", computation, treedef_tuple((tree, tree)))
    scalars = [make_aval((), x.dtype) for x in xs]
    body, consts = flat.stage_open([*scalars, *scalars])
    if consts:
        raise ValueError(
            f"reduce: the computation captures {len(consts)} array value(s) from outside, which a "
            "reduction cannot take. Use lax.scan, or write the values as Python numbers."
        )
    _check_results(flat.out_tree, body.out_avals, tree, scalars)
    known = _known(body, inits)
    if known is not None:
        return tree.unflatten([known(xs[0], dims)])
    check_starts("reduce", inits, xs)
    # equal bodies are one object, and take one function, so that they compile once
    _, first = _computations.get(id(body)) or _computations.keep(id(body), (body, hollow(computation)))
    outs = bind(reduce_p, [*xs, *inits], {"computation": first, "dimensions": dims, "jaxpr": body})
    return tree.unflatten(outs)


def check_starts(name: str, inits, xs) -> None:
    """Raise for initial values of other dtypes than their operands."""
    if any(i.dtype != x.dtype for i, x in zip(inits, xs)):
        raise TypeError(
            f"{name} got inconsistent dtypes for operands and init_values: got operand dtypes "
            f"{[str(x.dtype) for x in xs]} and init_value dtypes {[str(i.dtype) for i in inits]}. Convert "
            "the initial values, with .astype(...)."
        )


def _start(init: Array, x: Array) -> Array:
    if init.dtype == x.dtype or not init.aval.weak_type:
        return init
    if type(init) is not ArrayImpl:
        return init.astype(x.dtype)
    value = init.host.item()
    if x.dtype in INTEGER and isinstance(value, float):
        if math.isinf(value):  # the start of a maximum or a minimum
            value = (highest if value > 0 else lowest)(x.dtype)
        elif value != value // 1:  # nan too
            raise TypeError(
                f"the initial value {value} is not a number of dtype {x.dtype}, which the operand has. "
                "Convert one of them with .astype(...)."
            )
    return scalar_array(value, x.dtype, False)


def _dimensions(dimensions, x) -> tuple[int, ...]:
    dims = tuple([index(d) for d in dimensions])
    if any(not 0 <= d < x.aval.ndim for d in dims):
        raise ValueError(f"reduction axes {dims} contains out-of-bounds indices for {x.aval.str_short()}.")
    if len(set(dims)) != len(dims):
        raise ValueError(f"duplicate value in reduction axes: {dims}.")
    return dims


def _check_results(tree, avals, want_tree, want) -> None:
    bad = tree != want_tree or [(a.shape, a.dtype) for a in avals] != [(w.shape, w.dtype) for w in want]
    if bad:
        wanted, got = (", ".join([a.str_short() for a in types]) for types in (want, avals))
        raise ValueError(
            f"reduce: the computation must return scalars in the tree of the operands, {want_tree} "
            f"of {wanted}, got {tree} of {got}."
        )


def single_operation(body, inits) -> str | None:
    """The name of the one primitive that a computation applies to one pair of scalars, or None."""
    jaxpr = body.jaxpr
    if len(jaxpr.eqns) != 1 or len(inits) != 1 or type(inits[0]) is not ArrayImpl:
        return None
    (eqn,) = jaxpr.eqns
    is_whole = set(eqn.invars) == set(jaxpr.invars) and jaxpr.outvars == eqn.outvars
    return eqn.primitive.name if is_whole else None


def _known(body, inits):
    """The named reduction for a computation that is one operation, started from its identity."""
    found = _KNOWN.get(single_operation(body, inits) or "")
    if found is None:
        return None
    function, identity = found
    dtype = inits[0].dtype
    return function if np.asarray(identity(dtype), dtype) == inits[0].host else None
