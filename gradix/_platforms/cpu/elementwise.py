"""Elementary functions as vectorized formulas, for arrays large enough to pay for the compilation.

XLA:CPU calls the C library for some functions, one element at a time, and has others that are slow
or inexact. Small arrays keep these, as they compile in less time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from gradix._core.aval import make_aval
from gradix._core.dtypes import FLOAT
from gradix._core.jaxpr import Literal
from gradix._ops.arithmetic import rem_p
from gradix._ops.formulas import LoweredValue
from gradix._ops.special.erf import erf_inv_p, erf_p, erfc_p
from gradix._ops.special.gamma import lgamma_p
from gradix._ops.transcendental import (
    cbrt_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log_p,
    logistic_p,
    pow_p,
    rsqrt_p,
    sqrt_p,
)
from gradix._ops.trigonometric import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    sin_p,
    sinh_p,
    tan_p,
)
from gradix._platforms.cpu.vectors import exponential, far, powers, remainders, special, trigonometric
from gradix._platforms.cpu.vectors.trigonometric import LIMITS
from gradix._platforms.cpu.vectors.vocabulary import Vectors
from gradix._platforms.records import Rewrite

_F16, _F32, _F64 = map(np.dtype, ("float16", "float32", "float64"))
_HALVES = frozenset([_F16, np.dtype(ml_dtypes.bfloat16)])
_FLOAT16 = frozenset([_F16])
_FLOATS = _HALVES | {_F32, _F64}
_LEAST = 1 << 11  # elements from which on this pays
# The same for sines and cosines of float32, which XLA vectorizes itself.
_LEAST_SINES = 1 << 13
# After so many sines in a program, the least number of elements doubles for the next ones.
_MANY_SINES = 8
# The same for remainders, which take longer to compile.
_LEAST_REMAINDERS = 1 << 13


def _called(em, out, formula: Callable, *xs):
    """Call the formula as a private function; half precisions are computed in float32."""
    dtype = _F64 if out.dtype == _F64 else _F32
    xs = tuple([em.convert(x, dtype) for x in xs])

    def body(*values):
        m = Vectors(em, dtype, rough=out.dtype in _HALVES)
        return [formula(m, *[m.once(LoweredValue(em, x)) for x in values]).value]

    aval = make_aval(out.shape, dtype)
    return em.convert(em.call(em.define(formula.__name__, [aval] * len(xs), body), [aval], *xs)[0], out.dtype)


def _is_long(site, dtypes=_FLOATS, least: int = _LEAST) -> bool:
    """Whether a result has one of these dtypes, and enough elements for a formula to pay."""
    out = site.out
    return out.dtype in dtypes and type(out.size) is int and out.size >= least


# -- one formula for all arguments -----------------------------------------------------------------


def _has_formula(site) -> bool:
    return _is_long(site, _FORMULAS[site.primitive][1])


def _by_formula(em, site, *xs):
    return _called(em, site.out, _FORMULAS[site.primitive][0], *[em.spread(x, site.out.shape) for x in xs])


# -- functions that XLA has vectors for, but of float16 --------------------------------------------


def _in_single(em, site, x):
    """XLA's function in float32, as XLA does not vectorize it for float16."""
    wide = make_aval(site.out.shape, _F32)
    return em.convert(em.lower(site.primitive, wide, em.convert(x, _F32)), site.out.dtype)


# -- sines, whose formula takes no huge argument ---------------------------------------------------


def _is_long_sine(site) -> bool:
    return _is_long(site, least=_LEAST if _is_slow_in_xla(site) else _LEAST_SINES)


def _is_slow_in_xla(site) -> bool:
    """Whether XLA does not vectorize this function for this dtype."""
    return site.out.dtype != _F32 or site.primitive is tan_p


def _sine(em, site, x):
    """The sine by a formula; huge arguments take a second formula, or XLA's function in float64.

    These are replaced in a loop that runs at most once, as XLA:CPU runs a loop body on all cores,
    but not a branch. No float16 is too large. Such a loop takes long to compile, so the more of
    them a program has, the larger the arrays must be.
    """
    out, (formula, beyond) = site.out, _SINES[site.primitive]
    least = _LEAST_SINES << em.facts.rewrites.get("sines_by_vectors", 0) // _MANY_SINES
    if out.size < least and not _is_slow_in_xla(site):
        return NotImplemented
    if out.dtype == _F16:
        return _called(em, out, formula, x)
    dtype = _F64 if out.dtype == _F64 else _F32
    wide, limit = make_aval(out.shape, dtype), LIMITS[dtype]

    def replace(_, x, y):
        z = em.convert(x, dtype)
        size = _finite_sizes(em, z, wide)
        huge = em.compare(size, em.constant(limit, wide), "GT")
        if dtype == _F32:
            exact = beyond(Vectors(em, dtype), LoweredValue(em, z)).value
        else:
            exact = site.plain(em, em.select(huge, z, em.constant(0, wide)), out=wide)
        return [em.constant(False, found.aval), x, em.select(huge, em.convert(exact, out.dtype), y)]

    found = _exceeds(em, em.convert(x, dtype), wide, limit, x.aval.dtype == dtype)
    return em.while_loop([found, x, _called(em, out, formula, x)], lambda found, *_: [found], replace)[2]


def _finite_sizes(em, z, wide):
    """|z|, or 0 where z is not finite."""
    size = em.op("abs", wide, z)
    return em.select(em.compare(size, em.constant(math.inf, wide), "LT"), size, em.constant(0, wide))


