"""Jacobians: jacfwd, jacrev and jacobian on pytrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from gradix._api.arguments import as_numbers, check_callable, is_one_number, named_as
from gradix._api.derivatives.autodiff import differentiated
from gradix._api.mapping.chunks import batch_in_chunks, check_chunk_size
from gradix._base.lazy import alias
from gradix._base.tracebacks import boundary
from gradix._core import dtypes
from gradix._core.array import ArrayImpl
from gradix._core.aval import make_aval
from gradix._core.trace import is_staging
from gradix._ops.arithmetic import add
from gradix._ops.basis import (
    float0_zeros,
    full_like_one,
    instantiate,
    is_differentiable,
    move_axis,
    tangent_aval,
    to_axis,
    zeros,
)
from gradix._ops.comparison import eq
from gradix._ops.convert import convert
from gradix._ops.creation import broadcasted_iota
from gradix._ops.joining import split
from gradix._ops.shape import reshape
from gradix._transforms.batch import AxisData
from gradix._transforms.jvp import jvp
from gradix._transforms.linearize import linearize

P = ParamSpec("P")


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | tuple = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """The Jacobian of `fun`, column by column in forward mode: best for tall Jacobians.

    Args:
        fun: a function of floating-point arrays.
        argnums: the number(s) of the arguments to differentiate in; a tuple gives a tuple inside
            each output leaf.
        has_aux: `fun` returns `(output, auxiliary data)`; the result is then `(jacobian, aux)`.
        holomorphic: `fun` is promised to be complex-differentiable; inputs and outputs are complex.
        chunk_size: the number of columns (rows for `jacrev`) computed at a time, to save memory.

    Returns:
        A function with the arguments of `fun`; for an output of shape `s` and an argument of shape
        `t`, an array of shape `s + t`, in the trees of output and argument, one inside the other.

    Raises:
        TypeError: an argument has no derivative in this mode.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jacfwd(lambda x: x * x[0])(jnp.array([1.0, 2.0]))
        Array([[2., 0.],
               [2., 1.]], dtype=float32)
    """
    check_callable("jacfwd", fun)
    numbers, single = as_numbers("argnums", argnums), is_one_number(argnums)
    chunk = check_chunk_size("jacfwd", chunk_size)

    @named_as(fun)
    @boundary
    def jacfwd_f(*args, **kwargs):
        flat, leaves, trees = differentiated("jacfwd", fun, args, kwargs, numbers, has_aux)
        for x in leaves:
            _check_forward_input(x.aval, holomorphic)
        kept: dict = {}

        def push(*tangents):
            ys, ts = jvp(flat, leaves, tangents, named=True)
            n = flat.out_tree.num_leaves
            if "primals" not in kept:  # values of later chunks belong to the trace of a loop
                kept["primals"] = ys[:n]
            if has_aux and "aux" not in kept:
                kept["aux"] = flat.split_aux(ys)[1]
            return [instantiate(t, y.aval) if is_differentiable(y.aval) else None for y, t in zip(ys[:n], ts)]

        columns = _mapped_over_basis(push, [x.aval for x in leaves], False, chunk)
        ys = kept["primals"]
        for y in ys:
            _check_forward_output(y.aval, holomorphic)
        parts = [_forward_blocks(c, y.aval, leaves) for c, y in zip(columns, ys)]
        jacobian = flat.out_tree.unflatten([_by_argument(p, trees, single) for p in parts])
        return (jacobian, kept["aux"]) if has_aux else jacobian

    return jacfwd_f


def jacrev(
    fun: Callable[P, Any],
    argnums: int | tuple = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """The Jacobian of `fun`, row by row in reverse mode: best for wide Jacobians.

    Args:
        fun: a function of floating-point arrays.
        argnums, has_aux, holomorphic, chunk_size: as for `jacfwd`.
        allow_int: integer arguments get Jacobians of dtype float0.

    Returns:
        A function with the arguments of `fun`; for an output of shape `s` and an argument of shape
        `t`, an array of shape `s + t`, in the trees of output and argument, one inside the other.

    Raises:
        TypeError: an argument has no derivative, or an output is not real.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.jacrev(lambda x: (x ** 2).sum())(jnp.array([1.0, 2.0]))
        Array([2., 4.], dtype=float32)
    """
    check_callable("jacrev", fun)
    numbers, single = as_numbers("argnums", argnums), is_one_number(argnums)
    chunk = check_chunk_size("jacrev", chunk_size)

    @named_as(fun)
    @boundary
    def jacrev_f(*args, **kwargs):
        flat, leaves, trees = differentiated("jacrev", fun, args, kwargs, numbers, has_aux)
        for x in leaves:
            _check_reverse_input(x.aval, holomorphic, allow_int)
        ys, program = linearize(flat, leaves, [is_differentiable(x.aval) for x in leaves], named=True)
        if has_aux:
            ys, aux = flat.split_aux(ys)
        for y in ys:
            _check_reverse_output(y.aval, holomorphic)
        extra = [None] * (len(program.outs) - len(ys))
        active = [x.aval for x in leaves if is_differentiable(x.aval)]

        def pull(*cts):
            return [zeros(a) if c is None else c for c, a in zip(program.transpose([*cts, *extra]), active)]

        rows = _mapped_over_basis(pull, [y.aval for y in ys], True, chunk)
        blocks = _reverse_blocks(rows, ys, leaves)
        jacobian = flat.out_tree.unflatten([_by_argument(b, trees, single) for b in blocks])
        return (jacobian, aux) if has_aux else jacobian

    return jacrev_f


jacobian = alias(jacrev, "jacobian")


# -- the standard basis ----------------------------------------------------------------------------


def _mapped_over_basis(function, avals, front: bool, chunk: int | None) -> list:
    """Apply a linear `function` of values of types `avals` to all unit vectors at once, by vmap.

    The batch axis is the first axis of each result, or the last. A result may be None.
    """
    if len(avals) == 1 and avals[0].size == 1:  # one direction: nothing to map
        outs = function(full_like_one(tangent_aval(avals[0])))
        return [None if o is None else _placed(o, None, 1, front) for o in outs]
    size, basis = sum([a.size for a in avals]), _basis(avals)
    present: list[bool] = []

    def given(*tangents):
        outs = function(*tangents)
        present[:] = [o is not None for o in outs]
        return [o for o in outs if o is not None]

    outs, axes = batch_in_chunks(given, AxisData(None, size), basis, [0] * len(basis), chunk, peel=True)
    placed = iter([_placed(o, a, size, front) for o, a in zip(outs, axes)])
    return [next(placed) if p else None for p in present]


def _placed(x, axis, size: int, front: bool):
    if axis is None:
        return to_axis(size, x, None, 0 if front else x.aval.ndim)
    return move_axis(x, axis, 0 if front else x.aval.ndim - 1)


def _basis(avals) -> list:
    """All unit vectors, stacked: for each type an array of shape `(total size, *shape)`."""
    size, at, out = sum([a.size for a in avals]), 0, []
    for a in avals:
        dtype, shape = tangent_aval(a).dtype, (size, *a.shape)
        # in a program the vectors are computed, so that it holds no large constant
        if is_staging():
            rows, columns = [broadcasted_iota(np.int32, (size, a.size), axis) for axis in (0, 1)]
            eye = convert(eq(rows, add(columns, np.int32(at)) if at else columns), dtype, a.weak_type)
            out.append(reshape(eye, shape))
        else:
            eye = np.zeros((size, a.size), dtype)
            eye[np.arange(at, at + a.size), np.arange(a.size)] = 1
            out.append(ArrayImpl(eye.reshape(shape), make_aval(shape, dtype, a.weak_type)))
        at += a.size
    return out


# -- assembling ------------------------------------------------------------------------------------


def _forward_blocks(column, y, leaves) -> list:
    """The derivatives of one output in each leaf, from its derivative along all unit vectors."""
    if column is None:  # the derivative of an integer output is zeros of its dtype
        return [zeros(make_aval((*y.shape, *x.aval.shape), y.dtype, False)) for x in leaves]
    parts = _cut(column, [x.aval.size for x in leaves], y.ndim)
    return [reshape(p, (*y.shape, *x.aval.shape)) for p, x in zip(parts, leaves)]


def _reverse_blocks(rows, ys, leaves) -> list[list]:
    """For each output its derivatives in each leaf, from the cotangents of all unit vectors."""
    blocks: list[list] = [[] for _ in ys]
    sizes, given = [y.aval.size for y in ys], iter(rows)
    for x in leaves:
        if not is_differentiable(x.aval):
            for block, y in zip(blocks, ys):
                block.append(float0_zeros((*y.aval.shape, *x.aval.shape)))
            continue
        for block, y, part in zip(blocks, ys, _cut(next(given), sizes, 0)):
            block.append(_weak(reshape(part, (*y.aval.shape, *x.aval.shape)), x.aval.weak_type))
    return blocks


def _cut(x, sizes, axis: int):
    return [x] if len(sizes) == 1 else split(x, sizes, axis)


def _weak(x, weak: bool):
    return x if x.aval.weak_type == weak else convert(x, x.aval.dtype, weak)


def _by_argument(parts, trees, single: bool):
    given = iter(parts)
    built = [tree.unflatten([next(given) for _ in range(tree.num_leaves)]) for tree in trees]
    return built[0] if single else tuple(built)


# -- what can be differentiated --------------------------------------------------------------------


def _check_forward_input(aval, holomorphic: bool) -> None:
    if holomorphic:
        if aval.dtype not in dtypes.COMPLEX:
            raise TypeError(
                f"jacfwd with holomorphic=True requires inputs with complex dtype, but got {aval}. "
                "Convert them with .astype(complex)."
            )
    elif aval.dtype not in dtypes.FLOAT:
        raise TypeError(
            f"jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), but got "
            f"{aval}. For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex inputs or integer inputs, use jvp directly."
        )


def _check_forward_output(aval, holomorphic: bool) -> None:
    if holomorphic and aval.dtype not in dtypes.COMPLEX:
        raise TypeError(f"jacfwd with holomorphic=True requires outputs with complex dtype, but got {aval}.")


def _check_reverse_input(aval, holomorphic: bool, allow_int: bool) -> None:
    if holomorphic:
        if aval.dtype not in dtypes.COMPLEX:
            raise TypeError(
                f"jacrev with holomorphic=True requires inputs with complex dtype, but got {aval}. "
                "Convert them with .astype(complex)."
            )
    elif aval.dtype not in dtypes.COMPLEX and aval.dtype not in dtypes.FLOAT and not allow_int:
        raise TypeError(
            "jacrev requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {aval}. If you want to use Boolean- or integer-valued inputs, use vjp "
            "or set allow_int to True."
        )


def _check_reverse_output(aval, holomorphic: bool) -> None:
    if holomorphic:
        if aval.dtype not in dtypes.COMPLEX:
            raise TypeError(f"jacrev with holomorphic=True requires outputs with complex dtype, but got {aval}.")
    elif aval.dtype not in dtypes.FLOAT:
        what = "complex outputs" if aval.dtype in dtypes.COMPLEX else "integer outputs"
        hint = " For holomorphic differentiation, pass holomorphic=True." if aval.dtype in dtypes.COMPLEX else ""
        raise TypeError(
            "jacrev requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but "
            f"got {aval}.{hint} For differentiation of non-holomorphic functions involving {what}, use vjp "
            "directly."
        )
