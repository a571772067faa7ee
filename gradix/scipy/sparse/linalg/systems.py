"""Linear systems on pytrees: checks of arguments, and solutions with derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradix import lax, numpy as jnp
from gradix._api.derivatives.autodiff import linear_transpose
from gradix._api.inspect import eval_shape
from gradix._base.tree import tree_flatten as flatten, tree_map
from gradix._core import dtypes
from gradix._core.dtypes import COMPLEX
from gradix.numpy.promotion import as_operand, convert, inexact_operand


class System(NamedTuple):
    """The options of a method: the start, tolerances, the number of steps, the preconditioner."""

    start: Any
    tol: Any
    atol: Any
    maxiter: Any
    precondition: Callable


# -- pytrees as vectors ----------------------------------------------------------------------------


def dot(x, y):
    """The inner product of pytrees, conjugated in `x`."""
    parts = [jnp.vdot(a, b, precision="highest") for a, b in zip(flatten(x)[0], flatten(y)[0])]
    return sum(parts[1:], parts[0])


def real_dot(x, y):
    """The real part of the inner product of pytrees."""
    value = dot(x, y)
    return lax.real(value) if value.aval.dtype in COMPLEX else value


def plus(x, scale, y):
    """`x + scale·y` of pytrees, in the dtypes of `x`."""

    def leaf(a, b):
        dtype = dtypes.joined_dtype(scale.aval.dtype, b.aval.dtype)
        return a + convert(convert(scale, dtype) * convert(b, dtype), a.aval.dtype)

    return tree_map(leaf, x, y)


def minus(x, y):
    return tree_map(lambda a, b: a - b, x, y)


def zeros_like(x):
    return tree_map(jnp.zeros_like, x)


# -- arguments -------------------------------------------------------------------------------------


def as_function(A, name: str) -> Callable:
    """A linear map as a function.

    Raises:
        TypeError: it is neither a function nor an object with a matrix product.
        ValueError: it is a matrix that is not square.
    """
    if callable(A):
        return A
    shape = getattr(A, "shape", None)
    if shape is None or not hasattr(type(A), "__matmul__") or len(shape) == 0:
        raise TypeError(f"linear operator must be either a function or ndarray, got {name}={A!r}.")
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {name} has {tuple(shape)}.")
    matrix = jnp.asarray(A) if hasattr(A, "__array__") else A
    return lambda x: matrix @ x


def solve(method: Callable, A, b, x0, tol, atol, maxiter, M, hermitian: bool):
    """The solution of `A(x) = b` by a method, with the derivatives of the exact solution.

    Args:
        method: a function `method(A, b, system)` that returns x.
        A, b, x0, tol, atol, maxiter, M: as for `cg`.
        hermitian: whether the map is its own adjoint, so that a real map is its own transpose.
    """
    apply = as_function(A, "A")
    precondition = (lambda x: x) if M is None else as_function(M, "M")
    b = tree_map(lambda x: inexact_operand("b", x), b)
    given, b = b, _promoted(apply, b)
    size = sum(x.aval.size for x in flatten(b)[0])
    start = zeros_like(b) if x0 is None else _start(x0, b)
    _check_same(eval_shape(apply, b), b, "A(b)")
    system = System(start, tol, atol, 10 * size if maxiter is None else maxiter, precondition)
    real = all(x.aval.dtype not in COMPLEX for x in flatten(b)[0])
    if hermitian and real:
        solution = lax.custom_linear_solve(apply, b, lambda mv, y: method(mv, y, system), symmetric=True)
        return _as_weak_as(given, solution)
    back = System(zeros_like(b), tol, atol, system.maxiter, precondition if M is None else _transposed(precondition, b))
    solution = lax.custom_linear_solve(apply, b, lambda mv, y: method(mv, y, system), lambda vm, y: method(vm, y, back))
    return _as_weak_as(given, solution)


def _as_weak_as(b, x):
    """The solution with a weak dtype where the right side has it, and no other dtype came in."""
    return tree_map(
        lambda own, v: convert(v, v.aval.dtype, own.aval.weak_type and own.aval.dtype == v.aval.dtype), b, x
    )


def _transposed(function: Callable, like):
    return lambda y: linear_transpose(function, like)(y)[0]


def _promoted(apply: Callable, b):
    """The right side, promoted with the dtypes of the map's results."""
    leaves, tree = flatten(b)
    found, got = flatten(eval_shape(apply, b))
    if got != tree or len(found) != len(leaves):
        return b
    return tree.unflatten([convert(x, dtypes.promote_types(x.aval.dtype, f.dtype)) for x, f in zip(leaves, found)])


def _start(x0, b):
    given, tree = flatten(x0)
    wanted, other = flatten(b)
    if tree != other:
        raise ValueError(f"x0 and b must have matching tree structure: {tree} vs {other}.")
    given = [as_operand("x0", x) for x in given]
    shapes, have = [x.aval.shape for x in given], [x.aval.shape for x in wanted]
    if shapes != have:
        raise ValueError(f"arrays in x0 and b must have matching shapes: {shapes} vs {have}.")
    return tree.unflatten([convert(x, w.aval.dtype) for x, w in zip(given, wanted)])


def _check_same(found, b, what: str) -> None:
    (got, tree), (want, other) = flatten(found), flatten(b)
    if tree != other or [g.shape for g in got] != [w.aval.shape for w in want]:
        raise ValueError(
            f"matvec() output shapes must match b: {what} is {tree} with shapes {[g.shape for g in got]}, "
            f"and b is {other} with shapes {[w.aval.shape for w in want]}."
        )


def squared_goal(b, system: System):
    """The squares of the tolerated norm of the residual, and of the norm of the right side."""
    size = real_dot(b, b)
    goal = jnp.maximum(jnp.square(system.tol) * size, jnp.square(system.atol)).astype(size.aval.dtype)
    return goal, size


def solution_for(size, x):
    """The solution, but zero if the right side is zero, and NaN if it has a NaN."""
    return tree_map(lambda v: jnp.where(size > 0, v, jnp.where(size == 0, 0, np.nan)).astype(v.aval.dtype), x)
