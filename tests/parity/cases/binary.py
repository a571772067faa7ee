"""Functions of two arrays: promotion, weak types, broadcasting, special values, integer edges."""

import numpy as np

from tests.parity.case import Host, Weak, call, sample

NAMES = (
    "add subtract multiply divide floor_divide remainder fmod power float_power arctan2 hypot maximum minimum fmax "
    "fmin logaddexp logaddexp2 copysign nextafter heaviside equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm ldexp divmod"
).split()
SAME = ("bool", "int8", "int32", "uint8", "uint32", "float16", "bfloat16", "float32", "complex64")
MIXED = (
    ("int32", "float32"),
    ("int8", "uint8"),
    ("float16", "bfloat16"),
    ("uint32", "int32"),
    ("bool", "int8"),
    ("float32", "complex64"),
    ("int16", "float16"),
)
ARITHMETIC = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "maximum",
    "less",
    "equal",
    "arctan2",
    "bitwise_and",
    "logical_or",
    "left_shift",
)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5], np.float32)


def cases():
    for name in NAMES:
        yield from over_dtypes(name)
        yield from over_scalars(name)
    for name in ARITHMETIC:
        yield from over_shapes(name)
    yield from special_values()
    yield from integer_edges()


def pair(left, right, shape=(4,), shape2=(4,)):
    """Operands of two dtypes; the second has no zero, so that division has a meaning."""
    second = sample(right, shape2, 4, 1, 3)
    return sample(left, shape, 3, 0.5, 4), np.where(second == 0, np.ones_like(second), second)


def over_dtypes(name):
    for dtype in SAME:
        yield call(f"jnp.{name}", *pair(dtype, dtype), rtol=3e-4 if dtype == "complex64" else None)
    for left, right in MIXED:
        yield call(f"jnp.{name}", *pair(left, right), rtol=3e-4 if right == "complex64" else None)
        yield call(f"jnp.{name}", *pair(right, left), rtol=3e-4 if right == "complex64" else None)


def over_scalars(name):
    floats, integers = sample("float32", (3,), 5, 0.5, 3), sample("int32", (3,), 5, 1, 5)
    for x, y in (
        (integers, 2.5),
        (floats, 2),
        (2, 3),
        (2.5, 1),
        (True, 2),
        (integers, True),
        (floats, Host(np.int32(2))),
        (Host(np.float32(1.5)), integers),
        (sample("int8", (3,), 5, 1, 5), 2),
        (sample("float16", (2,), 5, 1, 2), 1.5),
        (Weak(2.0, (3,)), integers),
        (Weak(2, (3,)), sample("uint8", (3,), 5)),
        (Weak(1.5), Weak(2)),
        (sample("bfloat16", (2,), 6, 1, 3), Weak(3.0, (2,))),
    ):
        yield call(f"jnp.{name}", x, y)


def over_shapes(name):
    for shape, shape2 in (
        ((2, 1), (3,)),
        ((), (3,)),
        ((0,), (1,)),
        ((2, 0, 3), (3,)),
        ((2, 3), (2,)),
        ((1, 3), (2, 1)),
        ((4,), (3,)),
        ((2, 1, 3), (4, 1)),
    ):
        dtype = "int32" if name.startswith(("bitwise", "left", "logical")) else "float32"
        yield call(f"jnp.{name}", *pair(dtype, dtype, shape, shape2))


def special_values():
    left, right = SPECIAL[:, None], SPECIAL[None, :]
    for name in NAMES:
        if not name.startswith(("bitwise", "left", "right", "gcd", "lcm", "ldexp", "divmod")):
            yield call(f"jnp.{name}", left, right, rtol=1e-4)


def integer_edges():
    ends = np.array([-(2**31), -(2**31) + 1, -7, -1, 0, 1, 7, 2**31 - 1], np.int32)
    small = np.array([-128, -3, 0, 5, 127], np.int8)
    unsigned = np.array([0, 1, 200, 255], np.uint8)
    names = (
        "add",
        "subtract",
        "multiply",
        "floor_divide",
        "remainder",
        "fmod",
        "divmod",
        "maximum",
        "left_shift",
        "right_shift",
        "power",
        "divide",
        "bitwise_xor",
    )
    for name in names:
        for values in (ends, small, unsigned):
            yield call(f"jnp.{name}", values[:, None], values[None, :], rtol=1e-4)
    for name in ("abs", "negative", "sign", "square", "invert", "bitwise_count", "reciprocal"):
        for values in (ends, small, unsigned):
            yield call(f"jnp.{name}", values)
    for value in (300, -1, 2**31, 2**40, -(2**31) - 1):
        yield call("jnp.add", unsigned, value)
        yield call("jnp.add", ends, value)
        yield call("jnp.less", small, value)
