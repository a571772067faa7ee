"""QR factorization, and products of Householder reflections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.dimensions.expression import is_symbolic_shape, smaller
from gradix._core.operators import Array
from gradix._core.trace import bind
from gradix._ops.arithmetic import sub
from gradix._ops.basis import add_any
from gradix._ops.canonicalization import memoised
from gradix._ops.convert import convert_element_type
from gradix._ops.indexing.slicing import pad, slice_in_dim, slice_p
from gradix._ops.linalg.base import (
    INDEX,
    Factorization,
    adjoint,
    check_matrices,
    each,
    emit_eye,
    emit_triangle,
    flip,
    lapack,
    only_diagonal,
    product,
    real_part,
    routine,
    triangle,
)
from gradix._ops.linalg.lu import take_rows
from gradix._ops.linalg.triangular import triangular_solve
from gradix._ops.operands import as_operand, operands, scalar_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

_lapack = lazy_module("scipy.linalg.lapack")


def _emit_columns(em, x, count: int):
    """The first `count` columns, with columns of zeros added where there are fewer."""
    n = x.shape[-1]
    out = x.aval.update(shape=(*x.shape[:-1], count))
    if is_symbolic_shape((count, n)) and count != n:
        zero, none = em.constant(0, make_aval((), x.dtype)), [0] * x.ndim
        return em.pad(x, zero, none, [*none[1:], count - n], none, out)
    if count > n:
        return em.pad_to(x, out.shape, 0)
    return _emit_part(em, x, out)


def _emit_part(em, x, out):
    """The leading part of the shape of `out`."""
    if out.shape == x.shape:
        return x
    return slice_p.lower(em, out, x, start_indices=(0,) * x.ndim, limit_indices=out.shape, strides=None)


class HouseholderProduct(Factorization):
    """The first columns of the product of the reflections `I - tau v vᴴ`.

    The vectors v are the columns of `a` below the diagonal.
    """

    def abstract(self, a, taus):
        *lead, m, n = check_matrices(self.name, a)
        if a.dtype != taus.dtype:
            raise TypeError(f"The dtypes of a and taus must agree in householder_product, got {a} and {taus}.")
        if taus.shape[:-1] != tuple(lead) or taus.shape[-1:] > (min(m, n),) or m < n:
            raise ValueError(
                f"householder_product needs at least as many rows as columns, and at most as many taus as "
                f"columns with the same leading axes, got shapes {a.shape} and {taus.shape}."
            )
        return a

    def host(self, a, taus):
        if not a.size:
            return a
        build = getattr(_lapack, routine(a.dtype, "orgqr", "ungqr"))
        (out,) = each(lambda x, t: [_padded_build(build, x, t)], a.shape[:-2], [(a.shape[-2:], a.dtype)], a, taus)
        return out

    def lower(self, em, out, a, taus):
        if not out.size:
            return a
        (q,) = lapack(
            em, routine(out.dtype, "orgqr", "ungqr"), [a, taus], [out], (True, False, True), None, aliases={0: 0}
        )
        return q


def _padded_build(build, a, taus):
    """Call LAPACK's routine.

    Without reflections, which its wrapper rejects, return the identity.
    """
    return build(a, taus)[0] if taus.size else np.eye(*a.shape, dtype=a.dtype)


class Geqrf(Factorization):
    """The QR factorization in LAPACK's form: R, reflections below it, and their factors."""

    multiple_results = True

    def abstract(self, x):
        *lead, m, n = check_matrices(self.name, x)
        return [x, x.update(shape=(*lead, smaller(m, n)))]

    def host(self, x):
        *lead, m, n = x.shape
        if not x.size:
            return [x, np.zeros((*lead, min(m, n)), x.dtype)]
        factor = getattr(_lapack, routine(x.dtype, "geqrf"))
        return each(lambda a: factor(a)[:2], tuple(lead), [((m, n), x.dtype), ((min(m, n),), x.dtype)], x)

    def lower(self, em, outs, x):
        if not x.aval.size:
            return [x, em.constant(0, outs[1])]
        return lapack(em, routine(x.dtype, "geqrf"), [x], outs, (True, True, False), None, aliases={0: 0})


