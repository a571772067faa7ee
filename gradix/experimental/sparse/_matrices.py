"""What the simple matrix formats share: COO, CSR and CSC."""

from __future__ import annotations

from gradix import numpy as jnp
from gradix.experimental.sparse._array import JAXSparse
from gradix.experimental.sparse._bcoo_array import BCOO
from gradix.experimental.sparse._bcoo_products import _with_dense, canonical_numbers


class Matrix(JAXSparse):
    """A matrix that can be converted to BCOO, by which products and operators are computed."""

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        raise self._missing("to_bcoo")

    def todense(self):
        """The ordinary array of the matrix."""
        return self.to_bcoo().todense()

    def sum(self, *args, **kwargs):
        """Sums over axes, as an ordinary array or BCOO."""
        return self.to_bcoo().sum(*args, **kwargs)

    def __matmul__(self, other):
        if isinstance(other, JAXSparse):
            raise NotImplementedError(
                f"matmul of a {type(self).__name__} matrix and another sparse array. Convert both to "
                "BCOO, such as by to_bcoo()."
            )
        other = jnp.asarray(other)
        if other.ndim not in (1, 2):
            raise NotImplementedError(
                f"matmul of a {type(self).__name__} matrix and an array of shape {other.shape}, which is "
                "neither a vector nor a matrix. Convert the sparse matrix by to_bcoo()."
            )
        return product(self, other, False)

    def __rmatmul__(self, other):
        return self.to_bcoo().__rmatmul__(other)

    def __mul__(self, other):
        return self.to_bcoo() * _as_bcoo(other)

    def __rmul__(self, other):
        return _as_bcoo(other) * self.to_bcoo()

    def __add__(self, other):
        return self.to_bcoo() + _as_bcoo(other)

    def __radd__(self, other):
        return _as_bcoo(other) + self.to_bcoo()

    def __sub__(self, other):
        return self.to_bcoo() - _as_bcoo(other)

    def __rsub__(self, other):
        return _as_bcoo(other) - self.to_bcoo()

    def __neg__(self):
        return -self.to_bcoo()

    def __getitem__(self, item):
        return self.to_bcoo()[item]


def _as_bcoo(x):
    return x.to_bcoo() if isinstance(x, Matrix) else x


def product(mat: Matrix, dense, transpose: bool):
    """The product of a matrix, or of its transpose, and a vector or matrix."""
    dense = jnp.asarray(dense)
    inner = mat.to_bcoo()
    numbers = canonical_numbers(
        f"{type(mat).__name__} product", inner, dense, (((0 if transpose else 1,), (0,)), ((), ()))
    )
    return _with_dense(inner, dense, numbers, inner.indices_sorted)


def check_rank(name: str, x, ndim: int) -> None:
    if jnp.ndim(x) != ndim:
        raise ValueError(f"{name} takes {'a vector' if ndim == 1 else 'a matrix'}, got shape {jnp.shape(x)}.")
