"""Exact lowerings of functions that XLA computes inexactly, or wrongly at branch cuts."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import BOOL, COMPLEX, FLOAT, real_dtype
from gradix._ops.arithmetic import mul_p
from gradix._ops.complex_parts import neg_p
from gradix._ops.transcendental import cbrt_p, exp_p, expm1_p, logistic_p, logistic_slope_p, sqrt_p
from gradix._ops.trigonometric import acos_p, acosh_p, asin_p, asinh_p, atan_p, atanh_p, cosh_p, sinh_p
from gradix._platforms.foreseen import may_foresee_nan
from gradix._platforms.records import CORRECTNESS, Rewrite

_F64 = np.dtype("float64")
_E5M2 = np.dtype(ml_dtypes.float8_e5m2)


def _parts(em, z):
    part = make_aval(z.aval.shape, real_dtype(z.aval.dtype))
    return part, em.op("real", part, z), em.op("imag", part, z)


def cube_root(em, out, x):
    """XLA's cube root in float64; float64 results get a Newton step y - (y³ - x) / (3 y²)."""
    if out.dtype != _F64:
        wide = make_aval(out.shape, _F64)
        return em.convert(em.op("cbrt", wide, em.convert(x, _F64)), out.dtype)
    y = em.op("cbrt", out, x)
    square = em.op("multiply", out, y, y)
    excess = em.op("subtract", out, em.op("multiply", out, square, y), x)
    step = em.op("divide", out, excess, em.op("multiply", out, square, em.constant(3, out)))
    # The step is skipped where it is not finite, as at 0 and ∞.
    finite = em.op("is_finite", make_aval(out.shape, np.dtype(bool)), step)
    return em.select(finite, em.op("subtract", out, y, step), y)


def _with_sign(em, x, y):
    """The size of `x` with the sign of `y`."""
    bits = make_aval(y.aval.shape, np.dtype(f"int{8 * y.aval.dtype.itemsize}"))
    size = em.op("abs", x.aval, x)
    negative = em.compare(em.bitcast(y, bits), em.constant(0, bits), "LT")
    return em.select(negative, em.op("negate", x.aval, size), size)


# For each function with branch cuts, whether its real part takes the sign of the operand's real part,
# and whether its imaginary part takes that of the imaginary part (1) or the opposite sign (-1).
_BRANCHES = {
    asin_p: (True, 1),
    acos_p: (False, -1),
    atan_p: (True, 1),
    asinh_p: (True, 1),
    acosh_p: (False, 1),
    atanh_p: (True, 1),
    sqrt_p: (False, 1),
}


def _on_branch(em, site, z):
    """Give the parts of the result their signs by the operand's, signed zeros included (C99, G.6).

    XLA treats -0 as 0, and so returns the value on the other side of a branch cut.
    """
    has_sign, sign = _BRANCHES[site.primitive]
    part, x, y = _parts(em, z)
    _, u, v = _parts(em, site.plain(em))
    y = em.op("negate", part, y) if sign < 0 else y
    return em.op("complex", site.out, _with_sign(em, u, x) if has_sign else u, _with_sign(em, v, y))


def _is_complex(site) -> bool:
    return site.out.dtype in COMPLEX


def _masks(site):
    """For each operand of a product, the boolean that it was converted from, or None."""
    return [v.definition[1] if v.converted_from in BOOL else None for v in site.values]


def _is_masked(site) -> bool:
    x, y = site.values
    if x.definition is None and y.definition is None:
        return False
    return site.out.dtype in FLOAT and sum([m is not None for m in _masks(site)]) == 1


def _masked(em, site, *values):
    """x where the mask is true, else 0·x. XLA would select 0 instead, and lose the NaN of 0·∞."""
    first, second = _masks(site)
    mask, x = (first, values[1]) if first is not None else (second, values[0])
    x, out = em.spread(x, site.out.shape), site.out
    mask = em.spread(mask, site.out.shape)
    return em.select(mask, x, em.op("multiply", out, x, em.splat(0, out)))


def _negated_bits(em, site, x):
    """-x by its sign bit: XLA negates it as float16, and loses the sign of NaN in the conversion."""
    byte = make_aval(x.aval.shape, np.dtype("uint8"))
    bits = em.op("xor", byte, em.bitcast(x, byte), em.splat(0x80, byte))
    return em.bitcast(bits, site.out)


def _guarded(em, site, x):
    """f(x), and x where it is NaN, in a program of which the compiler may foresee that it is."""
    programs = em.facts.programs
    if programs and not may_foresee_nan(programs[0]):
        return NotImplemented
    return em.select(em.compare(x, x, "EQ"), site.plain(em), x)


REWRITES = (
    Rewrite(
        "exponentials_of_nan",
        (exp_p, expm1_p, logistic_p, logistic_slope_p, sinh_p, cosh_p),
        _guarded,
        lambda site: site.out.dtype in FLOAT,
        CORRECTNESS,
    ),
    Rewrite("signs_of_float8_nan", (neg_p,), _negated_bits, lambda site: site.out.dtype == _E5M2, CORRECTNESS),
    Rewrite("signs_on_branch_cuts", tuple(_BRANCHES), _on_branch, _is_complex, CORRECTNESS),
    Rewrite("products_with_masks", (mul_p,), _masked, _is_masked, CORRECTNESS),
    Rewrite("cube_roots", (cbrt_p,), lambda em, site, x: cube_root(em, site.out, x), kind=CORRECTNESS),
)
