"""Functions of lax with structure in their parameters: windows, gathers, contractions, padding, reductions."""

import numpy as np

from tests.parity.case import Case, Fn, Weak, call, np_dtype, sample

X = sample("float32", (2, 3, 4), 90)
M = sample("float32", (4, 5), 91)
V = sample("float32", (6,), 92)
N = sample("int32", (3, 4), 93)
UNARY = (
    "abs neg sign sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log1p sqrt rsqrt cbrt "
    "floor ceil is_finite real imag conj bitwise_not population_count clz square reciprocal logistic integer_pow erf "
    "erfc erf_inv lgamma digamma"
).split()


def cases():
    for name in UNARY:
        for dtype in ("bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64"):
            extra = (3,) if name == "integer_pow" else ()
            yield call(
                f"lax.{name}",
                sample(dtype, (3,), 94, 0.1, 0.9),
                *extra,
                rtol=3e-4 if dtype[:4] in ("floa", "comp") and dtype != "float16" else None,
            )
        yield call(f"lax.{name}", 0.5, *((2,) if name == "integer_pow" else ()), rtol=3e-4)
        yield call(f"lax.{name}", Weak(1), *((2,) if name == "integer_pow" else ()), rtol=3e-4)
    yield from shapes()
    yield from reductions()
    yield from windows()
    yield from contractions()
    yield from convolutions()
    yield from gathers()
    yield from conversions()


def shapes():
    for shape, dims in (
        ((2, 3), (1,)),
        ((3, 2), (0,)),
        ((4, 3), (1,)),
        ((3,), (0,)),
        ((2, 4), (1,)),
        ((2, 3), (0, 1)),
        ((2, 3), (2,)),
    ):
        yield call("lax.broadcast_in_dim", sample("float32", (3,), 95), shape, dims)
    yield call("lax.broadcast", V, (2, 1))
    for sizes in ((6, 4), (24,), (5, 5), (-1, 4), (2, 3, 4)):
        yield call("lax.reshape", X, sizes)
    yield call("lax.reshape", X, (4, 6), (2, 0, 1))
    for permutation in ((2, 0, 1), (0, 1), (0, 0, 1), (0, 1, 3)):
        yield call("lax.transpose", X, permutation)
    for dims in ((0,), (0, 2), (3,), ()):
        yield call("lax.rev", X, dims)
        yield call("lax.squeeze", sample("float32", (1, 3, 1), 96), dims)
        yield call("lax.expand_dims", V, dims)
    yield call("lax.collapse", X, 1, 3)
    for config in (
        [(1, 2, 0), (0, 0, 1)],
        [(-1, -1, 0), (0, 1, 0)],
        [(1, 1, 2), (-1, 0, 0)],
        [(0, 0, 0)],
        [(0, 0, -1), (0, 0, 0)],
        [(-9, 0, 0), (0, 0, 0)],
    ):
        yield call("lax.pad", M, np.float32(7), config)
    yield call("lax.pad", N, np.float32(0), [(0, 0, 0), (0, 0, 0)])
    yield call("lax.concatenate", [M, M], 0)
    yield call("lax.concatenate", [M, V], 0)
    yield call("lax.concatenate", [M, M[:, :2]], 1)
    yield call("lax.concatenate", [M, M[:2]], 1)
    yield call("lax.split", V, (1, 2, 3))
    yield call("lax.split", V, (1, 2))
    for args in (
        ("int32", (3,), 0),
        ("float32", (2, 3), 1),
        ("bool", (2,), 0),
        ("int32", (2, 2), 2),
        ("bfloat16", (4,), 0),
    ):
        yield call("lax.broadcasted_iota", *args)
    yield call("lax.iota", "int32", 4)
    yield call("lax.full", (2,), 3)
    yield call("lax.full", (2,), 3.5, "int32")
    yield call("lax.full_like", N, 2.5)
    yield call("lax.select", np.array([True, False, True]), V[:3], -V[:3])
    yield call("lax.select", np.array([1, 0, 1], np.int32), V[:3], -V[:3])
    yield call("lax.select_n", np.array([0, 2, 1], np.int32), V[:3], V[3:], -V[:3])
    yield call("lax.select_n", np.array([0, 1], np.int32), V[:3], V[3:])
    yield call("lax.clamp", np.float32(-1), V, np.float32(1))
    yield call("lax.clamp", 0, N, 2)
    yield call("lax.clamp", -1.0, V, 1.0)
    yield call("lax.tile", M, (2, 1))


