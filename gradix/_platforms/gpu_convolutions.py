"""Convolutions of complex numbers and of integers, which XLA:GPU does not have, by real ones."""

from __future__ import annotations

import numpy as np

from gradix._core import dtypes
from gradix._core.aval import make_aval
from gradix._ops.conv.conv import conv_general_dilated_p
from gradix._platforms.records import CORRECTNESS, Rewrite

_F64, _SIGNED, _WORD = map(np.dtype, ("float64", "int64", "uint64"))
_DIGIT = 16  # bits


def _is_complex(site) -> bool:
    return site.out.dtype in dtypes.COMPLEX


def _by_parts(em, site, lhs, rhs):
    part = dtypes.real_dtype(site.out.dtype)

    def parts(x):
        if x.aval.dtype not in dtypes.COMPLEX:
            return em.convert(x, part), None
        aval = make_aval(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
        both = [em.op(p, aval, x) for p in ("real", "imag")]
        return [em.convert(v, part) for v in both]

    out = make_aval(site.out.shape, part)
    params = {}
    if site.params.get("preferred_element_type") is not None:
        params["preferred_element_type"] = part

    def convolved(a, b):
        return None if a is None or b is None else site.plain(em, a, b, out=out, **params)

    (a, b), (c, d) = parts(lhs), parts(rhs)
    return em.op(
        "complex",
        site.out,
        _combined(em, "subtract", out, convolved(a, c), convolved(b, d)),
        _combined(em, "add", out, convolved(a, d), convolved(b, c)),
    )


def _is_integer(site) -> bool:
    return site.out.dtype in dtypes.INTEGER or site.out.dtype in dtypes.BOOL


def _by_digits(em, site, lhs, rhs):
    """Convolve digits of 16 bits in float64, where their sums are exact, and add modulo 2**bits."""
    out = site.out
    exact = make_aval(out.shape, _F64)

    def convolved(a, b):
        return site.plain(em, a, b, out=exact, preferred_element_type=None)

    if max(lhs.aval.dtype.itemsize, rhs.aval.dtype.itemsize) * 8 <= _DIGIT:
        found = convolved(em.convert(lhs, _F64), em.convert(rhs, _F64))
        is_flag = out.dtype in dtypes.BOOL
        return em.convert(found if is_flag else em.convert(found, _SIGNED), out.dtype)
    count, wide = -(-8 * out.dtype.itemsize // _DIGIT), make_aval(out.shape, _WORD)
    first, second = [[_digit(em, em.convert(x, _WORD), i) for i in range(count)] for x in (lhs, rhs)]
    total = None
    for i, a in enumerate(first):
        for j, b in enumerate(second[: count - i]):
            found = em.convert(convolved(a, b), _WORD)
            if i + j:
                found = em.op("shift_left", wide, found, em.constant(_DIGIT * (i + j), wide))
            total = found if total is None else em.op("add", wide, total, found)
    return em.convert(total, out.dtype)


def _digit(em, x, place: int):
    """The digit of 16 bits at a place, as float64."""
    if place:
        x = em.op("shift_right_logical", x.aval, x, em.constant(_DIGIT * place, x.aval))
    return em.convert(em.op("and", x.aval, x, em.constant((1 << _DIGIT) - 1, x.aval)), _F64)


def _combined(em, name: str, aval, x, y):
    if y is None:
        return x if x is not None else em.constant(0, aval)
    return y if x is None else em.op(name, aval, x, y)


REWRITES = (
    Rewrite("integer_convolutions", (conv_general_dilated_p,), _by_digits, _is_integer, CORRECTNESS),
    Rewrite("complex_convolutions", (conv_general_dilated_p,), _by_parts, _is_complex, CORRECTNESS),
)
