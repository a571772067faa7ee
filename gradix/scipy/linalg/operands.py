"""The conversion of matrices, and the broadcasting of stacks of matrices and right sides."""

from __future__ import annotations

from math import prod

from gradix import lax, numpy as jnp
from gradix.numpy.promotion import broadcast_to, inexact_operand

matmul = lax.linalg._product


def matrices(name: str, a):
    """The operand as an array of a floating or complex dtype; lists are converted."""
    return inexact_operand(name, jnp.asarray(a) if isinstance(a, (list, tuple)) else a)


def square(name: str, a):
    """The operand as square matrices of a floating or complex dtype.

    Raises:
        ValueError: the last two axes differ, or there are fewer axes.
    """
    x = matrices(name, a)
    shape = x.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(
            f"The input to {name} must be a square matrix, or a stack of them in the last two axes; got shape {shape}."
        )
    return x


def solved(name: str, solve, a, b):
    """`solve(a, b)` for arguments that are broadcast to stacks of matrices.

    `b` is a vector, a stack of vectors if it has one axis less than `a` and a last axis of the size
    of a row, or a stack of matrices.

    Raises:
        ValueError: the shapes do not fit.
    """
    shape, given = a.aval.shape, b.aval.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{name}: a must be square matrices of shape (..., n, n), got shape {shape}.")
    vectors = len(given) == 1 or (len(given) == len(shape) - 1 and given[-1] == shape[-1])
    rows = given[-1:] if vectors else given[-2:-1]
    if rows != shape[-1:]:
        raise ValueError(f"{name}: for matrices of shape {shape}, b must have {shape[-1]} rows; got shape {given}.")
    x = _stacked(name, solve, a, b[..., None] if vectors else b)
    return x[..., 0] if vectors else x


def _stacked(name: str, solve, a, b):
    """`solve(a, b)` for stacks; one matrix and stacks of right sides are solved as one system."""
    if a.aval.ndim == 2 and b.aval.ndim > 2:
        rank, shape = b.aval.ndim, b.aval.shape
        wide = lax.transpose(b, (rank - 2, *range(rank - 2), rank - 1))
        found = solve(a, lax.reshape(wide, (shape[-2], prod(shape[:-2]) * shape[-1])))
        return lax.transpose(lax.reshape(found, wide.aval.shape), (*range(1, rank - 1), 0, rank - 1))
    try:
        lead = lax.broadcast_shapes(a.aval.shape[:-2], b.aval.shape[:-2])
    except ValueError:
        raise ValueError(
            f"{name}: the stacks of shapes {a.aval.shape} and {b.aval.shape} do not broadcast. The axes "
            "before the last two must agree or have size 1."
        ) from None
    return solve(broadcast_to(a, (*lead, *a.aval.shape[-2:])), broadcast_to(b, (*lead, *b.aval.shape[-2:])))
