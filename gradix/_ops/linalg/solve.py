"""Linear systems solved by LU factors."""

from __future__ import annotations

from gradix._ops.creation import broadcasted_iota
from gradix._ops.linalg.lu import lu, take_rows
from gradix._ops.linalg.triangular import triangular_solve
from gradix._ops.sorting.sort import sort_key_val


def solve_factored(factors, permutation, b):
    """X with `a X = b`, given the factors and permutation from `lu` of the matrices `a`."""
    y = triangular_solve(factors, take_rows(b, permutation), left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, y, left_side=True, lower=False)


def solve_factored_transposed(factors, permutation, b):
    """X with `aᵀ X = b`."""
    y = triangular_solve(factors, b, left_side=True, lower=False, transpose_a=True)
    z = triangular_solve(factors, y, left_side=True, lower=True, transpose_a=True, unit_diagonal=True)
    axis = permutation.aval.ndim - 1
    places = broadcasted_iota(permutation.aval.dtype, permutation.aval.shape, axis)
    return take_rows(z, sort_key_val(permutation, places, axis)[1])


def solve_matrices(a, b):
    """X with `a X = b`, for stacks of matrices; differentiable through the factors."""
    factors, _, permutation = lu(a)
    return solve_factored(factors, permutation, b)
