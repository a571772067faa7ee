"""Blocks of arrays that are replaced, where XLA would read what it has just replaced."""

from __future__ import annotations

import math
from typing import Any

from gradix._core.jaxpr import Literal, jaxprs_in_params
from gradix._ops.families import Elementwise
from gradix._ops.indexing.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from gradix._ops.indexing.scatter import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from gradix._platforms.cpu.kernel_loops import apart
from gradix._platforms.records import CORRECTNESS, Rewrite

_SAME_MEMORY = {
    "reshape",
    "transpose",
    "squeeze",
    "expand_dims",
    "broadcast_in_dim",
    "copy",
    "copy_p",
    "optimization_barrier",
}
_FAR = 2000  # where there is more to follow, the worst is assumed
_SCATTERS = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)


def _reads_what_it_replaces(site) -> bool:
    """Whether what is written is computed from the array, and the array or the result has another shape elsewhere.

    XLA moves a reshape from the result to the operands; then the loop reads the array in two shapes, and takes
    one of them for another array.
    """
    if site.eqn is None or site.users is None:
        return False
    users = site.users
    known, like = _in_other_shapes(site)
    return known is not None and _is_computed_from(users, site.eqn.invars[1:], known, like)


def _in_other_shapes(site) -> tuple[set | None, Any]:
    """The variables that are the array or other shapes of it; None if XLA meets it in one shape only.

    Returns:
        these variables, and the type of the array if inputs of its program may be the same array.
    """
    users, (v, *_), out = site.users, site.eqn.invars, site.eqn.outvars[0]
    size, is_inner = site.values[0].aval.size, users.is_inner
    if not _moves(users, size, v, out):
        return None, None
    while (maker := users.maker(v)) is not None and _is_same_memory(maker, size):
        v = maker.invars[0]
    known, new = {v}, [v]
    while new:
        for e in users.of(new.pop()).values():
            if _is_same_memory(e, size) and e.outvars[0] not in known:
                known.add(e.outvars[0])
                new.append(e.outvars[0])
    return known, v.aval if maker is None and is_inner else None


def _moves(users, size, v, out) -> bool:
    """Whether XLA may move a reshape to an array of this size, or a program inside that may have one.

    It moves them through elementwise operations: down from what `v` is computed from, up from what `out` is used for.
    """

    def makers(v):
        maker = users.maker(v)
        return (maker is None and users.is_inner), () if maker is None else (maker,)

    def readers(v):
        return (users.is_inner and users.is_result(v)), users.of(v).values()

    for start, found, following in ((v, makers, "invars"), (out, readers, "outvars")):
        stack, met = [start], set()
        while stack:
            v = stack.pop()
            if type(v) is Literal or v in met or v.aval.size != size:
                continue
            met.add(v)
            is_open, equations = found(v)
            if is_open or len(met) > _FAR or any(_is_same_memory(e, size) or _has_program(e) for e in equations):
                return True
            stack += [w for e in equations if isinstance(e.primitive, Elementwise) for w in getattr(e, following)]
    return False


def _is_same_memory(eqn, size) -> bool:
    """Whether the result of an equation is its operand in another shape."""
    if eqn.primitive.name not in _SAME_MEMORY or len(eqn.invars) > 1:
        return False
    (v,) = eqn.invars
    return hasattr(v, "aval") and v.aval.size == size == eqn.outvars[0].aval.size


def _has_program(eqn) -> bool:
    """Whether XLA puts a program in the place of an equation, in which the array may get another shape."""
    if eqn.primitive.name == "while" or eqn.primitive.name == "scan" and not _is_straight(**eqn.params):
        return False
    return next(jaxprs_in_params(eqn.params), None) is not None


def _is_straight(length, unroll, **_) -> bool:
    """Whether the turns of a scan are written one after another."""
    return type(length) is int and length <= max(unroll, 1)


def _is_computed_from(users, operands, known: set, like) -> bool:
    """Whether operands are computed from one of these variables, or from an input of this size and dtype."""
    stack, met = list(operands), set()
    while stack:
        v = stack.pop()
        if type(v) is Literal or v in met:
            continue
        if v in known or len(met) > _FAR:
            return True
        met.add(v)
        maker = users.maker(v)
        if maker is not None:
            stack += maker.invars
        elif like is not None and (v.aval.size, v.aval.dtype) == (like.size, like.dtype) and v.aval.shape != like.shape:
            return True
    return False


def _is_one_block(site) -> bool:
    """Whether a scatter is to one place, of which XLA makes a block that is replaced."""
    return math.prod(site.values[1].aval.shape[:-1]) == 1


def _by_itself(em, site, *values):
    """Replace the block apart: fused with what makes it, later elements of it would read earlier ones."""
    return apart(em, "replaced_block", site.out, lambda *values: site.plain(em, *values), *values)


def _scattered_by_itself(em, site, *values):
    """Replace the block apart where needed: in each divided program, and in an array that is a slice.

    Where the place lies outside, a program writes what is there. XLA joins the reading of it with that slice, or
    with the division of the array before, and takes an element from elsewhere.
    """
    if em.is_divided or _is_slice(site) or _reads_what_it_replaces(site):
        return _by_itself(em, site, *values)
    return NotImplemented


def _is_slice(site) -> bool:
    """Whether the array is, in any shape, a dynamic slice of another one, or may be."""
    if site.eqn is None or site.users is None:
        return False
    users, v, size = site.users, site.eqn.invars[0], site.values[0].aval.size
    while (maker := users.maker(v)) is not None and _is_same_memory(maker, size):
        v = maker.invars[0]
    return users.is_inner if maker is None else maker.primitive is dynamic_slice_p or _has_program(maker)


REWRITES = tuple(
    [
        Rewrite(name, primitives, emit, applies, CORRECTNESS, ("0.10.2", "0.12.0"))
        for name, primitives, emit, applies in (
            ("blocks_replaced_apart", (dynamic_update_slice_p,), _by_itself, _reads_what_it_replaces),
            ("scattered_blocks_apart", _SCATTERS, _scattered_by_itself, _is_one_block),
        )
    ]
)
