"""neg, and the parts of complex numbers: real, imag, complex, conj."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradix._core.array import scalar_array
from gradix._core.aval import make_aval
from gradix._core.dtypes import COMPLEX, NUMERIC, real_dtype, to_complex_dtype
from gradix._core.operators import Array
from gradix._core.primitive import Linear, MeshTraits, ValueTraits
from gradix._core.trace import bind
from gradix._ops.families import Elementwise, linear_unary
from gradix._ops.operands import operands, scalar_like

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike

# the float dtypes that have a complex dtype of the same precision
WIDE_FLOAT = frozenset([np.dtype("float32"), np.dtype("float64")])

# Transpose rules are for the real pairing Re(ct·t), with which the gradient of |z|² is 2·z̄.


def _host_complex(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.result_type(x.dtype, np.complex64))
    out.real, out.imag = x, y
    return out


def _complex_back(ct, x, y):
    return [real(ct) if type(x) is Linear else None, neg(imag(ct)) if type(y) is Linear else None]


def _zero(x):
    return scalar_array(0, x.aval.dtype, False)


class _Conj(Elementwise):
    """The conjugate; `input_dtype` is real when a real operand is made complex on the way."""

    def jvp(self, primals, tangents, **params):
        return bind(self, primals, params), bind(self, tuple(tangents), params)

    def transpose(self, ct, x, **_):
        out = conj(ct)
        return [out if x.dtype in COMPLEX else real(out)]

    def abstract(self, x, **_):
        self.check_dtypes((x,))
        return make_aval(x.shape, to_complex_dtype(x.dtype), x.weak_type)

    def lower(self, em, out, x, **_):
        part = make_aval(out.shape, real_dtype(out.dtype))
        if x.aval.dtype not in COMPLEX:
            return em.op("complex", out, x, em.splat(0, part))
        return em.op("complex", out, em.op("real", part, x), em.op("negate", part, em.op("imag", part, x)))


neg_p = linear_unary(
    "neg",
    np.negative,
    "negate",
    NUMERIC,
    lambda ct, x: neg(ct),
    formula="simple",
    values=ValueTraits(keeps_nan=True),
    mesh=MeshTraits(sums="kept"),
)
real_p = linear_unary(
    "real",
    np.real,
    "real",
    COMPLEX,
    lambda ct, x: complex(ct, _zero(ct)),
    out=real_dtype,
    mesh=MeshTraits(linear="all"),
)
imag_p = linear_unary(
    "imag",
    np.imag,
    "imag",
    COMPLEX,
    lambda ct, x: complex(_zero(ct), neg(ct)),
    out=real_dtype,
    mesh=MeshTraits(linear="all"),
)
complex_p = Elementwise(
    "complex",
    _host_complex,
    lambda t, x, y: complex(t, scalar_like(t, 0)),
    lambda t, x, y: complex(scalar_like(t, 0), t),
    hlo="complex",
    dtypes=WIDE_FLOAT,
    out=to_complex_dtype,
    transpose=_complex_back,
    mesh=MeshTraits(linear="all"),
)
conj_p = _Conj(
    "conj",
    lambda x, input_dtype: np.conj(x).astype(np.result_type(x.dtype, np.complex64), copy=False),
    hlo="",
    dtypes=WIDE_FLOAT | COMPLEX,
    mesh=MeshTraits(linear="all"),
)


def neg(x: ArrayLike) -> Array:
    """`-x`, elementwise.

    Example:
        >>> from gradix import lax
        >>> lax.neg(2.0)
        Array(-2., dtype=float32, weak_type=True)
    """
    return bind(neg_p, operands("neg", x), {})


def real(x: ArrayLike) -> Array:
    """The real part of complex `x`.

    Example:
        >>> from gradix import lax
        >>> lax.real(1 + 2j)
        Array(1., dtype=float32, weak_type=True)
    """
    return bind(real_p, operands("real", x), {})


def imag(x: ArrayLike) -> Array:
    """The imaginary part of complex `x`.

    Example:
        >>> from gradix import lax
        >>> lax.imag(1 + 2j)
        Array(2., dtype=float32, weak_type=True)
    """
    return bind(imag_p, operands("imag", x), {})


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """`x + i·y` of two real arrays.

    Example:
        >>> from gradix import lax
        >>> lax.complex(1.0, 2.0)
        Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return bind(complex_p, operands("complex", x, y), {})


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; a real `x` becomes complex.

    Example:
        >>> from gradix import lax
        >>> lax.conj(1 + 2j)
        Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    (x,) = operands("conj", x)
    return bind(conj_p, (x,), {"input_dtype": x.aval.dtype})
