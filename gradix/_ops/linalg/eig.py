"""Eigenvalues and eigenvectors of any square matrices, and the Schur form."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs as absolute, div, mul, reciprocal, sub
from gradix._ops.comparison import eq
from gradix._ops.complex_parts import complex, conj, imag, real
from gradix._ops.convert import convert_element_type
from gradix._ops.creation import broadcasted_iota
from gradix._ops.linalg.base import (
    Factorization,
    adjoint,
    along_columns,
    along_rows,
    check_matrices,
    diagonal,
    each,
    identity,
    info_aval,
    lapack,
    letter,
    nan_unless,
    product,
    routine,
)
from gradix._ops.linalg.solve import solve_matrices
from gradix._ops.operands import as_operand
from gradix._ops.reductions import argmax, reduce_sum

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike
    from gradix._core.operators import Array

_lapack = lazy_module("scipy.linalg.lapack")


class EigImplementation(enum.Enum):
    """Ways to compute `eig` on accelerators; on CPUs LAPACK is used whichever is asked for.

    Example:
        >>> import gradix.numpy as jnp
        >>> from gradix import lax
        >>> x = jnp.array([[0.0, 1.0], [1.0, 0.0]])
        >>> values = lax.linalg.eig(x, implementation=lax.linalg.EigImplementation.LAPACK)[0]
        >>> jnp.sort(values.real)
        Array([-1.,  1.], dtype=float32)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(Factorization):
    """Eigenvalues, and optionally left and right eigenvectors in columns; all are complex."""

    multiple_results = True

    def abstract(
        self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation
    ):
        shape = check_matrices(self.name, x, square=True)
        dtype = dtypes.to_complex_dtype(x.dtype)
        vectors = compute_left_eigenvectors + compute_right_eigenvectors
        return [make_aval(shape[:-1], dtype, x.weak_type), *[make_aval(shape, dtype, x.weak_type)] * vectors]

    def host(self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation):
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        shape, dtype = x.shape, dtypes.to_complex_dtype(x.dtype)
        outs = [(shape[-1:], dtype), *[(shape[-2:], dtype)] * (left + right)]
        if not x.size:
            return [np.zeros((*shape[:-2], *s), d) for s, d in outs]
        solve, is_complex = getattr(_lapack, routine(x.dtype, "geev")), x.dtype.kind == "c"

        def one(a):
            if not np.isfinite(a).all():
                return [np.nan + 1j * np.nan] * len(outs)
            *w, vl, vr, info = solve(a, compute_vl=int(left), compute_vr=int(right))
            if info != 0:
                return [np.nan + 1j * np.nan] * len(outs)
            values = w[0] if is_complex else w[0] + 1j * w[1]
            vectors = [v for v, asked in ((vl, left), (vr, right)) if asked]
            return [values, *[v if is_complex else _unpacked(w[1], v) for v in vectors]]

        return each(one, shape[:-2], outs, x)

    def jvp(
        self,
        primals,
        tangents,
        *,
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    ):
        (x,), (t,) = primals, tangents
        params = {
            "compute_left_eigenvectors": compute_left_eigenvectors,
            "compute_right_eigenvectors": compute_right_eigenvectors,
            "enable_eigvec_derivs": enable_eigvec_derivs,
            "implementation": implementation,
        }
        out = bind(self, (x,), params)
        if t is None or not x.aval.size:
            return out, [None] * len(out)
        if (compute_left_eigenvectors or compute_right_eigenvectors) and not enable_eigvec_derivs:
            raise NotImplementedError(
                "Derivatives of non-symmetric eigenvectors are only valid for one choice of their length and phase, "
                "and where eigenvalues differ. Pass enable_eigvec_derivs=True to lax.linalg.eig for those of "
                "eigenvectors of length 1; or use the eigenvalues alone, or eigh for Hermitian matrices."
            )
        # M. Giles, "Collected matrix derivative results for forward and reverse mode AD" (2008),
        # section 3.1.
        w, v = (
            (out[0], out[-1])
            if compute_right_eigenvectors
            else bind(
                self,
                (x,),
                {
                    **params,
                    "compute_left_eigenvectors": False,
                    "compute_right_eigenvectors": True,
                    "enable_eigvec_derivs": True,
                },
            )
        )
        change = convert_element_type(t, v.aval.dtype)
        inner = solve_matrices(v, product(change, v))
        tangents_out = [diagonal(inner)]
        if compute_left_eigenvectors:  # they are eigenvectors of the adjoint matrix
            u = out[1]
            turned = solve_matrices(u, product(adjoint(change), u))
            tangents_out.append(_vector_tangent(conj(w), u, turned))
        return out, [*tangents_out, _vector_tangent(w, v, inner)] if compute_right_eigenvectors else tangents_out

    def lower(
        self,
        em,
        outs,
        x,
        *,
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        enable_eigvec_derivs,
        implementation,
    ):
        if not x.aval.size:
            return [em.constant(0, o) for o in outs]
        shape, lead = x.shape, x.shape[:-2]
        values, matrix = outs[0], make_aval(shape, outs[0].dtype)
        is_complex = x.dtype in dtypes.COMPLEX
        part = values if is_complex else make_aval(shape[:-1], x.dtype)
        config = {
            "compute_left": letter("V" if compute_left_eigenvectors else "N"),
            "compute_right": letter("V" if compute_right_eigenvectors else "N"),
        }
        if is_complex:
            w, vl, vr, info = lapack(
                em,
                routine(x.dtype, "geev"),
                [x],
                [part, matrix, matrix, info_aval(lead)],
                (True, False, True, True, False),
                config,
            )
        else:
            wr, wi, vl, vr, info = lapack(
                em,
                routine(x.dtype, "geev"),
                [x],
                [part, part, matrix, matrix, info_aval(lead)],
                (True, False, False, True, True, False),
                config,
            )
            w = em.op("complex", values, wr, wi)
        vectors = [v for v, asked in ((vl, compute_left_eigenvectors), (vr, compute_right_eigenvectors)) if asked]
        return nan_unless(em, info, [w, *vectors])

    def show(self, params):
        return dict(sorted(params.items()))


