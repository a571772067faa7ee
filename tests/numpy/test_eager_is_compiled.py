"""Every function of `gradix.numpy` on every dtype gives eagerly what it gives compiled: with NaN, infinities, -0, of no and of one element.

All functions are compiled as few programs, so that a dtype takes seconds.
"""

import inspect
import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests.numpy.function_calls import CONSTRUCTORS, calls

CALLS = calls()
QUICK = "float32", "float8_e5m2", "complex64", "uint4"
SLOW = (
    "bfloat16",
    "int8",
    "float16",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3b11fnuz",
    "float8_e3m4",
    "float8_e5m2fnuz",
    "complex128",
    "bool",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "int4",
    "int2",
    "uint2",
)
DTYPES = [*QUICK, *[pytest.param(d, marks=pytest.mark.slow) for d in SLOW]]
SIZES = {"some": 9, "one": 1, "none": 0}

# Whose zeros may have either sign: extrema of equal zeros, and sums of a single -0.
ANY_ZERO = {"maximum_accumulate", "pad_linear", "nanmean"}
# What cancels to a rest of rounding errors.
CANCELS = {("trapezoid", dtype) for dtype in ("uint16", "uint32", "int64", "uint64")}
# Compiled, some forms multiply the zeros around a vector by NaN.
ZEROS_AROUND = {"convolve", "polymul"}
# XLA has no products of two bits.
NOT_COMPILED = {(name, dtype) for name in ("einsum", "matmul", "matvec", "tensordot") for dtype in ("int2", "uint2")}


def is_integer(dtype) -> bool:
    return dtype.kind in "biu" or "int" in str(dtype)


def operands(dtype, size: int):
    """Two vectors and a matrix of three columns, of the values that functions stumble over."""
    if dtype.kind == "b":
        values: list = [0, 1, 1, 0, 1, 0, 0, 1, 1]
    elif is_integer(dtype):
        info = jnp.iinfo(dtype)
        values = [
            0,
            1,
            min(2, info.max),
            min(3, info.max),
            info.max,
            info.min,
            min(5, info.max),
            max(-1, info.min),
            info.max - 1,
        ]
    elif dtype.kind == "c":
        values = [
            0,
            -0.0,
            complex(np.nan, 1),
            complex(1, np.nan),
            complex(np.inf, 2),
            complex(0, -np.inf),
            -1 + 0.5j,
            2 - 3j,
            0.5j,
        ]
    else:
        values = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.0, 0.25, 1.5]
    values = values[1:2] if size == 1 else values[:size]
    wide = (
        "complex128"
        if dtype.kind == "c"
        else "uint64"
        if dtype == "uint64"
        else "int64"
        if is_integer(dtype)
        else "float64"
    )
    x = np.array(values, wide).astype(dtype)
    return [jnp.asarray(a) for a in (x, x[::-1], np.resize(x, (4, 3)) if size else x.reshape(0, 3))]


def leaves(result) -> list:
    return [np.asarray(leaf) for leaf in gradix.tree.leaves(result)]


def difference(got, want, name: str, eps: float) -> str | None:
    """What differs between the leaves of two results, in words."""
    for x, y in zip(got, want, strict=True):
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"{x.dtype}{x.shape}, compiled {y.dtype}{y.shape}"
        shown = f"{x.ravel()[:9]}, compiled {y.ravel()[:9]}"
        if is_integer(x.dtype):
            if not np.array_equal(x, y):
                return shown
            continue
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        a, b = x.astype(wide).ravel(), y.astype(wide).ravel()
        for p, q in ((a.real, b.real), (a.imag, b.imag)):
            there = ~np.isnan(p)
            if not np.array_equal(there, ~np.isnan(q)) or not np.allclose(p[there], q[there], rtol=16 * eps, atol=1e-6):
                return shown
            zeros = there & (p == 0)
            if x.dtype.kind != "c" and name not in ANY_ZERO and (np.signbit(p) != np.signbit(q))[zeros].any():
                return shown
    return None


def compiled(names, args) -> dict:
    """The results of functions compiled together; where that fails, halves of them, and in the end the error."""
    try:
        return gradix.jit(lambda x, y, m: {name: CALLS[name](jnp, x, y, m) for name in names})(*args)
    except Exception as error:
        if len(names) == 1:
            return {names[0]: error}
        half = len(names) // 2
        return {**compiled(names[:half], args), **compiled(names[half:], args)}


def outcome(call):
    try:
        return leaves(call())
    except Exception as error:
        return error


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eager_is_compiled(dtype, size):
    dtype, wrong = jnp.dtype(dtype), []
    eps = 1e-7 if is_integer(dtype) else float(jnp.finfo(dtype).eps)
    wide = dtype.itemsize == 8 and dtype.kind != "c" or dtype.itemsize == 16
    with gradix.enable_x64(wide), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = operands(dtype, SIZES[size])
        eager = {name: outcome(lambda call=call: call(jnp, *args)) for name, call in CALLS.items()}
        works = [name for name in CALLS if not isinstance(eager[name], Exception)]
        assert len(works) > 150
        together = {}
        for i in range(0, len(works), 60):
            together.update(compiled(works[i : i + 60], args))
        for name in works:
            if (name, str(dtype)) in CANCELS | NOT_COMPILED or name in ZEROS_AROUND and not is_integer(dtype):
                continue
            if isinstance(together[name], Exception):
                wrong.append(f"{name}: compiled it raises {together[name]!r:.200}")
            elif found := difference(eager[name], leaves(together[name]), name, eps):
                wrong.append(f"{name}: {found}")
        for name in CALLS.keys() - set(works):
            staged = outcome(
                lambda name=name: gradix.eval_shape(lambda x, y, m: CALLS[name](jnp, x, y, m), *args) and []
            )
            if type(staged) is not type(eager[name]):
                wrong.append(f"{name}: raises {eager[name]!r:.100}, but traced {staged!r:.100}")
    assert not wrong, "\n".join(wrong)


def test_every_function_is_called():
    functions = {
        name
        for name in dir(jnp)
        if not name.startswith("_") and callable(getattr(jnp, name)) and not inspect.isclass(getattr(jnp, name))
    }
    same = {name.removesuffix("_like") for name in CALLS}
    assert functions - set(CALLS) - same - CONSTRUCTORS == set()
