"""Elementwise primitives."""

from __future__ import annotations

import numpy as np
import scipy.special

from gradix import lax
from gradix._ops.transcendental import logistic_slope_p
from gradix._ops.trigonometric import asinh_slope_p, atan2_slope_p, one_minus_square_p
from tests.specs.spec import BF16, BOOL, C64, F16, F32, I8, I32, U8, U32, Operand, Sample, Spec

FLOATS, INTS = (F32, F16, BF16), (I32, I8, U8, U32)
EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3e38, 1e-30)


def unary(name, reference, low=-2.0, high=2.0, dtypes=(*FLOATS, C64), **kw):
    samples = tuple(Sample((Operand(s, low, high),)) for s in ((), (3,), (2, 1, 3), (0,), (1,)))
    return Spec(name, getattr(lax, name), samples, reference, dtypes, edge=kw.pop("edge", EDGES), **kw)


def binary(
    name, reference, low=-2.0, high=2.0, dtypes=(*FLOATS, *INTS, C64), function=None, low2=None, high2=None, **kw
):
    low2, high2 = low if low2 is None else low2, high if high2 is None else high2
    shapes = (
        ((), ()),
        ((3,), (3,)),
        ((2, 3), (2, 1)),
        ((1, 3), (2, 1)),
        ((), (2, 3)),
        ((3,), ()),
        ((0,), (0,)),
        ((1,), (1,)),
    )
    samples = tuple(Sample((Operand(s, low, high), Operand(t, low2, high2))) for s, t in shapes)
    wrong = (
        (
            lambda: getattr(lax, function or name)(np.ones(3, "f4"), np.ones(4, "f4")),
            (TypeError, ValueError),
            r"\(3,\).*\(4,\)",
        ),
        (lambda: getattr(lax, function or name)(np.ones(3, "f4"), np.ones(3, "i4")), TypeError, "float32.*int32"),
    )
    return Spec(
        name,
        getattr(lax, function or name),
        samples,
        reference,
        dtypes,
        errors=kw.pop("errors", wrong),
        edge=kw.pop("edge", EDGES),
        **kw,
    )


def _tdiv(x, y):
    return np.trunc(x / y) if np.result_type(x, y).kind in "iu" else x / y


def _sign(x):
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))) if np.iscomplexobj(x) else np.sign(x)


