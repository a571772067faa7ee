"""Sorting, searching, sets, histograms and statistics."""

import numpy as np

from tests.parity.case import Case, Host, Weak, call, sample

TIED = np.array([3, 1, 2, 1, 3, 0], np.int32)
NANS = np.array([2.0, np.nan, -0.0, 0.0, -np.inf, np.inf, 1.0], np.float32)
X = sample("float32", (2, 5), 80)


def cases():
    yield from orders()
    yield from searches()
    yield from sets()
    yield from statistics()
    yield from numbers()


def orders():
    for name in ("sort", "argsort"):
        for dtype in ("bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"):
            yield call(f"jnp.{name}", sample(dtype, (7,), 81))
        for value in (TIED, NANS, 3, np.zeros((0,), np.float32), np.zeros((2, 0), np.int32)):
            yield call(f"jnp.{name}", value)
            yield call(f"jnp.{name}", value, descending=True)
        for axis in (0, 1, -1, None, 2, -3):
            yield call(f"jnp.{name}", X, axis=axis)
        yield call(f"jnp.{name}", TIED, stable=False)
        yield call(f"jnp.{name}", X, kind="mergesort")
    yield call("jnp.lexsort", [TIED, TIED[::-1].copy()])
    yield call("jnp.lexsort", X, axis=0)
    for k in (0, 2, -1, 9):
        yield call("jnp.partition", sample("float32", (6,), 82), k)
    for k in (1, 3, 5, 0, 6, -1):
        yield call("lax.top_k", X, k)
    yield call("lax.top_k", TIED, 4)
    yield call("lax.top_k", NANS, 3)
    for keys in (1, 2, 0, 3):
        yield call("lax.sort", [TIED, np.arange(6, dtype=np.float32)], num_keys=keys)
    yield call("lax.sort", X, dimension=0)
    yield call("lax.sort", X, dimension=2)
    yield call("lax.sort", [TIED, X])
    yield call("jnp.sort_complex", sample("complex64", (4,), 83))


def searches():
    grid = np.array([0.0, 1.0, 1.0, 2.0, 5.0], np.float32)
    for side in ("left", "right", "middle"):
        for value in (1.0, -1.0, 9.0, np.array([[0.5, 1.0], [2.0, 5.0]], np.float32), float("nan"), 1):
            yield call("jnp.searchsorted", grid, value, side=side)
        yield call("jnp.digitize", grid, grid, right=side == "right")
    for method in ("scan", "scan_unrolled", "sort", "compare_all", "nonsense"):
        yield call("jnp.searchsorted", grid, np.array([0.5, 1.0], np.float32), method=method)
    yield call("jnp.searchsorted", X, 1.0)
    yield call(
        "jnp.interp",
        np.array([-1.0, 0.5, 1.5, 9.0], np.float32),
        np.array([0.0, 1.0, 2.0], np.float32),
        np.array([0.0, 10.0, 5.0], np.float32),
    )
    yield call("jnp.interp", 0.5, [0.0, 1.0], [2, 4])
    yield call("jnp.interp", np.array([-1.0, 3.0], np.float32), np.arange(3.0), np.arange(3.0) * 2, left=-7, right=7)


def sets():
    for flags in (
        {},
        {"return_index": True},
        {"return_inverse": True},
        {"return_counts": True},
        {"size": 3},
        {"size": 6},
        {"size": 6, "fill_value": 9},
        {"return_index": True, "return_inverse": True, "return_counts": True},
    ):
        yield call("jnp.unique", TIED, **flags)
    yield call("jnp.unique", NANS)
    yield call("jnp.unique", np.array([[1, 2], [1, 2], [0, 1]], np.int32), axis=0)
    other = np.array([1, 7, 3, 1], np.int32)
    for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d", "isin"):
        yield call(f"jnp.{name}", TIED, other)
    yield call("jnp.isin", TIED, other, invert=True)
    for args in (
        (TIED,),
        (TIED, np.arange(6, dtype=np.float32)),
        (np.array([-1, 2], np.int32),),
        (X,),
        (np.zeros((0,), np.int32),),
    ):
        yield call("jnp.bincount", *args)
    yield call("jnp.bincount", TIED, minlength=6)
    yield call("jnp.bincount", TIED, length=2)
    for bins in (3, 10, np.array([0.0, 1.0, 4.0], np.float32), 0):
        yield call("jnp.histogram", X, bins=bins, rtol=1e-4)
    yield call("jnp.histogram", X, 4, range=(-1.0, 1.0), density=True, rtol=1e-4)
    yield call("jnp.histogram_bin_edges", X, 4, rtol=1e-4)


