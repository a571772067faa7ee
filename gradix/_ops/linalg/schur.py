"""Orthogonal similarity to simpler matrices: Schur and Hessenberg form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import larger
from gradix._core.trace import bind
from gradix._ops.linalg.base import Factorization, check_matrices, each, info_aval, lapack, letter, nan_unless, routine
from gradix._ops.operands import as_operand

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array

_lapack = lazy_module("scipy.linalg.lapack")


class Schur(Factorization):
    """T and optionally the unitary Z with `x = Z T Zᴴ`.

    T is upper triangular; for real `x` it may have 2×2 blocks on the diagonal.
    """

    multiple_results = True

    def abstract(self, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        check_matrices(self.name, x, square=True)
        return [x, x] if compute_schur_vectors else [x]

    def host(self, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        count = 1 + compute_schur_vectors
        if not x.size:
            return [x] * count
        factor = getattr(_lapack, routine(x.dtype, "gees"))

        def one(a):
            t, *_, z, _, info = factor(lambda *w: False, a, compute_v=int(compute_schur_vectors))
            return [t, z][:count] if info == 0 else [np.nan] * count

        return each(one, x.shape[:-2], [(x.shape[-2:], x.dtype)] * count, x)

    def lower(self, em, outs, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        if not x.aval.size:
            return [x] * len(outs)
        lead = x.shape[:-2]
        values = [make_aval(x.shape[:-1], x.dtype)] * (1 if x.dtype in dtypes.COMPLEX else 2)
        results = [x.aval, x.aval, *values, info_aval(lead), info_aval(lead)]
        config = {"mode": letter("V" if compute_schur_vectors else "N"), "sort": letter("N")}
        columns = (True, True, True, *[False] * (len(values) + 2))
        t, z, *_, info = lapack(em, routine(x.dtype, "gees"), [x], results, columns, config, aliases={0: 0})
        return nan_unless(em, info, [t, z][: len(outs)])

    def show(self, params):
        return dict(sorted(params.items()))


class Hessenberg(Factorization):
    """The upper Hessenberg form of `x`, and the factors of the reflections.

    The vectors of the reflections are stored below the first subdiagonal.
    """

    multiple_results = True

    def abstract(self, x):
        shape = check_matrices(self.name, x, square=True)
        return [x, make_aval((*shape[:-2], larger(shape[-1] - 1, 0)), x.dtype, x.weak_type)]

    def host(self, x):
        *lead, n = x.shape[:-1]
        if x.size == 0 or n == 1:
            return [x, np.zeros((*lead, max(n - 1, 0)), x.dtype)]
        factor = getattr(_lapack, routine(x.dtype, "gehrd"))

        def one(a):
            h, tau, info = factor(a)
            return [h, tau] if info == 0 else [np.nan, np.nan]

        return each(one, tuple(lead), [((n, n), x.dtype), ((n - 1,), x.dtype)], x)

    def lower(self, em, outs, x):
        n = x.shape[-1]
        if not x.aval.size or n == 1:
            return [x, em.constant(0, outs[1])]
        h, tau, info = lapack(
            em,
            routine(x.dtype, "gehrd"),
            [x],
            [*outs, info_aval(x.shape[:-2])],
            (True, True, False, False),
            {"low": np.int32(1), "high": np.int32(n)},
            aliases={0: 0},
        )
        return nan_unless(em, info, [h, tau])


schur_p = Schur("schur")
hessenberg_p = Hessenberg("hessenberg")


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable | None = None,
) -> list[Array]:
    """The Schur decomposition `x = Z T Zᴴ`, Z unitary and T upper triangular.

    Args:
        x: square matrices, in the last two axes; float32, float64, complex64 or complex128.
        compute_schur_vectors: give Z as well.
        sort_eig_vals: must be False: the eigenvalues stand on the diagonal in LAPACK's order.
        select_callable: for sorting; must be None.

    Returns:
        A list of T and, if requested, Z; NaN where LAPACK fails. For real matrices T is real and
        has 2×2 blocks on its diagonal for pairs of complex eigenvalues. There is no derivative, as
        it is not determined.

    Raises:
        NotImplementedError: sorting is requested.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.schur(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        Array([[ 0.,  1.],
               [-1.,  0.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur does not sort: for that LAPACK calls a function with every eigenvalue, which "
            "compiled programs cannot provide. Use sort_eig_vals=False and select_callable=None; "
            "scipy.linalg.schur sorts, outside of compiled programs."
        )
    return bind(
        schur_p,
        (as_operand("schur", x),),
        {"compute_schur_vectors": bool(compute_schur_vectors), "sort_eig_vals": False, "select_callable": None},
    )


def hessenberg(a: ArrayLike) -> list[Array]:
    """Square matrices brought to upper Hessenberg form by Householder reflections, `a = Q H Qᴴ`.

    Args:
        a: square matrices, in the last two axes; float32, float64, complex64 or complex128.

    Returns:
        A list: matrices with H in the upper triangle and on the first subdiagonal, and below it the
            vectors of the
        reflections; and the factors of the reflections, one fewer than rows. `householder_product`
        of the vectors from the second row on and the factors is Q but for its first row and column.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> h, taus = lax.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> h.shape, taus.shape
        ((2, 2), (1,))
    """
    return bind(hessenberg_p, (as_operand("hessenberg", a),), {})