def reductions():
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        for axes in ((0,), (0, 2), (), (3,), (-1,), (0, 0)):
            yield call(f"lax.{name}", X, axes)
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        yield call(f"lax.{name}", N, (0,))
        yield call(f"lax.{name}", N > 0, (1,))
        yield call(f"lax.{name}", M, (1,))
    for name in ("argmax", "argmin"):
        yield call(f"lax.{name}", M, 1, "int32")
        yield call(f"lax.{name}", M, 2, "int32")
        yield call(f"lax.{name}", M, 0, "uint8")
        yield call(f"lax.{name}", M, 0, "float32")
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        for axis, reverse in ((0, False), (1, True), (-1, False), (2, False)):
            yield call(f"lax.{name}", M, axis=axis, reverse=reverse, rtol=1e-4)
        yield call(f"lax.{name}", N)
    for init, op in ((0.0, "add"), (1.0, "mul"), (-np.inf, "max"), (0.0, "atan2")):
        yield call("lax.reduce", M, np.float32(init), Fn(f"lax.{op}"), (0,), rtol=1e-4)
    yield Case(
        "reduce two operands",
        lambda ns: ns.lax.reduce(
            (ns.jnp.asarray(M), ns.jnp.arange(20).reshape(4, 5)),
            (np.float32(-9), np.int32(0)),
            lambda a, b: (ns.jnp.maximum(a[0], b[0]), ns.jnp.where(a[0] >= b[0], a[1], b[1])),
            (1,),
        ),
    )
    yield call("lax.reduce_precision", V, 5, 10)


def windows():
    for window, strides, padding in (
        ((2, 2), (1, 1), "VALID"),
        ((2, 2), (2, 2), "SAME"),
        ((1, 3), (1, 2), "SAME"),
        ((3, 1), (1, 1), [(1, 1), (0, 0)]),
        ((2,), (1,), "VALID"),
        ((2, 2), (1, 1), "NO"),
        ((6, 6), (1, 1), "VALID"),
    ):
        for init, op in ((0.0, "add"), (-np.inf, "max"), (np.inf, "min"), (1.0, "mul")):
            yield call("lax.reduce_window", M, np.float32(init), Fn(f"lax.{op}"), window, strides, padding)
    yield call("lax.reduce_window", N, np.int32(0), Fn("lax.add"), (2, 2), (1, 1), "VALID")
    yield call("lax.reduce_window", M, np.float32(0), Fn("lax.add"), (2, 2), (1, 1), "VALID", window_dilation=(2, 1))
    yield call("lax.reduce_window", M, np.float32(0), Fn("lax.add"), (2, 2), (1, 1), "SAME", base_dilation=(2, 1))


def contractions():
    batch = sample("float32", (2, 3, 4), 97)
    for left, right, numbers in (
        (M, sample("float32", (5, 2), 98), (((1,), (0,)), ((), ()))),
        (batch, batch, (((2,), (2,)), ((0,), (0,)))),
        (batch, batch, (((1, 2), (1, 2)), ((0,), (0,)))),
        (M, M, (((0,), (0,)), ((), ()))),
        (M, M, (((0, 1), (0, 1)), ((), ()))),
        (V, V, (((0,), (0,)), ((), ()))),
        (V, M, (((), ()), ((), ()))),
        (M, M, (((1,), (0,)), ((), ()))),
        (M, V, (((2,), (0,)), ((), ()))),
        (batch, batch, (((2,), (1,)), ((0,), (0,)))),
        (M, M, (((1,), (1,)), ((1,), (1,)))),
    ):
        yield call("lax.dot_general", left, right, numbers)
    matmul = (((1,), (0,)), ((), ()))
    for dtype in ("bool", "int8", "int32", "uint8", "bfloat16", "float16", "complex64"):
        yield call("lax.dot_general", sample(dtype, (2, 3), 99), sample(dtype, (3, 2), 99), matmul)
        yield call(
            "lax.dot_general",
            sample(dtype, (2, 3), 99),
            sample(dtype, (3, 2), 99),
            matmul,
            preferred_element_type="float32",
        )
    yield call(
        "lax.dot_general",
        sample("int8", (2, 3), 99),
        sample("int8", (3, 2), 99),
        matmul,
        preferred_element_type="int32",
    )
    yield call("lax.dot_general", sample("int32", (2, 3), 99), sample("float32", (3, 2), 99), matmul)
    for shapes in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 3), (2, 3)), ((2, 2, 2), (2,))):
        yield call("lax.dot", *(sample("float32", shape, 100) for shape in shapes))
        yield call("lax.batch_matmul", *(sample("float32", shape, 100) for shape in shapes))