def statistics():
    for name in ("percentile", "nanpercentile", "quantile", "nanquantile"):
        scale = 100 if "percent" in name else 1
        for q in (0.25 * scale, 0.0, 1.0 * scale, np.array([0.1, 0.5], np.float32) * scale):
            yield call(f"jnp.{name}", X, q, rtol=1e-4)
            yield call(f"jnp.{name}", X, q, axis=1, rtol=1e-4)
        for method in ("lower", "higher", "nearest", "midpoint", "linear", "nonsense"):
            yield call(f"jnp.{name}", X, 0.3 * scale, method=method, rtol=1e-4)
        yield call(f"jnp.{name}", NANS[:4], 0.5 * scale)
        yield call(f"jnp.{name}", TIED, 0.5 * scale, keepdims=True)
    for axis in (None, 0, 1, (0, 1)):
        yield call("jnp.median", X, axis=axis)
        yield call("jnp.median", TIED.reshape(2, 3), axis=axis, keepdims=True)
    for rows in (True, False):
        yield call("jnp.cov", X, rowvar=rows, rtol=1e-4)
        yield call("jnp.corrcoef", X, rowvar=rows, rtol=1e-4)
    yield call("jnp.cov", X[0], X[1], ddof=0, rtol=1e-4)
    for n in (0, 1, 2, 5, -1):
        yield call("jnp.diff", X, n)
    yield call("jnp.diff", X, axis=0)
    yield call("jnp.diff", TIED, prepend=0, append=9)
    yield call("jnp.diff", np.array([True, False, True]))
    yield call("jnp.ediff1d", TIED)
    yield call("jnp.gradient", X)
    yield call("jnp.gradient", X[0], 2.0)
    yield call("jnp.gradient", X, axis=1)
    for args in ((X[0],), (X[0], np.arange(5, dtype=np.float32)), (X,)):
        yield call("jnp.trapezoid", *args)


def numbers():
    for decimals in (0, 1, 2, -1):
        yield call("jnp.round", np.array([1.25, 2.5, -3.55, 17.0], np.float32), decimals)
        yield call("jnp.round", np.array([15, 24, -25], np.int32), decimals)
    for values in ([1.0, -2.0, 3.0], [0, 1], [2]):
        for name in ("polyval",):
            yield call(f"jnp.{name}", np.array(values), sample("float32", (3,), 84))
    yield call("jnp.polyadd", np.array([1.0, 2]), np.array([1.0, 2, 3]))
    yield call("jnp.polymul", np.array([1.0, 2]), np.array([1.0, 2, 3]))
    yield call("jnp.polyder", np.array([1.0, 2, 3]))
    yield call("jnp.polyint", np.array([1.0, 2, 3]))
    yield call("jnp.unravel_index", np.array([3, 5], np.int32), (2, 3))
    for mode in ("raise", "wrap", "clip"):
        yield call("jnp.ravel_multi_index", (np.array([0, 1], np.int32), np.array([1, 2], np.int32)), (2, 3), mode=mode)
    yield call("jnp.packbits", np.array([1, 0, 1, 1, 0, 0, 0, 1, 1], np.uint8))
    yield call("jnp.unpackbits", np.array([5, 200], np.uint8))
    yield call("jnp.bartlett", 5, rtol=1e-4)
    yield call("jnp.hanning", 5, rtol=1e-4)
    yield call("jnp.i0", sample("float32", (4,), 85), rtol=1e-4)
    for name in ("heaviside", "array_equiv"):
        yield call(f"jnp.{name}", sample("float32", (3,), 86), sample("float32", (3,), 87))
    for name in ("isin", "array_equal", "array_equiv", "fmod", "gcd", "lcm", "cross"):
        yield call(f"jnp.{name}", Weak(2, (3,)), Weak(3, (3,)))
        yield call(f"jnp.{name}", Weak(2, (3,)), np.array([1, 2, 3], np.int32))
    yield call("jnp.unwrap", np.array([0.0, 3.0, 6.5, 9.0], np.float32), rtol=1e-4)
    yield Case(
        "isscalar",
        lambda ns: [ns.jnp.isscalar(v) for v in (1, 2.5, "a", [1], np.float32(2), np.ones(()), ns.jnp.ones(()))],
    )
    yield call("jnp.iscomplexobj", 1j)
    yield call("jnp.sort", Host(np.array(["b", "a"])))
