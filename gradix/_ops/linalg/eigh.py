"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import sub
from gradix._ops.linalg.base import (
    Factorization,
    adjoint,
    along_columns,
    along_rows,
    check_matrices,
    diagonal,
    each,
    info_aval,
    lapack,
    letter,
    nan_unless,
    product,
    real_of,
    real_part,
    routine,
)
from gradix._ops.linalg.coupling import coupled_quotient, off_diagonal
from gradix._ops.linalg.triangular import as_floats, symmetrize
from gradix._ops.operands import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


class EighImplementation(enum.Enum):
    """Ways to compute `eigh` on accelerators. On CPUs all are divide and conquer by LAPACK.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> x = jnp.array([[2.0, 0.0], [0.0, 1.0]])
        >>> lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.QR)[1]
        Array([1., 2.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(Factorization):
    """Eigenvectors, in columns, and ascending eigenvalues, from one triangle of the matrices."""

    multiple_results = True

    def abstract(self, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        shape = check_matrices(self.name, x, square=True)
        n = shape[-1]
        if subset_by_index is not None and subset_by_index != (0, n):
            raise NotImplementedError(
                f"subset_by_index={subset_by_index} is not implemented for matrices of size {n}: "
                "take the slices of the whole result instead."
            )
        return [x, make_aval(shape[:-1], real_of(x.dtype), x.weak_type)]

    def host(self, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        values = real_of(x.dtype)
        if not x.size:
            return [x, np.zeros(x.shape[:-1], values)]
        solve = getattr(_lapack, routine(x.dtype, "syevd", "heevd"))

        def one(a):
            w, v, info = solve(a, lower=int(lower))
            return (v, w) if info == 0 else (np.nan, np.nan)

        return each(one, x.shape[:-2], [(x.shape[-2:], x.dtype), (x.shape[-1:], values)], x)

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        v, w = bind(self, (x,), params)
        if t is None or not x.aval.size:
            return [v, w], [None, None]
        # M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008),
        # section 3.1.
        inner = product(product(adjoint(v), t), v)
        shape = x.aval.shape
        gaps = sub(along_rows(w, shape), along_columns(w, shape))  # w_j - w_i
        turn, dw = coupled_quotient(off_diagonal(inner), gaps, w, real_part(diagonal(inner)))
        return [v, w], [product(v, turn), dw]

    def lower(self, em, outs, x, *, lower, sort_eigenvalues, subset_by_index, algorithm):
        vectors, values = outs
        if not x.aval.size:
            return [x, em.constant(0, values)]
        v, w, info = lapack(
            em,
            routine(x.dtype, "syevd", "heevd"),
            [x],
            [vectors, values, info_aval(x.shape[:-2])],
            (True, True, False, False),
            {"mode": letter("V"), "uplo": letter("L" if lower else "U")},
            aliases={0: 0},
        )
        return nan_unless(em, info, [v, w])

    def show(self, params):
        return dict(sorted(params.items()))


eigh_p = Eigh("eigh")


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and ascending eigenvalues of Hermitian matrices.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128.
        lower: which triangle is read, where the input is not symmetrized.
        symmetrize_input: use `(x + xᴴ) / 2`.
        sort_eigenvalues: False permits any order.
        subset_by_index: None or the whole range `(0, n)`.
        implementation: an `EighImplementation`; on CPUs all are LAPACK's.

    Returns:
        The eigenvectors, in the columns of matrices, and the eigenvalues; NaN where LAPACK finds
        none. Derivatives of eigenvectors are NaN where they couple equal eigenvalues (docs, page
        Numerics), and right elsewhere.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> v, w = lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
        >>> w
        Array([1., 2.], dtype=float32)
    """
    x = as_operand("eigh", x)
    x = as_floats(x) if symmetrize_input else x
    check_matrices("eigh", x.aval, square=True)
    if symmetrize_input:
        x = symmetrize(x)
    if subset_by_index is not None:
        subset_by_index = tuple([index(i) for i in subset_by_index])
    params = {
        "lower": bool(lower),
        "sort_eigenvalues": bool(sort_eigenvalues),
        "subset_by_index": subset_by_index,
        "algorithm": None if implementation is None else EighImplementation(implementation),
    }
    v, w = bind(eigh_p, (x,), params)
    return v, w
