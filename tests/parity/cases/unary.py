"""Functions of one array, over dtypes, scalars, weak types, shapes and special values."""

import numpy as np

from tests.parity.case import Host, Weak, call, np_dtype, sample

INEXACT_NAMES = (
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt "
    "cbrt deg2rad rad2deg sinc reciprocal"
).split()
EXACT_NAMES = (
    "abs negative positive sign square floor ceil trunc rint round isnan isinf isfinite signbit conj real imag angle "
    "invert logical_not bitwise_count nan_to_num fabs isneginf isposinf iscomplex isreal frexp modf iscomplexobj"
).split()
DTYPES = ("bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "complex64")
DOMAIN = {
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctanh": (-0.95, 0.95),
    "arccosh": (1.1, 4),
    "log": (0.1, 5),
    "log2": (0.1, 5),
    "log10": (0.1, 5),
    "log1p": (-0.9, 4),
    "sqrt": (0, 5),
    "reciprocal": (0.2, 4),
}
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-30, 1e30, 88.0, -100.0], np.float32
)
LOOSE = {"tan": 1e-4, "arccosh": 1e-4, "arcsinh": 1e-4, "sinc": 1e-4, "log": 1e-4, "log2": 1e-4, "log10": 1e-4}
# Where only the last digits of a value near a zero of the function can differ.
SPECIAL_SKIPPED = {"sin", "cos", "tan", "sinc", "frexp"}


def cases():
    for name in INEXACT_NAMES + EXACT_NAMES:
        yield from over_dtypes(name)
        yield from over_scalars(name)
        yield from over_shapes(name)
    for name in sorted(set(INEXACT_NAMES + EXACT_NAMES) - SPECIAL_SKIPPED):
        yield call(f"jnp.{name}", SPECIAL, rtol=1e-4)


def over_dtypes(name):
    low, high = DOMAIN.get(name, (-3, 3))
    for dtype in DTYPES:
        rtol = 3e-4 if dtype == "complex64" else LOOSE.get(name) if dtype == "float32" else None
        yield call(f"jnp.{name}", sample(dtype, (4,), 1, low, high), rtol=rtol)


def over_scalars(name):
    for value in (True, 1, 0.5):
        yield call(f"jnp.{name}", value, rtol=1e-4)
    yield call(f"jnp.{name}", Host(np.float32(0.25)), rtol=1e-4)
    yield call(f"jnp.{name}", Weak(0.75, (2,)), rtol=1e-4)
    yield call(f"jnp.{name}", Weak(1), rtol=1e-4)


def over_shapes(name):
    low, high = DOMAIN.get(name, (-3, 3))
    for shape in ((), (2, 0, 3), (2, 1, 3)):
        yield call(f"jnp.{name}", sample("float32", shape, 2, low, high), rtol=1e-4)
    yield call(f"jnp.{name}", sample("int16", (3,), 2, 0, 1), rtol=1e-4)
    yield call(f"jnp.{name}", np.zeros(2, np_dtype("uint16")))
