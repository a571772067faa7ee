"""Whether a compiler can foresee that a value of a program is NaN, whatever the arguments are."""

from __future__ import annotations

import math

import numpy as np

from gradix._core.dtypes import FLOAT
from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal, jaxprs_in_params

# Compilers multiply constants with each other, and know of some operations in which range their results lie. So the
# operations of a program have to be among these, and its constants few and near one.
_MOVES = frozenset(
    "broadcast_in_dim iota reshape transpose squeeze expand_dims convert_element_type copy rev slice concatenate pad "
    "dynamic_slice gather stop_gradient".split()
)
_PICKS = frozenset("select_n max min clamp reduce_max reduce_min".split())
_SUMS = frozenset("add add_any sub neg reduce_sum cumsum".split())
_PRODUCTS = frozenset("mul div integer_pow square dot_general".split())
_BOUNDED = frozenset("exp exp2 expm1 tanh logistic sinh cosh".split())  # of any finite number
_LISTED = _SUMS | _PRODUCTS | _BOUNDED
_LOOPS = frozenset("scan while".split())
_MOST = 80.0  # the sum of the exponents of all constants by which is multiplied or divided; they overflow from 127 on
_SMALL = 2.0**20
_FAR = 2.0**100  # numbers below do not overflow in sums
_WIDE = frozenset({*map(np.dtype, ("float32", "float64")), *(d for d in FLOAT if d.name == "bfloat16")})


def may_foresee_nan(jaxpr: Jaxpr) -> bool:
    """Whether values that no argument decides may meet, in this program or in one of its parameters, to give NaN.

    It is so unless all operations are known not to give NaN for finite numbers but by overflow, and
    the constants that are multiplied or divided by are too few and too near one for that. An
    infinity may only be picked, as by a mask of attention. Arrays that a program has captured count
    as NaN.
    """
    found = _factors(jaxpr)
    return found is None or found > _MOST


def _factors(jaxpr: Jaxpr) -> float | None:
    """The sum of the exponents of the constants that are factors in a program and those in its parameters.

    None where NaN may be foreseen.
    """
    if may_foresee_nan not in jaxpr.memo:
        jaxpr.memo[may_foresee_nan] = _search(jaxpr)
    return jaxpr.memo[may_foresee_nan]


def _search(jaxpr: Jaxpr) -> float | None:
    if any(v.aval.dtype in FLOAT for v in jaxpr.constvars):
        return None
    known: set = set()  # variables that no argument decides
    exponents: dict = {}  # of those that hold one number
    infinite: set = set()  # those that hold an infinity
    total = 0.0
    for eqn in _live(jaxpr):
        inner = [_factors(j) for j in jaxprs_in_params(eqn.params)]
        if None in inner or sum(inner) and eqn.primitive.name in _LOOPS or any(map(_is_nan, eqn.invars)):  # type: ignore[arg-type]
            return None
        total += sum(inner)  # type: ignore[arg-type, operator]
        is_known = [type(v) is Literal or v in known for v in eqn.invars]
        if not any(getattr(v.aval, "dtype", None) in FLOAT for v in eqn.outvars):
            if all(is_known):
                known.update(eqn.outvars)
            continue
        holds_infinity = any(_is_infinite(v) or type(v) is not Literal and v in infinite for v in eqn.invars)
        name = eqn.primitive.name
        if name in _MOVES:
            if all(is_known):
                known.update(eqn.outvars)
            if holds_infinity:
                infinite.update(eqn.outvars)
            if len(eqn.invars) == 1:
                exponents[eqn.outvars[0]] = _exponent(eqn.invars[0], exponents)
        elif name in _PICKS:
            picked = eqn.invars[1:] if name == "select_n" else eqn.invars
            if all(type(v) is Literal or v in known for v in picked):
                if any(map(_is_far, picked)):
                    return None
                known.update(eqn.outvars)  # as a mask of constants, of which it is not known which one it is
                if holds_infinity:
                    infinite.update(eqn.outvars)
            elif holds_infinity and not _leaves_finite(name, picked):
                return None
        elif all(is_known):
            if holds_infinity or name not in _SUMS and name != "mul" or not _is_small(eqn):
                return None
            known.update(eqn.outvars)
        elif holds_infinity or not (inner or name in _LISTED) or name in _SUMS and any(map(_is_far, eqn.invars)):
            return None
        elif name in _PRODUCTS:
            factors = [_exponent(v, exponents) for v, decided in zip(eqn.invars, is_known) if decided]
            if None in factors:
                return None
            total += sum(factors)  # type: ignore[arg-type]
        elif inner and any(map(_decides, eqn.invars, is_known)):
            return None
    return total


def _live(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """The equations whose results matter."""
    read, live = set(jaxpr.outvars), []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in read for v in eqn.outvars):
            read.update(eqn.invars)
            live.append(eqn)
    return live[::-1]


def _is_nan(v) -> bool:
    return type(v) is Literal and v.aval.dtype in FLOAT and bool(np.isnan(_number(v)))


def _is_infinite(v) -> bool:
    return type(v) is Literal and v.aval.dtype in FLOAT and bool(np.isinf(_number(v)))


def _is_far(v) -> bool:
    """Whether a literal is a finite number that may overflow in sums."""
    return type(v) is Literal and v.aval.dtype in FLOAT and _FAR < abs(_number(v)) < math.inf


def _leaves_finite(name: str, picked) -> bool:
    """Whether a pick among values, one of which is an infinity, gives another one where these decide it."""
    if name in ("max", "min"):
        least = -math.inf if name == "max" else math.inf
        return all(_number(v) == least for v in picked if _is_infinite(v))
    return name != "clamp"


def _exponent(v, exponents: dict) -> float | None:
    """The exponent, above or below 1, of the one number that a variable or literal holds; None where not known."""
    if type(v) is not Literal:
        return exponents.get(v)
    number = abs(_number(v)) if v.aval.dtype in _WIDE else 0.0
    return abs(math.log2(number)) if 0 < number < math.inf else None


def _decides(v, is_known: bool) -> bool:
    """Whether an operand of a program within this one is a floating-point constant."""
    return is_known and getattr(v.aval, "dtype", None) in FLOAT


def _number(v: Literal) -> float:
    return float(np.asarray(v.val))


def _is_small(eqn: JaxprEqn) -> bool:
    """Whether an equation of constants, such as of an iota, is far from overflow."""
    return all(
        v.aval.dtype in _WIDE and (type(v) is not Literal or abs(_number(v)) < _SMALL)
        for v in (*eqn.invars, *eqn.outvars)
    )
