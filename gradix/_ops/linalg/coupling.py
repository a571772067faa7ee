"""Quotients by gaps between eigenvalues, in derivatives of eigenvectors and singular vectors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._core.dimensions.counts import bound_of
from gradix._core.divisions import entries
from gradix._core.primitive import MeshTraits, Primitive
from gradix._core.trace import bind
from gradix._ops.arithmetic import abs, div, mul, sub
from gradix._ops.basis import broadcast_in_dim, to_front, zeros
from gradix._ops.bitwise import bitwise_and, bitwise_not, bitwise_or
from gradix._ops.comparison import eq, le, ne
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


class Coupling(Primitive):
    """What derivatives say about the turns of vectors within planes of equal values.

    The operands are masks of pairs of values that are `alike`, and that are `equal`, the coupling
    `x` of pairs, and the tangents `t` of the values; results are `x` and `t`. Docs, page Numerics,
    say why no turn is right for every function, so that:

    - forward, a pair that is alike and coupled is NaN;
    - backward, a function of vectors alone (without cotangents for the values) that does not change
      with turns has no part in them; other functions get NaN.
    """

    mesh = MeshTraits(linear="last")
    multiple_results = True

    def abstract(self, alike, equal, x, t):
        return [x, t]

    def host(self, alike, equal, x, t):
        return [np.where(alike & (x != 0), x.dtype.type(np.nan), x), t]

    def expand(self, alike, equal, x, t):
        return [_undefined(_coupled(alike, x), x), t]

    def jvp(self, primals, tangents):
        alike, equal, x, t = primals
        dx, dt = tangents[2:]
        outs = bind(self, primals, {})
        if dx is None:
            return outs, [None, dt]
        dt = zeros(t.aval) if dt is None else dt
        return outs, bind(self, (alike, equal, dx, dt), {})

    def transpose(self, cts, alike, equal, x, t):
        ct, ct_values = cts
        if ct is None:
            return [None, None, None, ct_values]
        if ct_values is not None:
            out = _undefined(bitwise_or(equal, _coupled(alike, ct)), ct)
        else:
            out = choose(alike, ct, _undefined(_turned(ct), _full(ct, 0)))
        return [None, None, out, ct_values]

    def batch(self, size, args, axes):
        return bind(self, [to_front(size, x, a) for x, a in zip(args, axes)], {}), [0, 0]

    def divide(self, mesh, avals, outs, params):
        return [entries(avals[2]), entries(avals[3])]


coupling_p = Coupling("coupling")


def coupled_quotient(x, gaps, values, tangent):
    """`x / gaps`, undefined where a gap is negligible beside the largest of `values`.

    Args:
        x, gaps: arrays of one shape, `gaps` real.
        values: the eigenvalues or singular values, along the last axis.
        tangent: their tangent.

    Returns:
        The quotient, and the tangent to be used from here on.
    """
    shape = gaps.aval.shape
    largest = reduce_max(abs(values), (values.aval.ndim - 1,))
    limit = mul(largest, scalar_like(largest, _UNITS * _rounding(largest)))
    alike = le(abs(gaps), broadcast_in_dim(limit, shape, tuple(range(limit.aval.ndim))))
    equal = eq(gaps, scalar_like(gaps, 0))
    x, tangent = bind(coupling_p, (alike, equal, x, tangent), {})
    apart = choose(alike, gaps, _full(gaps, 1))
    return div(x, convert_element_type(apart, x.aval.dtype)), tangent


def off_diagonal(x):
    return choose(diagonal_mask(x), x, _full(x, 0))


def _rounding(x) -> float:
    return float(ml_dtypes.finfo(x.aval.dtype).eps)


def _coupled(alike, x):
    return bitwise_and(alike, ne(x, scalar_like(x, 0)))


def _turned(ct):
    """Where the cotangent of turns is not Hermitian, so that the function changes with turns."""
    *lead, m, n = ct.aval.shape
    if m != n:
        return ne(ct, scalar_like(ct, 0))
    largest = reduce_max(abs(ct), (len(lead), len(lead) + 1))
    limit = mul(largest, scalar_like(largest, _ROUNDING * float(bound_of(n)) ** 0.5 * _rounding(largest)))
    wide = broadcast_in_dim(limit, ct.aval.shape, tuple(range(len(lead))))
    return bitwise_not(le(abs(sub(ct, adjoint(ct))), wide))


def _undefined(where, x):
    return choose(where, x, _full(x, np.nan))


def _full(x, value):
    return broadcast_in_dim(scalar_like(x, value), x.aval.shape, ())
