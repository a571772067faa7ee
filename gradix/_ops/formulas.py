"""Formulas that are written once and run both in NumPy and in compiled programs.

A formula is a function `formula(m, *operands)` that uses Python's operators on the operands and the
functions of `m`: `HOST`, where operands are NumPy arrays, or a `Program`, where they are
`LoweredValue`s of a StableHLO program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradix._base.lazy import lazy_module
from gradix._core.aval import make_aval
from gradix._ops.transcendental import exp_p, expm1_p

_special = lazy_module("scipy.special")
_BOOL, _F32, _F64 = np.dtype(bool), np.dtype("float32"), np.dtype("float64")


class Host:
    """The functions of formulas, by NumPy."""

    where = staticmethod(np.where)
    exp, log, log1p, expm1 = np.exp, np.log, np.log1p, np.expm1
    abs, sqrt, floor, pow = np.abs, np.sqrt, np.floor, np.power

    @staticmethod
    def zeta(s, q):
        return _special.zeta(s, q)

    @staticmethod
    def lgamma(x):
        return _special.gammaln(x)

    @staticmethod
    def digamma(x):
        return _special.psi(x)

    @staticmethod
    def erfc(x):
        return _special.erfc(x)

    @staticmethod
    def eps(x) -> float:
        return float(np.finfo(x.dtype).eps)

    @staticmethod
    def loop(step: Callable, active, state, limit: int) -> list:
        """Repeat a step, as `Program.loop` does."""
        for i in range(1, limit + 1):
            if not np.any(active):
                break
            new, going = step(float(i), *state)
            state = [np.where(active, n, s) for n, s in zip(new, state)]
            active = active & going
        return list(state)


HOST = Host()


class LoweredValue:
    """A value of a program with Python's operators; a number as other operand takes its type."""

    __slots__ = ("em", "value")
    __array_ufunc__ = None

    def __init__(self, em, value):
        self.em, self.value = em, value

    @property
    def dtype(self):
        return self.value.aval.dtype

    def _pair(self, other):
        em, x = self.em, self.value
        if not isinstance(other, LoweredValue):
            return x, em.constant(other, x.aval)
        y = other.value
        if x.aval.shape == y.aval.shape:
            return x, y
        return (em.spread(x, y.aval.shape), y) if not x.aval.ndim else (x, em.spread(y, x.aval.shape))

    def _binary(self, op: str, other, swapped: bool = False):
        x, y = self._pair(other)
        return LoweredValue(self.em, self.em.op(op, x.aval, *((y, x) if swapped else (x, y))))

    def _compare(self, direction: str, other):
        return LoweredValue(self.em, self.em.compare(*self._pair(other), direction))

    def __add__(self, other):
        return self._binary("add", other)

    def __sub__(self, other):
        return self._binary("subtract", other)

    def __rsub__(self, other):
        return self._binary("subtract", other, swapped=True)

    def __mul__(self, other):
        return self._binary("multiply", other)

    def __truediv__(self, other):
        return self._binary("divide", other)

    def __rtruediv__(self, other):
        return self._binary("divide", other, swapped=True)

    def __and__(self, other):
        return self._binary("and", other)

    def __or__(self, other):
        return self._binary("or", other)

    def __xor__(self, other):
        return self._binary("xor", other)

    def __lshift__(self, other):
        return self._binary("shift_left", other)

    def __rshift__(self, other):
        return self._binary("shift_right_arithmetic", other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return LoweredValue(self.em, self.em.op("negate", self.value.aval, self.value))

    def __invert__(self):
        return LoweredValue(self.em, self.em.op("not", self.value.aval, self.value))

    def __lt__(self, other):
        return self._compare("LT", other)

    def __le__(self, other):
        return self._compare("LE", other)

    def __gt__(self, other):
        return self._compare("GT", other)

    def __ge__(self, other):
        return self._compare("GE", other)

    def __eq__(self, other):  # type: ignore[override]
        return self._compare("EQ", other)

    def __ne__(self, other):  # type: ignore[override]
        return self._compare("NE", other)

    __hash__ = None  # type: ignore[assignment]


def _unary(op: str):
    def lower(self, x: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.op(op, x.value.aval, x.value))

    return lower


def _primitive(primitive):
    """An operation in the form that is right, and best, on the platform."""

    def lower(self, x: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.lower(primitive, x.value.aval, x.value))

    return lower


def _binary(op: str):
    def lower(self, x: LoweredValue, y: LoweredValue) -> LoweredValue:
        return LoweredValue(self.em, self.em.op(op, x.value.aval, x.value, y.value))

    return lower


class Program:
    """The functions of formulas as operations of a StableHLO program."""

    def __init__(self, em):
        self.em = em

    exp, expm1 = map(_primitive, (exp_p, expm1_p))
    log, log1p = map(_unary, ("log", "log_plus_one"))
    abs, sqrt, floor = map(_unary, ("abs", "sqrt", "floor"))
    pow, zeta = map(_binary, ("power", "chlo.zeta"))
    lgamma, digamma, erfc = map(_unary, ("chlo.lgamma", "chlo.digamma", "chlo.erfc"))

    def where(self, pred: LoweredValue, x, y) -> LoweredValue:
        """`x` where `pred`, else `y`; one of them may be a number."""
        aval = (x if isinstance(x, LoweredValue) else y).value.aval
        x, y = [v.value if isinstance(v, LoweredValue) else self.em.constant(v, aval) for v in (x, y)]
        return LoweredValue(self.em, self.em.select(pred.value, x, y))

    @staticmethod
    def eps(x: LoweredValue) -> float:
        return float(np.finfo(x.dtype).eps)

    def loop(self, step: Callable, active: LoweredValue, state, limit: int) -> list:
        """Repeat `state, active = step(i, *state)` for i = 1, …, `limit`, while any is active.

        Elements that are no longer active keep their state, so that each result depends on its own
        operands alone.
        """
        em, number = self.em, make_aval((), state[0].dtype)

        def cond(i, active, *_):
            more = em.compare(i, em.constant(limit, number), "LE")
            return [em.op("and", more.aval, more, self._any(active))]

        def body(i, active, *values):
            old = [LoweredValue(em, v) for v in values]
            new, going = step(LoweredValue(em, i), *old)
            kept = [em.select(active, n.value, s) for n, s in zip(new, values)]
            active = em.op("and", active.aval, active, going.value)
            return [em.op("add", number, i, em.constant(1, number)), active, *kept]

        start = [em.constant(1, number), active.value, *[s.value for s in state]]
        return [LoweredValue(em, v) for v in em.while_loop(start, cond, body)[2:]]

    def _any(self, active):
        flag = make_aval((), _BOOL)
        if not active.aval.ndim:
            return active
        return self.em.reduce([active], [self.em.constant(False, flag)], range(active.aval.ndim), [flag], "or")[0]


# -- rules made of formulas ------------------------------------------------------------------------


def program(formula: Callable) -> Callable:
    """The `hlo` of an elementwise operation: a private function with half precisions in float32."""

    def emit(em, out, *values):
        wide = _F64 if out.dtype == _F64 else _F32
        values = [em.convert(v, wide) for v in values]
        avals = [make_aval(v.aval.shape, wide) for v in values]

        def body(*xs):
            return [formula(Program(em), *[LoweredValue(em, x) for x in xs]).value]

        symbol = em.define(formula.__name__.strip("_"), avals, body)
        (result,) = em.call(symbol, [make_aval(out.shape, wide)], *values)
        return em.convert(result, out.dtype)

    return emit


def host(formula: Callable) -> Callable:
    """The host rule of an elementwise operation: the formula in float64."""

    def rule(*arrays):
        arrays = np.broadcast_arrays(*arrays)
        with np.errstate(all="ignore"):
            return np.asarray(formula(HOST, *[a.astype(_F64) for a in arrays])).astype(arrays[0].dtype)

    return rule


def host_float(formula: Callable) -> Callable:
    """The host rule of a formula in the operands' precision, but halves in float32."""

    def rule(*arrays):
        dtype = arrays[0].dtype
        if dtype in (_F32, _F64):
            return formula(HOST, *arrays)
        return formula(HOST, *[x.astype(_F32) for x in arrays]).astype(dtype)

    return rule


def chebyshev(m, t, coefficients: tuple):
    """Σ cₖ Tₖ(t), by Clenshaw's recurrence (Clenshaw 1955).

    Terms below the precision of `t` are omitted.

    The coefficients are for float64. In float32 the sum stops where all further coefficients are
    below 2⁻²⁸ of the first one.
    """
    if m.eps(t) > 1e-10:
        kept = [i for i, c in enumerate(coefficients) if abs(c) > 2.0**-28 * abs(coefficients[0])]
        coefficients = coefficients[: kept[-1] + 1]
    twice, last = t * 2.0, coefficients[-1]
    b = twice * last + coefficients[-2]
    for c in coefficients[-3:0:-1]:
        b, last = twice * b - last + c, b
    return t * b - last + coefficients[0]
