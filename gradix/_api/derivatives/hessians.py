"""Hessians; one with a known sparsity takes as many products as its columns have colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from gradix._api.arguments import as_numbers, check_callable, is_one_number, named_as
from gradix._api.derivatives.autodiff import check_scalar, differentiated
from gradix._api.derivatives.jacobians import _by_argument, _check_forward_input, jacfwd, jacrev
from gradix._api.derivatives.sparsity import colours, linear_pattern
from gradix._api.mapping.chunks import batch_in_chunks, check_chunk_size
from gradix._base.tracebacks import boundary
from gradix._core.array import ArrayImpl, as_array
from gradix._core.aval import make_aval
from gradix._core.jaxpr import ClosedJaxpr
from gradix._ops.basis import full_like_one, instantiate, move_axis, to_axis, transpose, zeros
from gradix._ops.indexing.gather import index_take
from gradix._ops.indexing.scatter import ScatterDimensionNumbers, scatter
from gradix._ops.select import choose
from gradix._ops.shape import reshape
from gradix._transforms.batch import AxisData
from gradix._transforms.jvp import jvp
from gradix._transforms.linearize import linearize
from gradix._transforms.staging import eval_closed, stage

P = ParamSpec("P")

# If less than one in so many elements is not zero, writing them one by one is faster.
_FULL = 8
_ELEMENTS = ScatterDimensionNumbers((), (0, 1), (0, 1))


def hessian(
    fun: Callable[P, Any],
    argnums: int | tuple = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    chunk_size: int | None = None,
    sparsity: str | np.ndarray | None = None,
) -> Callable[P, Any]:
    """The matrix of second derivatives, as a Jacobian of a Jacobian. Arguments as for `jacfwd`.

    Args:
        fun: a function of floating-point arrays.
        argnums, has_aux, holomorphic, chunk_size: as for `jacfwd`.
        sparsity: "auto" finds, from the program of `fun`, which elements are zero for all
            arguments, and computes the others from few products with vectors: three for a
            tridiagonal Hessian of any size. Instead, the pattern can be given as a matrix of
            booleans, with rows and columns in the order of the arguments' elements. The result is
            the same array. It is for scalar functions of real arguments.

    Returns:
        A function with the arguments of `fun`; for a scalar `fun` and an argument of shape `t`, an
        array of shape `t + t`.

    Raises:
        ValueError: `sparsity` is something else, or given with `has_aux` or `holomorphic`.

    Example:
        >>> import gradix, gradix.numpy as jnp
        >>> gradix.hessian(lambda x: x[0] * x[1])(jnp.array([1.0, 2.0]))
        Array([[0., 1.],
               [1., 0.]], dtype=float32)
        >>> gradix.hessian(lambda x: (x ** 3).sum(), sparsity="auto")(jnp.array([1.0, 2.0]))
        Array([[ 6.,  0.],
               [ 0., 12.]], dtype=float32)
    """
    if sparsity is None:
        inner = jacrev(fun, argnums, has_aux, holomorphic, chunk_size=chunk_size)
        return jacfwd(inner, argnums, has_aux, holomorphic, chunk_size)
    if has_aux or holomorphic:
        raise ValueError(
            "hessian: sparsity goes with real functions without auxiliary data; leave out has_aux and holomorphic."
        )
    check_callable("hessian", fun)
    numbers, single = as_numbers("argnums", argnums), is_one_number(argnums)
    chunk = check_chunk_size("hessian", chunk_size)

    @named_as(fun)
    @boundary
    def hessian_f(*args, **kwargs):
        flat, leaves, trees = differentiated("hessian", fun, args, kwargs, numbers)
        for x in leaves:
            _check_forward_input(x.aval, False)
        product = _product(flat, leaves)
        pattern = _given(sparsity, sum([x.aval.size for x in leaves]))
        if pattern is None:
            rows = linear_pattern(product, len(leaves))
            pattern = np.concatenate(rows) if rows else np.zeros((0, 0), bool)
        blocks = _blocks(product, leaves, pattern, chunk)
        return _by_argument([_by_argument(row, trees, single) for row in blocks], trees, single)

    return hessian_f


def _product(flat, leaves) -> ClosedJaxpr:
    """The program of Hessian-vector products: it takes the arguments and a direction."""
    active = [True] * len(leaves)

    def gradient(*xs):
        ys, program = linearize(flat, xs, active, named=True)
        check_scalar("hessian", flat.out_tree, ys, False)
        cts = program.transpose([full_like_one(ys[0].aval)])
        return [zeros(x.aval) if c is None else c for c, x in zip(cts, xs)]

    def along(*args):
        xs, ts = args[: len(leaves)], args[len(leaves) :]
        ys, out = jvp(gradient, xs, ts)
        return [instantiate(t, y.aval) for t, y in zip(out, ys)]

    avals = [x.aval for x in leaves]
    return ClosedJaxpr(*stage(along, [*avals, *avals]))


def _given(sparsity, n: int) -> np.ndarray | None:
    """The pattern that the user gave; None if it has to be found."""
    if isinstance(sparsity, str):
        if sparsity != "auto":
            raise ValueError(f'hessian: sparsity must be "auto", a matrix of booleans or None, got {sparsity!r}.')
        return None
    pattern = np.asarray(sparsity)
    if pattern.dtype != bool or pattern.shape != (n, n):
        raise ValueError(
            f"hessian: sparsity must be booleans of shape {(n, n)}, one row and column per element of the "
            f"arguments; got {pattern.dtype} of shape {pattern.shape}."
        )
    return pattern


def _blocks(product: ClosedJaxpr, leaves, pattern: np.ndarray, chunk) -> list[list]:
    """The Hessian's block for each pair of leaves.

    Element (i, j) is element i of the product for the colour of column j.
    """
    colour = colours(pattern)
    count, sizes = int(colour.max(initial=-1)) + 1, [x.aval.size for x in leaves]
    ends = np.cumsum([0, *sizes])
    parts = [slice(a, b) for a, b in zip(ends, ends[1:])]
    if not count:
        return [[zeros(make_aval((*x.aval.shape, *y.aval.shape), x.aval.dtype)) for y in leaves] for x in leaves]
    seeds = colour == np.arange(count)[:, None]
    directions = [
        ArrayImpl(
            seeds[:, p].astype(x.aval.dtype).reshape(count, *x.aval.shape),
            make_aval((count, *x.aval.shape), x.aval.dtype, x.aval.weak_type),
        )
        for p, x in zip(parts, leaves)
    ]
    outs, axes = batch_in_chunks(
        lambda *ts: eval_closed(product, *leaves, *ts),
        AxisData(None, count),
        directions,
        [0] * len(leaves),
        chunk,
        peel=True,
    )
    rows = [
        reshape(to_axis(count, o, None, 0) if a is None else move_axis(o, a, 0), (count, n))
        for o, a, n in zip(outs, axes, sizes)
    ]
    return [
        [_block(r, colour[q], pattern[p, q], (*x.aval.shape, *y.aval.shape)) for q, y in zip(parts, leaves)]
        for r, p, x in zip(rows, parts, leaves)
    ]


def _block(rows, colour, pattern, shape):
    """Element (i, j) is rows[colour[j], i] where the pattern has it, else zero."""
    i, j = np.nonzero(pattern)
    if _FULL * i.size < pattern.size:
        n, dtype = pattern.shape[0], rows.aval.dtype
        values = index_take(reshape(rows, (rows.aval.size,)), (as_array(colour[j] * n + i),), (0,))
        places = as_array(np.stack([i, j], 1).astype(np.int32))
        matrix = scatter(
            zeros(make_aval(pattern.shape, dtype)),
            places,
            values,
            _ELEMENTS,
            indices_are_sorted=True,
            unique_indices=True,
            mode="clip",
        )
        return reshape(matrix, shape)
    wide = transpose(index_take(rows, (as_array(np.maximum(colour, 0)),), (0,)), (1, 0))
    return reshape(choose(as_array(pattern), zeros(wide.aval), wide), shape)