def convolutions():
    image, kernel = sample("float32", (1, 2, 5, 4), 101), sample("float32", (3, 2, 2, 3), 102)
    for strides, padding in (
        ((1, 1), "VALID"),
        ((2, 1), "SAME"),
        ((1, 1), [(1, 0), (2, 1)]),
        ((1, 2), "SAME_LOWER"),
        ((1,), "VALID"),
        ((1, 1), "NO"),
    ):
        yield call("lax.conv", image, kernel, strides, padding if isinstance(padding, str) else "SAME")
        yield call("lax.conv_general_dilated", image, kernel, strides, padding)
    yield call("lax.conv_general_dilated", image, kernel, (1, 1), "SAME", lhs_dilation=(2, 1), rhs_dilation=(1, 1))
    yield call("lax.conv_general_dilated", image, kernel, (1, 1), "VALID", rhs_dilation=(2, 1))
    yield call(
        "lax.conv_general_dilated", image, sample("float32", (4, 1, 2, 2), 103), (1, 1), "VALID", feature_group_count=2
    )
    yield call("lax.conv_general_dilated", image, sample("float32", (4, 3, 2, 2), 103), (1, 1), "VALID")
    yield call(
        "lax.conv_general_dilated",
        sample("float32", (1, 5, 4, 2), 104),
        sample("float32", (2, 3, 2, 3), 105),
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    yield call(
        "lax.conv_general_dilated", sample("float32", (2, 3, 7), 106), sample("float32", (4, 3, 3), 107), (2,), "SAME"
    )
    yield call(
        "lax.conv_transpose", sample("float32", (1, 4, 4, 2), 108), sample("float32", (2, 2, 2, 3), 109), (2, 2), "SAME"
    )
    yield call("lax.conv", sample("int32", (1, 1, 4, 4), 110), sample("int32", (1, 1, 2, 2), 111), (1, 1), "VALID")


def gathers():
    rows = np.array([[0], [2], [9]], np.int32)
    for mode in ("clip", "fill", "promise_in_bounds", "nonsense"):
        for op in ("gather", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"):
            indices = rows[:2] if mode == "promise_in_bounds" else rows
            yield Case(
                f"{op} rows {mode}", lambda ns, op=op, mode=mode, indices=indices: _gather(ns, op, mode, indices)
            )
    yield Case(
        "gather windows",
        lambda ns: ns.lax.gather(
            ns.jnp.asarray(M),
            ns.jnp.array([[0, 1], [3, 4]]),
            ns.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1)),
            (2, 2),
        ),
    )
    yield Case(
        "gather wrong sizes",
        lambda ns: ns.lax.gather(
            ns.jnp.asarray(M),
            ns.jnp.array([[0, 1], [3, 4]]),
            ns.lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0, 1)),
            (9, 2),
        ),
    )


def _gather(ns, op, mode, indices):
    x, indices = ns.jnp.asarray(M), ns.jnp.asarray(indices)
    if op == "gather":
        numbers = ns.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
        return ns.lax.gather(x, indices, numbers, (1, 5), mode=mode)
    numbers = ns.lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    return getattr(ns.lax, op)(x, indices, ns.jnp.full((indices.shape[0], 5), 0.5), numbers, mode=mode)


def conversions():
    for dtype in ("bool", "int8", "uint32", "float16", "bfloat16", "complex64", float, int):
        yield call("lax.convert_element_type", V, dtype)
        yield call("lax.convert_element_type", 2, dtype)
    for dtype in ("int32", "uint32", "float32", "int16", "int8", "bool", "complex64"):
        yield call("lax.bitcast_convert_type", sample("float32", (2,), 112), dtype)
    yield call("lax.bitcast_convert_type", np.arange(8, dtype=np.int8).reshape(2, 4), "int32")
    yield call("lax.bitcast_convert_type", np.zeros(2, np_dtype("bfloat16")), "uint16")
    yield call("lax.stop_gradient", {"a": V, "b": 2})
    yield call("lax.optimization_barrier", (V, N))
    yield call("lax.complex", V, V)
    yield call("lax.nextafter", V, V + 1)
    yield call("lax.expand_dims", V, (0, -1))
