"""Making arrays: from values, of one value, ranges, grids, conversions."""

import numpy as np

from tests.parity.case import Case, Host, Weak, call, sample

DTYPES = (None, "bool", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64", "float64", "int64")
VALUES = (
    True,
    3,
    2.5,
    1 + 2j,
    [1, 2, 3],
    [1, 2.5],
    [True, 2],
    [[1, 2], [3, 4]],
    [],
    (),
    [[], []],
    [[1, 2], [3]],
    None,
    "abc",
    [1, None],
    ["a"],
    range(4),
    {"a": 1},
    2**31,
    2**40,
    -(2**40),
    [2**40, 1],
    1e300,
    float("nan"),
    b"x",
    [1 + 2j, 3],
    Host(np.arange(3)),
    Host(np.arange(3.0)),
    Host(np.float64(1.5)),
    Host(np.int64(5)),
    Host(np.array(["a"])),
    Host(np.array([1, None], object)),
    Host(np.uint64(7)),
    Weak(2.5),
    Weak(2, (2,)),
    Host(np.zeros((2, 0))),
)
ENDS = np.array([0.0, 1.0], np.float32)


def cases():
    for path in ("jnp.array", "jnp.asarray"):
        for value in VALUES:
            yield call(path, value)
        for dtype in DTYPES[1:] + ("str", "nonsense", float, int, bool, complex, np.float32):
            yield call(path, [0, 1, 2], dtype=dtype)
            yield call(path, sample("float32", (3,), 20), dtype=dtype)
    yield call("jnp.array", 1.5, ndmin=2)
    yield call("jnp.array", [1, 2], ndmin=3)
    yield from filled()
    yield from ranges()
    yield from grids()
    yield from conversions()


def filled():
    for name in ("zeros", "ones", "empty"):
        for shape in ((), 3, (2,), (2, 0), [2, 3], (-1,), (1.5,), "ab", None, (Host(np.int32(2)), 1)):
            yield call(f"jnp.{name}", shape)
        for dtype in DTYPES + (int, float, "nonsense"):
            yield call(f"jnp.{name}", (2,), dtype)
    for name in ("zeros_like", "ones_like"):
        for value in (sample("int8", (2, 2), 21), 2.5, 3, True, Weak(1.5, (2,)), [1, 2]):
            yield call(f"jnp.{name}", value)
        yield call(f"jnp.{name}", sample("float32", (2,), 21), dtype="int32")
        yield call(f"jnp.{name}", sample("float32", (2,), 21), shape=(3, 1))
    for value in (2, 2.5, True, 1j, Weak(2), [1, 2, 3], [1, 2], Host(np.float32(3)), "a"):
        yield call("jnp.full", (2, 3), value)
        yield call("jnp.full_like", sample("int32", (2, 3), 22), value)
        yield call("jnp.full", 3, value, dtype="float32")
    for args in ((3,), (2, 3), (0,), (3, 3, 1), (3, 3, -2), (3, 4, 9), (-1,), (2.5,)):
        yield call("jnp.eye", *args)
    yield call("jnp.eye", 2, dtype="int32")
    yield call("jnp.identity", 3, dtype="bool")
    yield call("jnp.tri", 3, 4, 1)
    yield call("jnp.vander", sample("float32", (3,), 23))
    yield call("jnp.vander", sample("int32", (3,), 23), 2, increasing=True)


def ranges():
    for args in (
        (5,),
        (2, 7),
        (0, 10, 3),
        (5, 0, -2),
        (0,),
        (3, 1),
        (2.5,),
        (0, 1, 0.25),
        (1, 2, 0),
        (0.0, 3),
        (True,),
        (1, 10, 2.5),
        (-3,),
        ("a",),
        (None,),
        (3, None),
        (1, 4, 1),
    ):
        yield call("jnp.arange", *args)
    for dtype in DTYPES[1:]:
        yield call("jnp.arange", 4, dtype=dtype)
        yield call("jnp.linspace", 0, 3, 4, dtype=dtype)
    for args, kwargs in (
        ((0, 1), {}),
        ((0, 1, 5), {}),
        ((0, 1, 5), {"endpoint": False}),
        ((2, 3, 0), {}),
        ((2, 3, 1), {}),
        ((0, 1, -2), {}),
        ((0, 1, 4), {"retstep": True}),
        ((ENDS, ENDS + 2, 3), {}),
        ((3, -3, 7), {}),
        (([0, 1], [2, 3], 3), {}),
        ((ENDS, ENDS + 2, 3), {"axis": 1}),
        ((0, 1j, 3), {}),
        ((0, 10, 4), {"dtype": "int32"}),
    ):
        yield call("jnp.linspace", *args, **kwargs)
    yield call("jnp.logspace", 0, 2, 5, rtol=1e-4)
    yield call("jnp.geomspace", 1, 100, 5, rtol=1e-4)


def grids():
    x, y = np.arange(3, dtype=np.int32), np.array([0.5, 1], np.float32)
    yield call("jnp.meshgrid", x, y)
    yield call("jnp.meshgrid", x, y, indexing="ij")
    yield call("jnp.meshgrid", x, y, sparse=True)
    yield call("jnp.meshgrid", x, y, indexing="no")
    yield call("jnp.meshgrid", x[:, None], y)
    yield call("jnp.indices", (2, 3))
    yield call("jnp.ix_", x, np.array([True, False]))
    for lower in ("tril_indices", "triu_indices"):
        yield call(f"jnp.{lower}", 3)
        yield call(f"jnp.{lower}", 3, 1)
        yield call(f"jnp.{lower}", 3, -1, 4)
    yield call("jnp.diag_indices", 3)
    yield Case("mgrid", lambda ns: ns.jnp.mgrid[0:2, 1:4])
    yield Case("mgrid complex", lambda ns: ns.jnp.mgrid[0:1:5j])
    yield Case("ogrid", lambda ns: ns.jnp.ogrid[0:2, 1:4:2])
    yield Case("r_", lambda ns: ns.jnp.r_[1:4, 0, ns.jnp.array([7, 8])])
    yield Case("c_", lambda ns: ns.jnp.c_[ns.jnp.arange(3), ns.jnp.ones(3)])
    yield call("jnp.fromfunction", lambda i, j: i * 10 + j, (2, 3), dtype="int32")


def conversions():
    ends = np.array([-1.5, 300.7, np.nan, np.inf, -np.inf, 3e9, -3e9, 0.999], np.float32)
    for dtype in DTYPES[1:9] + ("uint32", "int16"):
        for source in ("bool", "int32", "float32", "complex64", "bfloat16"):
            x = sample(source, (4,), 24, 0, 4)
            yield Case(f"astype {source} to {dtype}", lambda ns, x=x, dtype=dtype: ns.jnp.asarray(x).astype(dtype))
        yield Case(f"astype ends to {dtype}", lambda ns, dtype=dtype: ns.jnp.asarray(ends).astype(dtype))
    for pair in (
        ("int32", "float32"),
        ("int8", "uint8"),
        ("float16", "bfloat16"),
        ("int32", "uint32"),
        (int, "int8"),
        (float, "int32"),
        (int, float),
        (bool, "int8"),
        ("uint32", float),
        ("float8_e4m3fn", "float16"),
        ("nonsense", "int8"),
    ):
        yield Case(f"promote_types {pair}", lambda ns, p=pair: str(ns.jnp.promote_types(*p)))
        yield Case(f"result_type {pair}", lambda ns, p=pair: str(ns.jnp.result_type(*p)))
    for name in ("iinfo", "finfo"):
        for dtype in ("int8", "uint32", "float32", "bfloat16", "bool"):
            yield Case(
                f"{name} {dtype}",
                lambda ns, n=name, d=dtype: [float(getattr(ns.jnp, n)(d).max), getattr(ns.jnp, n)(d).bits],
            )
    for pair in (
        ("int32", "integer"),
        ("float32", "floating"),
        ("bfloat16", "inexact"),
        ("bool", "number"),
        ("uint8", "int8"),
    ):
        yield Case(f"issubdtype {pair}", lambda ns, p=pair: ns.jnp.issubdtype(p[0], getattr(ns.jnp, p[1])))