def _unpacked(imaginary, packed):
    """Complex eigenvectors from LAPACK's form, two real columns for each conjugate pair."""
    out = packed.astype(np.result_type(packed.dtype, np.complex64))
    first = np.flatnonzero(imaginary > 0)
    out[:, first] = packed[:, first] + 1j * packed[:, first + 1]
    out[:, first + 1] = out[:, first].conj()
    return out


def _vector_tangent(w, v, inner):
    """The tangents of eigenvectors, which keep length 1, and whose largest element stays real, as LAPACK makes it."""
    shape = v.aval.shape
    eye = identity(v, shape[-1])
    weights = sub(reciprocal(sub(along_rows(w, shape), along_columns(w, shape)) + eye), eye)
    moved = product(v, mul(weights, inner))
    lengthened = real(diagonal(product(adjoint(v), moved)))
    row = len(shape) - 2
    largest = along_rows(argmax(absolute(v), row, np.int32), shape)
    is_largest = convert_element_type(eq(broadcasted_iota(np.int32, shape, row), largest), v.aval.dtype)
    turned = imag(div(reduce_sum(mul(is_largest, moved), (row,)), reduce_sum(mul(is_largest, v), (row,))))
    return sub(moved, mul(v, along_rows(complex(lengthened, turned), shape)))


eig_p = Eig("eig")


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of square matrices.

    Args:
        x: matrices, in the last two axes; float32, float64, complex64 or complex128.
        compute_left_eigenvectors: give u with `uᴴ x = w uᴴ`, in columns.
        compute_right_eigenvectors: give v with `x v = w v`, in columns.
        enable_eigvec_derivs: allow derivatives of the eigenvectors, for functions that do not
            depend on their phase.
        implementation: an `EigImplementation`; on CPUs all are LAPACK's.
        use_magma: accepted for compatibility.

    Returns:
        A list of complex arrays: the eigenvalues in no particular order, then the requested
        eigenvectors; NaN where LAPACK finds none.

    Example:
        >>> from gradix import lax
        >>> import gradix.numpy as jnp
        >>> lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))[0]
        Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return bind(
        eig_p,
        (as_operand("eig", x),),
        {
            "compute_left_eigenvectors": bool(compute_left_eigenvectors),
            "compute_right_eigenvectors": bool(compute_right_eigenvectors),
            "enable_eigvec_derivs": bool(enable_eigvec_derivs),
            "implementation": None if implementation is None else EigImplementation(implementation),
        },
    )
