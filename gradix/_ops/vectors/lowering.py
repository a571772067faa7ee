"""Where formulas of vectors take the place of XLA's functions: on CPUs, for arrays large enough to pay for compiling them.

XLA takes some functions from the C library, one element at a time, and has others that are slow or inexact. Small arrays keep
them, as they compile in less time; so do other platforms.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from gradix._core.aval import make_aval
from gradix._ops.exact_lowering import cube_root
from gradix._ops.formulas import Spelled
from gradix._ops.vectors import exponential, far, powers, remainders, special, trigonometric
from gradix._ops.vectors.trigonometric import LIMITS
from gradix._ops.vectors.vocabulary import Vectors

_F16, _F32, _F64 = map(np.dtype, ("float16", "float32", "float64"))
_HALVES = frozenset([_F16, np.dtype(ml_dtypes.bfloat16)])
_FLOAT16 = frozenset([_F16])
_FLOATS = _HALVES | {_F32, _F64}
_LEAST = 1 << 11                        # elements from which on this pays
_LEAST_SINES = 1 << 12                  # the same of sines and cosines of float32, for which XLA has vectors too
_LEAST_REMAINDERS = 1 << 13             # the same of remainders, whose programs take twice as long to compile


def _pays(em, out, dtypes=_FLOATS) -> bool:
    return em.tunes and out.dtype in dtypes and type(out.size) is int and out.size >= _LEAST


def _called(em, out, formula: Callable, *xs):
    """The formula as a private function, of half precisions in float32."""
    dtype = _F64 if out.dtype == _F64 else _F32
    xs = tuple([em.convert(x, dtype) for x in xs])

    def body(*values):
        m = Vectors(em, dtype, rough=out.dtype in _HALVES)
        return [formula(m, *[m.once(Spelled(em, x)) for x in values]).value]
    aval = make_aval(out.shape, dtype)
    return em.convert(em.call(em.define(formula.__name__, [aval] * len(xs), body), [aval], *xs)[0], out.dtype)


def _vectors(plain, formula: Callable, dtypes=_FLOATS):
    """A lowering by a formula, and by XLA's function `plain`, a name or a lowering, where that is no gain."""
    def lower(em, out, *xs):
        if _pays(em, out, dtypes):
            return _called(em, out, formula, *xs)
        return em.op(plain, out, *xs) if isinstance(plain, str) else plain(em, out, *xs)
    return lower


def _in_single(name: str):
    """XLA's function, of float16 in float32: XLA:CPU takes functions of float16 one by one."""
    def lower(em, out, x):
        if not _pays(em, out, _FLOAT16):
            return em.op(name, out, x)
        wide = make_aval(out.shape, _F32)
        return em.convert(em.op(name, wide, em.convert(x, _F32)), out.dtype)
    return lower


def _periodic(plain: str, formula: Callable, far: Callable, least_single: int = _LEAST):
    """As `_vectors`; arguments too large for the formula's reduction are the formula `far`'s, in float64 XLA's function's.

    It does so in a loop that runs once, or not at all: unlike a conditional, XLA:CPU runs its body on all cores. No float16
    is too large.
    """
    def lower(em, out, x):
        if not _pays(em, out) or out.dtype == _F32 and out.size < least_single:
            return em.op(plain, out, x)
        if out.dtype == _F16:
            return _called(em, out, formula, x)
        dtype = _F64 if out.dtype == _F64 else _F32
        wide, limit = make_aval(out.shape, dtype), LIMITS[dtype]

        def replace(_, x, y):
            z = em.convert(x, dtype)
            size = _finite_sizes(em, z, wide)
            huge = em.compare(size, em.constant(limit, wide), "GT")
            if dtype == _F32:
                exact = far(Vectors(em, dtype), Spelled(em, z)).value
            else:
                exact = em.op(plain, wide, em.select(huge, z, em.constant(0, wide)))
            return [em.constant(False, found.aval), x, em.select(huge, em.convert(exact, out.dtype), y)]

        found = _exceeds(em, em.convert(x, dtype), wide, limit, x.aval.dtype == dtype)
        return em.while_loop([found, x, _called(em, out, formula, x)], lambda found, *_: [found], replace)[2]
    return lower


def _finite_sizes(em, z, wide):
    """|z|, 0 where it is not finite."""
    size = em.op("abs", wide, z)
    return em.select(em.compare(size, em.constant(math.inf, wide), "LT"), size, em.constant(0, wide))


