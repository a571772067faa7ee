"""The singular value decomposition."""

from __future__ import annotations

import enum
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.array import as_array
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import SymbolicDim, is_count, smaller
from gradix._core.trace import bind
from gradix._ops.arithmetic import mul, sub
from gradix._ops.basis import add_any, zeros
from gradix._ops.comparison import gt
from gradix._ops.convert import convert_element_type
from gradix._ops.dimension_values import dim_as_value
from gradix._ops.linalg.base import (
    Factorization,
    adjoint,
    along_columns,
    along_rows,
    check_matrices,
    diagonal,
    each,
    emit_eye,
    info_aval,
    lapack,
    letter,
    nan_unless,
    only_diagonal,
    product,
    real_of,
    real_part,
    routine,
)
from gradix._ops.linalg.coupling import coupled_quotient, off_diagonal
from gradix._ops.operands import as_operand, scalar_like
from gradix._ops.select import choose

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


class SvdAlgorithm(enum.Enum):
    """Ways to compute `svd`. On CPUs, QR is gesvd of LAPACK; all others are gesdd.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> x = jnp.array([[3.0, 0.0], [0.0, 4.0]])
        >>> lax.linalg.svd(x, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)
        Array([4., 3.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class Svd(Factorization):
    """Descending singular values; with `compute_uv` also U and Vᴴ, thin or square."""

    multiple_results = True

    def abstract(self, x, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        *lead, m, n = check_matrices(self.name, x)
        k = smaller(m, n)
        if subset_by_index is not None and subset_by_index != (0, k):
            raise NotImplementedError(
                f"subset_by_index={subset_by_index} is not implemented for {k} singular values: "
                "take the slices of the whole result instead."
            )
        values = make_aval((*lead, k), real_of(x.dtype), x.weak_type)
        if not compute_uv:
            return [values]
        return [
            values,
            x.update(shape=(*lead, m, m if full_matrices else k)),
            x.update(shape=(*lead, n if full_matrices else k, n)),
        ]

    def host(self, x, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        *lead, m, n = x.shape
        k = min(m, n)
        outs = [((k,), real_of(x.dtype))]
        if compute_uv:
            outs += [((m, m if full_matrices else k), x.dtype), ((n if full_matrices else k, n), x.dtype)]
        if not x.size:
            return [
                np.zeros((*lead, *s), d) if len(s) == 1 else np.broadcast_to(np.eye(*s, dtype=d), (*lead, *s))
                for s, d in outs
            ]
        solve = getattr(_lapack, routine(x.dtype, _routine(algorithm)))

        def one(a):
            u, s, vh, info = solve(a, compute_uv=int(compute_uv), full_matrices=int(full_matrices))
            if info != 0:
                return [np.nan] * len(outs)
            return [s, u, vh] if compute_uv else [s]

        return each(one, tuple(lead), outs, x)

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, **params):
        (x,), (t,) = primals, tangents
        m, n = x.aval.shape[-2:]
        whole = full_matrices and m != n
        if t is None or not x.aval.size:
            out = bind(self, (x,), {"full_matrices": full_matrices, "compute_uv": compute_uv, **params})
            return out, [None] * len(out)
        if compute_uv and whole:
            raise NotImplementedError(
                "Singular value decomposition JVP not implemented for full matrices: the columns "
                f"beyond the {min(m, n)} singular values, of matrices of shape {(m, n)}, are "
                "not determined. Use full_matrices=False."
            )
        s, u, vh = bind(self, (x,), {"full_matrices": False, "compute_uv": True, **params})
        inner = product(product(adjoint(u), t), adjoint(vh))
        ds = real_part(diagonal(inner))
        if not compute_uv:
            return [s], [ds]
        return [s, u, vh], _turns(t, s, u, vh, inner, ds)

    def lower(self, em, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
        if not x.aval.size:
            return [em.constant(0, outs[0]), *[emit_eye(em, o) for o in outs[1:]]]
        *lead, m, n = x.shape
        k = smaller(m, n)
        mode = ("A" if full_matrices else "S") if compute_uv else "N"
        sides = outs[1:] if compute_uv else [x.aval.update(shape=(*lead, m, k)), x.aval.update(shape=(*lead, k, n))]
        results = [x.aval, outs[0], *sides, info_aval(tuple(lead))]
        _, s, u, vh, info = lapack(
            em,
            routine(x.dtype, _routine(algorithm)),
            [x],
            results,
            (True, True, False, True, True, False),
            {"mode": letter(mode)},
            aliases={0: 0},
        )
        return nan_unless(em, info, [s, u, vh] if compute_uv else [s])

    def show(self, params):
        return dict(sorted(params.items()))


def _routine(algorithm) -> str:
    return "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd"


def _turns(t, s, u, vh, inner, ds):
    """The tangents of s, U and Vᴴ, with `inner = Uᴴ dA V`.

    M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008), section
    3.2; for complex matrices the imaginary diagonal of `inner`, which phases of U and V share, goes
    to U: Z. Wan, S. Zhang (2019).
    """
    shape, dtype = inner.aval.shape, inner.aval.dtype
    rows, columns = along_rows(s, shape), along_columns(s, shape)
    back, half = adjoint(inner), scalar_like(inner, 0.5)
    # Of the turns of U and V, half the sum divides by s_j - s_i, half the difference by s_j + s_i.
    skew = mul(sub(inner, back), half)
    total = mul(off_diagonal(add_any(inner, back)), half)
    both, ds = coupled_quotient(total, sub(rows, columns), s, ds)
    apart, ds = coupled_quotient(off_diagonal(skew), rows + columns, s, ds)
    turn_u, turn_v = add_any(both, apart), sub(both, apart)
    if dtype in dtypes.COMPLEX:
        phase, ds = coupled_quotient(only_diagonal(skew), rows, s, ds)
        turn_u = add_any(turn_u, phase)
    du, dvh = product(u, turn_u), product(adjoint(turn_v), vh)
    m, n = u.aval.shape[-2], vh.aval.shape[-1]
    if is_count(m) or is_count(n) or m > n:  # the part outside the span of U
        out = product(t, adjoint(vh))
        outside = sub(out, product(u, product(adjoint(u), out)))
        outside = _where_more(m, n, outside)
        across, ds = coupled_quotient(outside, along_rows(s, u.aval.shape), s, ds)
        du = add_any(du, across)
    if is_count(m) or is_count(n) or n > m:
        out = product(adjoint(u), t)
        outside = sub(out, product(product(out, adjoint(vh)), vh))
        outside = _where_more(n, m, outside)
        across, ds = coupled_quotient(outside, along_columns(s, vh.aval.shape), s, ds)
        dvh = add_any(dvh, across)
    return [ds, du, dvh]


def _where_more(m, n, x):
    """`x` where m > n, and else zeros, if only the running program knows; else `x`."""
    if not (is_count(m) or is_count(n)):
        return x
    m, n = [dim_as_value(d) if type(d) is SymbolicDim else as_array(np.int32(d)) for d in (m, n)]
    is_more = gt(*[convert_element_type(d, np.dtype("int32")) for d in (m, n)])
    return choose(is_more, zeros(x.aval), x)


svd_p = Svd("svd")


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """The singular value decomposition `x = U diag(s) Vᴴ`.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128.
        full_matrices: make U and V square; otherwise as many columns as singular values.
        compute_uv: False gives the singular values alone.
        subset_by_index: None or the whole range.
        algorithm: an `SvdAlgorithm`; on CPUs QR iteration, or else divide and conquer.

    Returns:
        U, the descending s, and Vᴴ; NaN where LAPACK fails. Derivatives of U and Vᴴ are NaN where
        they couple equal singular values, or zeros (docs, page Numerics), and right elsewhere.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.svd(jnp.array([[3.0, 0.0], [0.0, -4.0]]), compute_uv=False)
        Array([4., 3.], dtype=float32)
    """
    if subset_by_index is not None:
        subset_by_index = tuple([index(i) for i in subset_by_index])
    out = bind(
        svd_p,
        (as_operand("svd", x),),
        {
            "full_matrices": bool(full_matrices),
            "compute_uv": bool(compute_uv),
            "subset_by_index": subset_by_index,
            "algorithm": None if algorithm is None else SvdAlgorithm(algorithm),
        },
    )
    if not compute_uv:
        return out[0]
    s, u, vh = out
    return u, s, vh
