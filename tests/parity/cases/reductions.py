"""Reductions and scans along axes: axis, keepdims, where, initial, dtype, empty arrays."""

import numpy as np

from tests.parity.case import Host, Weak, call, sample

SUMS = (
    "sum",
    "prod",
    "mean",
    "max",
    "min",
    "any",
    "all",
    "nansum",
    "nanprod",
    "nanmax",
    "nanmin",
    "nanmean",
    "count_nonzero",
)
SPREADS = ("std", "var", "nanstd", "nanvar", "ptp", "median", "nanmedian")
POSITIONS = ("argmax", "argmin", "nanargmax", "nanargmin")
RUNNING = ("cumsum", "cumprod", "nancumsum", "nancumprod")
DTYPES = ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64")
AXES = (None, 0, -1, (0, 2), (), (1, -1), 3, -4, (0, 0), 1.0, "x")


def cases():
    for name in SUMS + SPREADS:
        yield from over_dtypes(name)
        yield from over_axes(name)
        yield from empties(name)
    for name in POSITIONS:
        yield from over_dtypes(name)
        yield from positions(name)
        yield from empties(name)
    for name in RUNNING:
        yield from over_dtypes(name)
        yield from running(name)
    yield from with_where()
    yield from with_dtype()
    yield from with_nans()
    yield from others()


def over_dtypes(name):
    for dtype in DTYPES:
        yield call(f"jnp.{name}", sample(dtype, (2, 3), 7))
    for value in (True, 3, 2.5, Weak(1.5, (3,)), Weak(2, (2, 2)), Host(np.int8(4))):
        yield call(f"jnp.{name}", value)


def over_axes(name):
    x = sample("float32", (2, 3, 4), 8)
    for axis in AXES:
        yield call(f"jnp.{name}", x, axis=axis)
    yield call(f"jnp.{name}", x, axis=1, keepdims=True)
    yield call(f"jnp.{name}", x, keepdims=True)
    yield call(f"jnp.{name}", x, 0)


def empties(name):
    for shape, axis in (((0,), None), ((2, 0), 1), ((2, 0), 0), ((0, 3), 0)):
        yield call(f"jnp.{name}", np.zeros(shape, np.float32), axis=axis)


def positions(name):
    x = sample("float32", (2, 3, 4), 9)
    for axis in (None, 0, 1, -1, 3, (0, 1)):
        yield call(f"jnp.{name}", x, axis=axis)
    yield call(f"jnp.{name}", x, axis=1, keepdims=True)
    yield call(f"jnp.{name}", np.array([1, 5, 5, 1], np.int32))
    yield call(f"jnp.{name}", np.array([1.0, np.nan, 3.0, np.nan], np.float32))
    yield call(f"jnp.{name}", np.array([np.nan, np.nan], np.float32))


def running(name):
    for axis in (None, 0, -1, 2):
        yield call(f"jnp.{name}", sample("float32", (2, 3), 10), axis=axis)
    yield call(f"jnp.{name}", sample("int8", (4,), 10), dtype="float32")
    yield call(f"jnp.{name}", np.zeros((0,), np.float32))


def with_where():
    x, mask = sample("float32", (2, 3), 11), sample("bool", (2, 3), 11)
    for name in ("sum", "prod", "max", "min", "mean", "any", "all", "std", "var", "nansum"):
        yield call(f"jnp.{name}", x, where=mask)
        yield call(f"jnp.{name}", x, where=mask, initial=0.5)
        yield call(f"jnp.{name}", x, axis=0, where=mask[:, :1], initial=2)
        yield call(f"jnp.{name}", x, axis=1, initial=1.0)
        yield call(f"jnp.{name}", sample("int32", (2, 3), 11), axis=1, initial=3, where=mask)


def with_dtype():
    for name in ("sum", "prod", "mean", "std", "var", "cumsum"):
        for dtype in ("int8", "uint32", "float16", "float32", "bfloat16", "complex64", "bool"):
            yield call(f"jnp.{name}", sample("int32", (3,), 12, 0, 3), dtype=dtype)
            yield call(f"jnp.{name}", sample("float32", (3,), 12, 0, 3), dtype=dtype)


def with_nans():
    x = np.array([[1.0, np.nan, -2.0], [np.nan, np.nan, np.nan], [3.0, 4.0, np.inf]], np.float32)
    for name in SUMS + SPREADS + RUNNING:
        yield call(f"jnp.{name}", x)
        yield call(f"jnp.{name}", x, axis=1)


def others():
    x = sample("float32", (3, 4), 13)
    yield call("jnp.std", x, ddof=1)
    yield call("jnp.var", x, axis=0, ddof=2)
    yield call("jnp.var", sample("complex64", (4,), 13))
    yield call("jnp.average", x, weights=sample("float32", (3, 4), 14, 0.5, 2))
    yield call("jnp.average", x, axis=0, weights=np.array([1.0, 2, 3], np.float32))
    yield call("jnp.average", x, axis=1, weights=np.array([1.0, 2, 3], np.float32))
    yield call("jnp.average", x, axis=0, returned=True)
    for path in ("nn.logsumexp", "nn.softmax", "nn.log_softmax", "nn.standardize"):
        for axis in (None, 0, -1, 5):
            yield call(path, x, axis=axis)
    yield call("nn.logsumexp", np.full(3, -np.inf, np.float32))
    yield call("nn.logsumexp", np.array([np.inf, 1], np.float32))
    yield call("jnp.linalg.norm", x)
