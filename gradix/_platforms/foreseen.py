"""Whether a compiler can foresee that a value of a program is NaN, whatever the arguments are."""

from __future__ import annotations

import numpy as np

from gradix._core.dtypes import FLOAT
from gradix._core.jaxpr import Jaxpr, JaxprEqn, Literal, jaxprs_in_params

# Operations that keep values as they are, or pick some of them.
_MOVES = frozenset(
    "broadcast_in_dim iota reshape transpose squeeze expand_dims convert_element_type copy rev slice concatenate pad "
    "dynamic_slice gather".split()
)
# Operations that give infinities only where they pick them.
_PICKS = frozenset("select_n max min clamp".split())

_SUMS = frozenset("add sub mul neg".split())
_WIDE = frozenset(map(np.dtype, ("float32", "float64")))


def may_foresee_nan(jaxpr: Jaxpr) -> bool:
    """Whether values that no argument decides may meet, in this program or in one of its parameters, to give NaN.

    NaN among the constants, infinities that are computed with, and floating-point numbers that are
    computed of constants alone count; so do all arrays that a program has captured. An infinity that
    is only picked, as by a mask of attention, does not.
    """
    found = jaxpr.memo.get(may_foresee_nan)
    if found is None:
        found = jaxpr.memo[may_foresee_nan] = _search(jaxpr)
    return found


def _search(jaxpr: Jaxpr) -> bool:
    if any(v.aval.dtype in FLOAT for v in jaxpr.constvars):
        return True
    known: set = set()  # variables that no argument decides
    infinite: set = set()  # those that hold an infinity
    for eqn in _live(jaxpr):
        if any(map(_is_nan, eqn.invars)) or any(map(may_foresee_nan, jaxprs_in_params(eqn.params))):
            return True
        if not any(getattr(v.aval, "dtype", None) in FLOAT for v in eqn.outvars):
            if all(type(v) is Literal or v in known for v in eqn.invars):
                known.update(eqn.outvars)
            continue
        name = eqn.primitive.name
        holds_infinity = any(_is_infinite(v) or type(v) is not Literal and v in infinite for v in eqn.invars)
        is_known = all(type(v) is Literal or v in known for v in eqn.invars)
        if name in _MOVES:
            if is_known:
                known.update(eqn.outvars)
            if holds_infinity:
                infinite.update(eqn.outvars)
        elif is_known and not holds_infinity and _is_small(eqn):
            known.update(eqn.outvars)
        elif is_known or holds_infinity and name not in _PICKS:
            return True
    return False


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


def _number(v: Literal) -> float:
    return float(np.asarray(v.val))


def _is_small(eqn: JaxprEqn) -> bool:
    """Whether an equation of constants, such as of an iota, is far from overflow."""
    return eqn.primitive.name in _SUMS and all(
        v.aval.dtype in _WIDE and (type(v) is not Literal or abs(_number(v)) < 2**20)
        for v in (*eqn.invars, *eqn.outvars)
    )