BITS = (BOOL, *INTS)
SPECS = [
    binary("add", np.add),
    binary("sub", np.subtract),
    binary("mul", np.multiply),
    binary("div", _tdiv, low2=1.0, high2=3.0),
    binary("rem", np.fmod, low2=1.0, high2=3.0, dtypes=(*FLOATS, *INTS), second=False),
    binary("max", np.maximum, dtypes=(*FLOATS, *INTS, C64, BOOL)),
    binary("min", np.minimum, dtypes=(*FLOATS, *INTS, C64, BOOL)),
    binary("atan2", np.arctan2, 0.5, 2.0, dtypes=FLOATS),
    binary("nextafter", None, dtypes=(F32, F16, BF16), derivative="none"),
    binary("pow", np.power, 0.5, 2.0, dtypes=FLOATS, errors=(), rtol=1e-5),
    binary("complex", lambda x, y: x + 1j * y, dtypes=(F32,), edge=()),
    *[
        Spec(n, f.bind, (Sample((Operand((3,)), Operand((3,)))),), None, (F32, BF16), "zero", edge=EDGES)
        for n, f in (("eq_to", lax.eq_to_p), ("lt_to", lax.lt_to_p), ("le_to", lax.le_to_p))
    ],
    *[
        binary(n, f, dtypes=(*FLOATS, *INTS, BOOL, *((C64,) if n in ("eq", "ne") else ())), derivative="zero")
        for n, f in (
            ("eq", np.equal),
            ("ne", np.not_equal),
            ("lt", np.less),
            ("le", np.less_equal),
            ("gt", np.greater),
            ("ge", np.greater_equal),
        )
    ],
    *[
        binary(n, f, dtypes=BITS, function="bitwise_" + n, derivative="zero", errors=())
        for n, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor))
    ],
    *[
        binary(n, f, low2=0, high2=4, dtypes=INTS, derivative="zero", errors=(), edge=(0, 1, 7, 8, 31, 32, 40, -1))
        for n, f in (("shift_left", None), ("shift_right_arithmetic", None), ("shift_right_logical", None))
    ],
    unary("neg", np.negative, dtypes=(*FLOATS, *INTS, C64)),
    unary("sign", _sign, dtypes=(*FLOATS, *INTS, C64), second=False),
    unary("abs", np.abs, dtypes=(*FLOATS, I32, I8, C64), second=False),
    unary("square", np.square, dtypes=(*FLOATS, *INTS, C64)),
    unary("floor", np.floor, dtypes=FLOATS, derivative="zero"),
    unary("ceil", np.ceil, dtypes=FLOATS, derivative="zero"),
    unary("is_finite", np.isfinite, dtypes=FLOATS, derivative="zero"),
    unary("exp", np.exp),
    unary("exp2", np.exp2),
    unary("log", np.log, 0.3, 3.0),
    unary("expm1", np.expm1),
    unary("log1p", np.log1p, -0.5, 3.0),
    unary("tanh", np.tanh),
    unary("logistic", scipy.special.expit, dtypes=FLOATS),
    unary("sqrt", np.sqrt, 0.3, 3.0),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.3, 3.0),
    unary("cbrt", np.cbrt, 0.3, 3.0, FLOATS),
    unary("sin", np.sin),
    unary("cos", np.cos),
    unary("tan", np.tan, -1.0, 1.0),
    unary("asin", np.arcsin, -0.8, 0.8),
    unary("acos", np.arccos, -0.8, 0.8),
    unary("atan", np.arctan, -0.8, 0.8),
    unary("sinh", np.sinh),
    unary("cosh", np.cosh),
    unary("asinh", np.arcsinh),
    unary("acosh", np.arccosh, 1.2, 3.0),
    unary("atanh", np.arctanh, -0.8, 0.8),
    unary("erf", scipy.special.erf, dtypes=FLOATS),
    unary("erfc", scipy.special.erfc, dtypes=FLOATS),
    unary("erf_inv", scipy.special.erfinv, -0.9, 0.9, FLOATS, rtol=1e-5),
    unary("real", np.real, dtypes=(C64,)),
    unary("imag", np.imag, dtypes=(C64,)),
    unary("conj", np.conj, dtypes=(C64, F32)),
    *[
        Spec(p.name, p.bind, tuple(Sample((Operand(s),)) for s in ((), (3,), (0,))), f, FLOATS, edge=EDGES)
        for p, f in (
            (logistic_slope_p, lambda x: scipy.special.expit(x) * scipy.special.expit(-x)),
            (asinh_slope_p, lambda x: 1 / np.hypot(1, x)),
            (one_minus_square_p, lambda x: (1 - x) * (1 + x)),
        )
    ],
    Spec(
        "atan2_slope",
        atan2_slope_p.bind,
        tuple(Sample((Operand(s, 0.5, 2.0), Operand(s, 0.5, 2.0))) for s in ((), (3,), (0,))),
        lambda x, y: y / (x * x + y * y),
        FLOATS,
        edge=EDGES,
    ),
    Spec("not", lax.bitwise_not, tuple(Sample((Operand(s),)) for s in ((), (3,), (0,))), np.invert, BITS, "zero"),
    Spec(
        "population_count",
        lax.population_count,
        tuple(Sample((Operand(s, -100, 100),)) for s in ((), (5,), (0,))),
        None,
        INTS,
        "zero",
    ),
    Spec(
        "mulhi",
        lax.mulhi,
        tuple(Sample((Operand(s, -100, 100), Operand(s, -100, 100))) for s in ((), (5,), (0,))),
        lambda x, y: np.asarray(x.astype(object) * y.astype(object) >> x.dtype.itemsize * 8).astype(x.dtype),
        INTS,
        "zero",
        edge=(0, 1, -1, 100),
    ),
    Spec("clz", lax.clz, tuple(Sample((Operand(s, -100, 100),)) for s in ((), (5,), (0,))), None, INTS, "zero"),
    Spec(
        "integer_pow",
        lax.integer_pow,
        tuple(Sample((Operand((3,), 0.5, 2.0),), {"y": y}) for y in (-3, -1, 0, 1, 2, 3, 5, 8)),
        lambda x, y: np.power(x, y),
        (*FLOATS, C64),
        rtol=1e-5,
        edge=EDGES,
    ),
    Spec(
        "round",
        lax.round,
        tuple(
            Sample((Operand((7,), values=[-2.5, -1.5, -0.4, 0.0, 0.5, 1.5, 2.4]),), {"rounding_method": m})
            for m in (lax.RoundingMethod.AWAY_FROM_ZERO, lax.RoundingMethod.TO_NEAREST_EVEN)
        ),
        None,
        FLOATS,
        "zero",
    ),
    Spec(
        "clamp",
        lax.clamp,
        (
            Sample((Operand((), -1.0, -0.5), Operand((2, 3)), Operand((), 0.5, 1.0))),
            Sample((Operand((4,), -1.0, -0.5), Operand((4,)), Operand((4,), 0.5, 1.0))),
        ),
        lambda lo, x, hi: np.clip(x, lo, hi),
        (F32, I32),
        errors=((lambda: lax.clamp(np.ones(2, "f4"), np.ones(3, "f4"), np.float32(1)), TypeError, r"\(2,\)|\(3,\)"),),
    ),
]
