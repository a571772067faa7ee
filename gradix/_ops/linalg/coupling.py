"""Quotients by gaps between eigenvalues, in derivatives of eigenvectors and singular vectors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._core.divisions import entries
from gradix._core.primitive import Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs, div, mul, sub
from gradix._ops.basis import add_any, broadcast_in_dim, to_front, zeros
from gradix._ops.bitwise import bitwise_and, bitwise_not, bitwise_or
from gradix._ops.comparison import eq, le, ne
from gradix._ops.complex_parts import neg
from gradix._ops.convert import convert_element_type
from gradix._ops.linalg.base import adjoint, diagonal_mask
from gradix._ops.operands import scalar_like
from gradix._ops.reductions import reduce_max
from gradix._ops.select import choose

# LAPACK's eigenvalues and singular values have errors of a few units in the last place of the
# largest one, so that the gap between two closer ones has no correct digit.
_UNITS = 4
# Rounding errors of an inner product of n terms, in units of the largest times √n, stay below.
_ROUNDING = 64


class CoupledQuotient(Primitive):
    """`x / gaps`, and `t` as it is: what derivatives say about turns within planes of equal values.

    The operands are gaps between values, the values along the last axis, couplings `x` of the pairs,
    and the tangents `t` of the values. A pair is alike where its gap is negligible beside the
    largest value. Docs, page Numerics, say why no turn is right for every function, so that:

    - forward, a pair that is alike and coupled is NaN;
    - backward, a function of vectors alone (without cotangents for the values) that does not change
      with turns has no part in them; other functions get NaN.
    """

    multiple_results = True

    def abstract(self, gaps, values, x, t):
        return [x, t]

    def host(self, gaps, values, x, t):
        alike = np.abs(gaps) <= _limit_of(values, gaps)
        apart = np.where(alike, gaps.dtype.type(1), gaps)
        return [np.where(alike & (x != 0), x.dtype.type(np.nan), x / apart), t]

    def expand(self, gaps, values, x, t):
        alike = _alike(gaps, values)
        return [_undefined(_coupled(alike, x), _divided(x, gaps, alike)), t]

    def jvp(self, primals, tangents):
        gaps, values, x, t = primals
        dgaps, _, dx, dt = tangents
        outs = bind(self, primals, {})
        if dgaps is not None:  # d(x / g) = (dx - (x / g) dg) / g
            part = neg(mul(outs[0], convert_element_type(dgaps, x.aval.dtype)))
            dx = part if dx is None else add_any(dx, part)
        if dx is None:
            return outs, [None, dt]
        dt = zeros(t.aval) if dt is None else dt
        return outs, bind(self, (gaps, values, dx, dt), {})

    def transpose(self, cts, gaps, values, x, t):
        ct, ct_values = cts
        if ct is not None:
            ct = bind(cotangent_p, (gaps, values, ct), {"alone": ct_values is None})
        return [None, None, ct, ct_values]

    def batch(self, size, args, axes):
        return bind(self, [to_front(size, x, a) for x, a in zip(args, axes)], {}), [0, 0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[2]), entries(avals[3])]


class CoupledCotangent(Primitive):
    """The cotangent of the couplings, from that of their quotients by gaps.

    `alone` says that the function depends on vectors alone.
    """

    def abstract(self, gaps, values, ct, *, alone):
        return ct

    def host(self, gaps, values, ct, *, alone):
        alike = np.abs(gaps) <= _limit_of(values, gaps)
        out = ct / np.where(alike, gaps.dtype.type(1), gaps)
        if not np.count_nonzero(alike):
            return out
        undefined, nan = _turned_host(ct) if alone else (gaps == 0) | (ct != 0), np.nan
        return np.where(alike, np.where(undefined, nan, 0).astype(ct.dtype), out)

    def expand(self, gaps, values, ct, *, alone):
        alike = _alike(gaps, values)
        none = eq(gaps, scalar_like(gaps, 0))
        undefined = _turned(ct) if alone else bitwise_or(none, ne(ct, scalar_like(ct, 0)))
        return choose(alike, _divided(ct, gaps, alike), _undefined(undefined, _full(ct, 0)))

    def jvp(self, primals, tangents, *, alone):
        gaps, values, ct = primals
        dgaps, _, dct = tangents
        out = bind(self, primals, {"alone": alone})
        if dgaps is not None:
            part = neg(mul(out, convert_element_type(dgaps, ct.aval.dtype)))
            dct = part if dct is None else add_any(dct, part)
        return out, None if dct is None else bind(self, (gaps, values, dct), {"alone": alone})

    def transpose(self, ct, gaps, values, x, *, alone):
        return [None, None, bind(self, (gaps, values, ct), {"alone": alone})]

    def batch(self, size, args, axes, *, alone):
        moved = [to_front(size, x, a) for x, a in zip(args, axes)]
        return bind(self, moved, {"alone": alone}), 0

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[2])]


quotient_p = CoupledQuotient("coupled_quotient")
cotangent_p = CoupledCotangent("coupled_cotangent")


def coupled_quotient(x, gaps, values, tangent):
    """`x / gaps`, undefined where a gap is negligible beside the largest of `values`.

    Args:
        x, gaps: arrays of one shape, `gaps` real.
        values: the eigenvalues or singular values, along the last axis.
        tangent: their tangent.

    Returns:
        The quotient, and the tangent to be used from here on.
    """
    return bind(quotient_p, (gaps, values, x, tangent), {})


def off_diagonal(x):
    return choose(diagonal_mask(x), x, _full(x, 0))


def _rounding(x) -> float:
    return float(ml_dtypes.finfo(x.aval.dtype).eps)


def _limit_of(values, gaps):
    largest = np.abs(values).max(-1, initial=0)
    return (largest * gaps.dtype.type(_UNITS * np.finfo(gaps.dtype).eps))[..., None, None]


def _alike(gaps, values):
    largest = reduce_max(abs(values), (values.aval.ndim - 1,))
    limit = mul(largest, scalar_like(largest, _UNITS * _rounding(largest)))
    shape = gaps.aval.shape
    return le(abs(gaps), broadcast_in_dim(limit, shape, tuple(range(len(shape) - 2))))


def _divided(x, gaps, alike):
    apart = choose(alike, gaps, _full(gaps, 1))
    return div(x, convert_element_type(apart, x.aval.dtype))


def _turned_host(ct):
    *_, m, n = ct.shape
    if m != n:
        return ct != 0
    largest = np.abs(ct).max((-2, -1), initial=0, keepdims=True)
    part = _ROUNDING * float(n) ** 0.5 * float(np.finfo(ct.dtype).eps)
    difference = np.abs(ct - np.conj(np.swapaxes(ct, -1, -2)))
    return ~(difference <= largest * largest.dtype.type(part))


def _coupled(alike, x):
    return bitwise_and(alike, ne(x, scalar_like(x, 0)))


def _turned(ct):
    """Where the cotangent of turns is not Hermitian, so that the function changes with turns."""
    *lead, m, n = ct.aval.shape
    if m != n:
        return ne(ct, scalar_like(ct, 0))
    largest = reduce_max(abs(ct), (len(lead), len(lead) + 1))
    limit = mul(largest, scalar_like(largest, _ROUNDING * float(n) ** 0.5 * _rounding(largest)))
    wide = broadcast_in_dim(limit, ct.aval.shape, tuple(range(len(lead))))
    return bitwise_not(le(abs(sub(ct, adjoint(ct))), wide))


def _undefined(where, x):
    return choose(where, x, _full(x, np.nan))


def _full(x, value):
    return broadcast_in_dim(scalar_like(x, value), x.aval.shape, ())
