"""lax promotes nothing: pairs of dtypes and shapes that must agree, and what happens when they do not."""

import itertools

import numpy as np

from tests.parity.case import Host, Weak, call, sample

BINARY = (
    "add sub mul div rem pow max min atan2 nextafter eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor shift_left "
    "shift_right_arithmetic shift_right_logical complex igamma"
).split()
DTYPES = ("bool", "int8", "uint32", "int32", "bfloat16", "float32", "complex64")


def cases():
    for name in BINARY:
        yield from same_dtype(name)
        yield from scalars(name)
        yield from shapes(name)
    for name, pair in itertools.product(("add", "lt", "pow", "bitwise_and", "div"), itertools.combinations(DTYPES, 2)):
        yield call(f"lax.{name}", *(sample(dtype, (2,), 120, 1, 3) for dtype in pair))
    yield from edges()


def same_dtype(name):
    for dtype in DTYPES:
        yield call(
            f"lax.{name}",
            sample(dtype, (3,), 121, 1, 4),
            sample(dtype, (3,), 122, 1, 4),
            rtol=3e-4 if dtype in ("complex64", "float32") else None,
        )


def scalars(name):
    floats, integers = sample("float32", (2,), 123, 1, 4), sample("int32", (2,), 123, 1, 4)
    for x, y in (
        (floats, 2.0),
        (floats, 2),
        (integers, 2),
        (integers, 2.0),
        (2, 3),
        (2.0, 3),
        (True, integers),
        (2.0, floats),
        (integers, Host(np.int32(2))),
        (integers, Host(np.int8(2))),
        (Weak(2.0), floats),
        (Weak(2), floats),
        (Weak(2.0), integers),
    ):
        yield call(f"lax.{name}", x, y, rtol=3e-4)


def shapes(name):
    dtype = "int32" if name.startswith(("bitwise", "shift")) else "float32"
    for shape, shape2 in (
        ((2,), (3,)),
        ((2, 1), (2, 3)),
        ((), (3,)),
        ((3,), ()),
        ((1,), (3,)),
        ((2, 3), (3,)),
        ((0,), (0,)),
    ):
        yield call(f"lax.{name}", sample(dtype, shape, 124, 1, 3), sample(dtype, shape2, 125, 1, 3), rtol=3e-4)


def edges():
    exponents = np.array([1 + 1j, -1 + 1j, 0, 2, 1j, -1], np.complex64)
    yield call("lax.pow", np.zeros(6, np.complex64), exponents)
    ends = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    shifts = np.array([0, 1, 31, 32, -1], np.int32)
    for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
        yield call(f"lax.{name}", ends, shifts)
        yield call(f"lax.{name}", np.array([-128, 127, 5], np.int8), np.array([8, 7, -3], np.int8))
        yield call(f"lax.{name}", np.array([200, 255, 5], np.uint8), np.array([8, 7, 1], np.uint8))
    for name in ("div", "rem"):
        for left, right in (([7, -7, 7, -7], [2, 2, -2, -2]), ([1, -1, 0, -(2**31)], [0, 0, 0, -1])):
            yield call(f"lax.{name}", np.array(left, np.int32), np.array(right, np.int32))
        yield call(f"lax.{name}", np.array([7, 0, 255], np.uint8), np.array([2, 0, 0], np.uint8))
        yield call(
            f"lax.{name}", np.array([7.5, -7.5, 1, np.inf, 1], np.float32), np.array([2, 2, 0, 2, np.inf], np.float32)
        )
    for power in (-2, -1, 0, 1, 2, 5):
        yield call("lax.integer_pow", np.array([-2.0, 0.0, 0.5], np.float32), power)
        yield call("lax.integer_pow", np.array([-2, 3], np.int32), power)
        yield call("lax.pow", np.array([-2.0, 0.0, 0.5, np.inf], np.float32), np.float32(power))
        yield call("lax.pow", np.array([-2.0, 2.0], np.float32), np.array([power, power], np.int32))
        yield call("lax.pow", np.array([-2, 2], np.int32), np.array([power, power], np.int32))
    nans = np.array([np.nan, 1.0, -0.0, np.inf], np.float32)
    for name in ("max", "min", "eq", "lt", "ge", "ne"):
        yield call(f"lax.{name}", nans[:, None] * np.ones(4, np.float32), nans[None, :] * np.ones((4, 1), np.float32))
    for bound in ((1.0, 2.0), (0, 1), (2.0, 1.0)):
        yield call("lax.clamp", bound[0], nans, bound[1])
    yield call("lax.clamp", np.zeros(4, np.float32), nans, np.ones(3, np.float32))
    yield call("lax.clamp", np.int32(0), nans, np.int32(1))
    yield call("lax.clamp", np.zeros(4, np.float32), nans, np.ones(4, np.float32))