class QR(Factorization):
    """`x = Q R`, or with pivoting `x[:, order] = Q R` and the order of the columns."""

    multiple_results = True

    def abstract(self, x, *, pivoting, full_matrices, use_magma=None):
        *lead, m, n = check_matrices(self.name, x)
        k = m if full_matrices else smaller(m, n)
        out = [x.update(shape=(*lead, m, k)), x.update(shape=(*lead, k, n))]
        return [*out, make_aval((*lead, n), INDEX)] if pivoting else out

    def host(self, x, *, pivoting, full_matrices, use_magma=None):
        *lead, m, n = x.shape
        k = m if full_matrices else min(m, n)
        outs = [((m, k), x.dtype), ((k, n), x.dtype), *([((n,), INDEX)] if pivoting else [])]
        if not x.size:
            empty = [np.broadcast_to(np.eye(m, k, dtype=x.dtype), (*lead, m, k)), np.zeros((*lead, k, n), x.dtype)]
            return [*empty, np.broadcast_to(np.arange(n, dtype=INDEX), (*lead, n))][: len(outs)]
        return each(_factor(x.dtype, m, n, k, pivoting), tuple(lead), outs, x)

    def jvp(self, primals, tangents, **params):
        (x,), (t,) = primals, tangents
        out = bind(self, (x,), params)
        if t is None or not x.aval.size:
            return out, [None] * len(out)
        q, r, *order = out
        if order:
            t = flip(take_rows(flip(t), order[0]))
        return out, [*_qr_tangents(q, r, t), *[None for _ in order]]

    def lower(self, em, outs, x, *, pivoting, full_matrices, use_magma=None):
        q_type, r_type, *order_type = outs
        *lead, m, n = x.shape
        if not x.aval.size:
            return [emit_eye(em, q_type), em.constant(0, r_type), *[em.iota(o, o.ndim - 1) for o in order_type]]
        taus = make_aval((*lead, smaller(m, n)), x.dtype)
        order = []
        if pivoting:
            free = em.constant(0, order_type[0])
            r, place, tau = lapack(
                em,
                routine(x.dtype, "geqp3"),
                [x, free],
                [x.aval, order_type[0], taus],
                (True, False, True, False, False),
                None,
                aliases={0: 0, 1: 1},
            )
            order = [em.op("subtract", order_type[0], place, em.constant(1, order_type[0]))]
        else:
            r, tau = lapack(
                em, routine(x.dtype, "geqrf"), [x], [x.aval, taus], (True, True, False), None, aliases={0: 0}
            )
        basis = _emit_columns(em, r, q_type.shape[-1])
        (q,) = lapack(
            em, routine(x.dtype, "orgqr", "ungqr"), [basis, tau], [q_type], (True, False, True), None, aliases={0: 0}
        )
        return [q, emit_triangle(em, _emit_part(em, r, r_type), lower=False), *order]

    def show(self, params):
        return dict(sorted({"use_magma": None, **params}.items()))


@memoised
def _factor(dtype, m: int, n: int, k: int, pivoting: bool):
    """A function that factors one m × n matrix into k columns of Q and k rows of R."""
    factor = getattr(_lapack, routine(dtype, "geqp3" if pivoting else "geqrf"))
    build = getattr(_lapack, routine(dtype, "orgqr", "ungqr"))
    above, zero = np.arange(k)[:, None] <= np.arange(n), np.zeros((), dtype)

    def one(a):
        r, *order, tau, _, _ = factor(a)
        basis = r[:, :k]
        if k > n:
            basis = np.zeros((m, k), dtype)
            basis[:, :n] = r
        return [build(basis, tau)[0], np.where(above, r[:k], zero), *[o - 1 for o in order]]

    return one


def _qr_tangents(q, r, t):
    """S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010), section 4.4.

    With Q square, `dQ = Q Ω` for a skew-Hermitian Ω whose part below the diagonal is that of `Qᴴ dA
    R₁⁻¹`, R₁ the first columns of R; the part that is not determined is zero. A thin Q also
    moves out of its span.
    """
    m, k = q.aval.shape[-2:]
    n = r.aval.shape[-1]
    p = smaller(m, n)
    first = slice_in_dim(slice_in_dim(r, 0, p, axis=-1), 0, p, axis=-2)
    scaled = triangular_solve(first, slice_in_dim(t, 0, p, axis=-1), left_side=False, lower=False)
    inner = product(adjoint(q), scaled)  # k × p
    below = triangle(inner, True, -1)
    if k != p:
        below = pad(below, scalar_like(below, 0), [*[(0, 0, 0)] * (below.aval.ndim - 1), (0, k - p, 0)])
    turn = sub(below, adjoint(below))
    if inner.aval.dtype in dtypes.COMPLEX:  # the diagonal of R stays real
        phase = only_diagonal(sub(inner, convert_element_type(real_part(inner), inner.aval.dtype)))
        if k != p:
            phase = pad(phase, scalar_like(phase, 0), [*[(0, 0, 0)] * (phase.aval.ndim - 1), (0, k - p, 0)])
        turn = add_any(turn, phase)
    dq = product(q, turn)
    if k != m:  # else what is added is zero
        dq = add_any(dq, sub(scaled, product(q, inner)))
    dr = sub(product(adjoint(q), t), product(turn, r))
    return dq, triangle(dr, False)


geqrf_p = Geqrf("geqrf")
householder_product_p = HouseholderProduct("householder_product")
qr_p = QR("qr")


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The orthogonal matrices that are products of Householder reflections, in LAPACK's form.

    Args:
        a: matrices with the reflections' vectors in the columns below the diagonal.
        taus: the reflections' factors, one for each column at most.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.householder_product(jnp.array([[0.0], [1.0]]), jnp.array([1.0]))
        Array([[ 0.],
               [-1.]], dtype=float32)
    """
    return bind(householder_product_p, operands("householder_product", a, taus), {})


def geqrf(x):
    """R and, below it, the vectors of the reflections that make Q; and the reflections' factors."""
    return bind(geqrf_p, (as_operand("geqrf", x),), {})


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, Array]:
    """The QR factorization `x = Q R`.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128.
        pivoting: choose the order of the columns so that the diagonal of R does not grow.
        full_matrices: make Q square; otherwise it has at most as many columns as `x`.
        use_magma: accepted for compatibility.

    Returns:
        Q and R; with pivoting also the order, `x[:, order] = Q R`.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.qr(jnp.array([[3.0], [4.0]]), full_matrices=False)[1]
        Array([[-5.]], dtype=float32)
    """
    return tuple(
        bind(
            qr_p,
            (as_operand("qr", x),),
            {"pivoting": bool(pivoting), "full_matrices": bool(full_matrices), "use_magma": use_magma},
        )
    )