def _exceeds(em, z, wide, limit: float, ready: bool):
    """Whether a finite |z| is above the limit; perhaps also where one is not finite.

    XLA:CPU's quick reductions read what is in memory; their maxima are anything where there is a NaN, which a sum tells.
    Numbers that are not `ready` but converted first are written to memory for them, and then made finite on the way.
    """
    scalar = make_aval((), wide.dtype)
    zero, limit, axes = em.constant(0, scalar), em.constant(limit, scalar), range(wide.ndim)
    size = em.op("abs", wide, z) if ready else _finite_sizes(em, z, wide)
    largest, = em.reduce([size], [zero], axes, [scalar], "maximum")
    found = em.compare(largest, limit, "GT")
    if not ready:
        return found
    total, = em.reduce([z], [zero], axes, [scalar], "add")
    return em.op("or", found.aval, found, em.compare(total, total, "NE"))


def lower_rem(em, out, x, y):
    """The remainder by a formula; where that does not serve, XLA's, in a loop that runs once or not at all, as above."""
    if not _pays(em, out) or out.size < _LEAST_REMAINDERS:
        return em.op("remainder", out, x, y)
    dtype = _F64 if out.dtype == _F64 else _F32
    wide, single = make_aval(out.shape, dtype), make_aval(out.shape, _F32)

    def odd(x, y):
        return remainders.is_odd(Vectors(em, dtype), Spelled(em, x), Spelled(em, y)).value

    def replace(_, x, y, found):
        where = odd(x, y)
        exact = em.op("remainder", wide, em.select(where, x, em.constant(0, wide)), y)
        return [em.constant(False, some.aval), x, y, em.select(where, exact, found)]

    x, y = em.convert(x, dtype), em.convert(y, dtype)
    marks = em.select(odd(x, y), em.constant(1, single), em.constant(0, single))       # its maximum: XLA has vectors for that
    none, scalar = em.constant(0, make_aval((), _F32)), make_aval((), _F32)
    some = em.compare(em.reduce([marks], [none], range(out.ndim), [scalar], "maximum")[0], none, "GT")
    start = [some, x, y, _called(em, wide, remainders.remainder, x, y)]
    return em.convert(em.while_loop(start, lambda some, *_: [some], replace)[3], out.dtype)


def _power_of_two(em, out, x):
    return em.op("power", out, em.splat(2, out), x)


lower_sin = _periodic("sine", trigonometric.sine, far.sine, _LEAST_SINES)
lower_cos = _periodic("cosine", trigonometric.cosine, far.cosine, _LEAST_SINES)
lower_tan = _periodic("tan", trigonometric.tangent, far.tangent)
lower_asin = _vectors("chlo.asin", trigonometric.arcsine)
lower_acos = _vectors("chlo.acos", trigonometric.arccosine)
lower_atan = _vectors("chlo.atan", trigonometric.arctangent)
lower_atan2 = _vectors("atan2", trigonometric.arctangent2)
lower_sinh = _vectors("chlo.sinh", exponential.sinh)
lower_cosh = _vectors("chlo.cosh", exponential.cosh)
lower_asinh = _vectors("chlo.asinh", exponential.arcsinh)
lower_acosh = _vectors("chlo.acosh", exponential.arccosh)
lower_atanh = _vectors("chlo.atanh", exponential.arctanh)
lower_exp2 = _vectors(_power_of_two, exponential.exp2)
lower_exp, lower_sqrt = _in_single("exponential"), _in_single("sqrt")
lower_log = _vectors(_in_single("log"), exponential.log, frozenset([_F64]))
lower_expm1 = _vectors("exponential_minus_one", exponential.expm1)
lower_log1p = _vectors("log_plus_one", exponential.log1p)
lower_power = _vectors("power", powers.power, _HALVES | {_F32})
lower_erf = _vectors("chlo.erf", special.erf, frozenset([_F64]))
lower_erfc = _vectors("chlo.erfc", special.erfc, _HALVES | {_F32})
lower_erf_inv = _vectors("chlo.erf_inv", special.erf_inv, frozenset([_F64]))
lower_lgamma = _vectors("chlo.lgamma", special.log_gamma, _HALVES | {_F32})
lower_cbrt = _vectors(cube_root, powers.cube_root)
lower_rsqrt = _vectors("rsqrt", powers.reciprocal_root)