def _exceeds(em, z, wide, limit: float, ready: bool):
    """Whether a finite |z| is above the limit; it may also be true where some z is not finite.

    XLA:CPU's quick reductions read their operand from memory. Their maximum is arbitrary where
    there is a NaN, which a sum detects. Numbers that are not `ready` must be converted and so
    written to memory anyway, and are made finite on the way.
    """
    scalar = make_aval((), wide.dtype)
    zero, limit, axes = em.constant(0, scalar), em.constant(limit, scalar), range(wide.ndim)
    size = em.op("abs", wide, z) if ready else _finite_sizes(em, z, wide)
    (largest,) = em.reduce([size], [zero], axes, [scalar], "maximum")
    found = em.compare(largest, limit, "GT")
    if not ready:
        return found
    (total,) = em.reduce([z], [zero], axes, [scalar], "add")
    return em.op("or", found.aval, found, em.compare(total, total, "NE"))


# -- remainders ------------------------------------------------------------------------------------


def _remainder(em, site, x, y):
    """The remainder by a formula.

    Where it may be wrong, a loop that runs at most once takes XLA's.
    """
    out = site.out
    x, y = [em.spread(v, out.shape) for v in (x, y)]
    dtype = _F64 if out.dtype == _F64 else _F32
    wide, single = make_aval(out.shape, dtype), make_aval(out.shape, _F32)

    def odd(x, y):
        return remainders.is_odd(Vectors(em, dtype), LoweredValue(em, x), LoweredValue(em, y)).value

    def replace(_, x, y, found):
        where = odd(x, y)
        exact = em.op("remainder", wide, em.select(where, x, em.constant(0, wide)), y)
        return [em.constant(False, some.aval), x, y, em.select(where, exact, found)]

    x, y = em.convert(x, dtype), em.convert(y, dtype)
    # Take the maximum of the marks, as XLA vectorizes it.
    marks = em.select(odd(x, y), em.constant(1, single), em.constant(0, single))
    none, scalar = em.constant(0, make_aval((), _F32)), make_aval((), _F32)
    some = em.compare(em.reduce([marks], [none], range(out.ndim), [scalar], "maximum")[0], none, "GT")
    start = [some, x, y, _called(em, wide, remainders.remainder, x, y)]
    return em.convert(em.while_loop(start, lambda some, *_: [some], replace)[3], out.dtype)


# -- powers ----------------------------------------------------------------------------------------

# XLA simplifies these powers to roots and products.
_EASY = frozenset((-1.0, 0.0, 0.5, 1.0, 2.0, 3.0))


def _has_easy_exponent(site) -> bool:
    exponent = site.eqn.invars[1] if site.eqn is not None else None
    return (
        type(exponent) is Literal
        and exponent.aval.dtype in FLOAT
        and float(exponent.val) in _EASY
        and site.out.dtype not in _HALVES
    )


def _power(em, site, x, y):
    x, y = [em.spread(v, site.out.shape) for v in (x, y)]
    return _called(em, site.out, powers.power, x, em.convert(y, site.out.dtype))


_SINES = {
    sin_p: (trigonometric.sine, far.sine),
    cos_p: (trigonometric.cosine, far.cosine),
    tan_p: (trigonometric.tangent, far.tangent),
}
_SOME, _DOUBLE = _HALVES | {_F32}, frozenset([_F64])
_FORMULAS = {
    asin_p: (trigonometric.arcsine, _FLOATS),
    acos_p: (trigonometric.arccosine, _FLOATS),
    atan_p: (trigonometric.arctangent, _FLOATS),
    atan2_p: (trigonometric.arctangent2, _FLOATS),
    sinh_p: (exponential.sinh, _FLOATS),
    cosh_p: (exponential.cosh, _FLOATS),
    asinh_p: (exponential.arcsinh, _FLOATS),
    acosh_p: (exponential.arccosh, _FLOATS),
    atanh_p: (exponential.arctanh, _FLOATS),
    exp2_p: (exponential.exp2, _FLOATS),
    expm1_p: (exponential.expm1, _FLOATS),
    log1p_p: (exponential.log1p, _FLOATS),
    log_p: (exponential.log, _DOUBLE),
    erf_p: (special.erf, _DOUBLE),
    erf_inv_p: (special.erf_inv, _DOUBLE),
    erfc_p: (special.erfc, _SOME),
    lgamma_p: (special.log_gamma, _SOME),
    cbrt_p: (powers.cube_root, _FLOATS),
    rsqrt_p: (powers.reciprocal_root, _FLOATS),
}

REWRITES = (
    Rewrite("sines_by_vectors", tuple(_SINES), _sine, _is_long_sine, alone=True),
    Rewrite("functions_by_vectors", tuple(_FORMULAS), _by_formula, _has_formula),
    Rewrite("halves_in_single", (exp_p, log_p, logistic_p, sqrt_p), _in_single, lambda site: _is_long(site, _FLOAT16)),
    Rewrite(
        "remainders_by_vectors", (rem_p,), _remainder, lambda site: _is_long(site, least=_LEAST_REMAINDERS), alone=True
    ),
    Rewrite("powers_as_products", (pow_p,), lambda em, site, x, y: site.plain(em), _has_easy_exponent),
    Rewrite("powers_by_vectors", (pow_p,), _power, lambda site: _is_long(site, _SOME)),
)
