"""Structural operations against NumPy and plain loops, on the host and compiled."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import gradix
from gradix import lax

X = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
GATHER, SCATTER = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers


def both_ways(function, *args):
    """The result computed eagerly; it must be bit for bit what the compiled program gives."""
    eager = np.asarray(function(*args))
    compiled = np.asarray(gradix.jit(function)(*args))
    assert eager.dtype == compiled.dtype
    wide = np.float64 if eager.dtype.kind == "V" else eager.dtype  # NumPy's tests know no NaN of bfloat16
    np.testing.assert_array_equal(eager.astype(wide), compiled.astype(wide))
    return eager


@pytest.mark.parametrize(
    "function, reference",
    [
        (lambda x: lax.reshape(x, (12, 5), (2, 1, 0)), lambda x: x.transpose().reshape(12, 5)),
        (lambda x: lax.expand_dims(x, (0, -1)), lambda x: x[None, ..., None]),
        (lambda x: lax.squeeze(lax.expand_dims(x, (1, 3)), (1, -2)), lambda x: x),
        (lambda x: lax.rev(x, (0, 2)), lambda x: x[::-1, :, ::-1]),
        (
            lambda x: lax.broadcast_in_dim(x, (4, 2, 5, 3), (2, 0, 3)),
            lambda x: np.broadcast_to(x.transpose(1, 0, 2)[:, None], (4, 2, 5, 3)),
        ),
        (lambda x: lax.collapse(x, 1), lambda x: x.reshape(5, 12)),
        (lambda x: lax.slice(x, (1, 0, 1), (5, 4, 3), (3, 2, 1)), lambda x: x[1:5:3, 0:4:2, 1:3]),
        (lambda x: lax.slice_in_dim(x, -3, None, 2, 1), lambda x: x[:, -3::2]),
        (lambda x: lax.index_in_dim(x, -1, 1, keepdims=False), lambda x: x[:, -1]),
        (lambda x: lax.concatenate([x, x[:, :1]], 1), lambda x: np.concatenate([x, x[:, :1]], 1)),
        (lambda x: lax.split(x, (1, 0, 3), 1)[2], lambda x: x[:, 1:]),
        (lambda x: lax.tile(x, (1, 2, 3)), lambda x: np.tile(x, (1, 2, 3))),
        (lambda x: lax.clamp(np.float32(10), x, np.float32(20)), lambda x: np.clip(x, 10, 20)),
        (lambda x: lax.select(x > 9, x, -x), lambda x: np.where(x > 9, x, -x)),
        (lambda x: lax.select_n(np.array([0, 3, -2, 1, 9]), *x.T[0]), lambda x: x.T[0][[0, 3, 0, 1, 3], range(5)]),
    ],
)
def test_against_numpy(function, reference):
    np.testing.assert_array_equal(both_ways(function, X), reference(X))


@pytest.mark.parametrize("n, lo, hi, interior", list(itertools.product((0, 1, 4), (-2, 0, 3), (-1, 0, 2), (0, 1, 3))))
def test_pad_places_elements(n, lo, hi, interior):
    size = lo + hi + (n + (n - 1) * interior if n else 0)
    if size < 0:
        with pytest.raises(ValueError, match="after padding"):
            lax.pad(np.ones(n, np.float32), np.float32(0), [(lo, hi, interior)])
        return
    x, expected = np.arange(1, n + 1, dtype=np.float32), np.full(size, 9, np.float32)
    for i in range(n):
        if 0 <= (at := lo + i * (interior + 1)) < size:
            expected[at] = x[i]
    np.testing.assert_array_equal(both_ways(lambda x: lax.pad(x, np.float32(9), [(lo, hi, interior)]), x), expected)


EDGES = np.array([np.nan, np.inf, -np.inf, 0.9, -0.9, 2.0**31, -(2.0**31), 2.0**40, -5, 300, -129, 127.9], np.float32)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int4", "uint4"])
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16"])
def test_float_to_integer_saturates(source, target):
    with np.errstate(over="ignore"):
        x = EDGES.astype(getattr(ml_dtypes, source, source))
    info = ml_dtypes.iinfo(target)
    wide = x.astype(np.float64)
    expected = [0 if np.isnan(v) else int(min(max(v, float(info.min)), float(info.max))) for v in wide]
    got = both_ways(lambda x: lax.convert_element_type(x, target), x)
    assert got.astype(np.int64).tolist() == expected


def test_other_conversions():
    z = np.array([1.5 + 2j, 0 + 1j], np.complex64)
    assert both_ways(lambda x: lax.convert_element_type(x, "int32"), z).tolist() == [1, 0]
    assert both_ways(lambda x: lax.convert_element_type(x, bool), z).tolist() == [True, False]
    assert both_ways(lambda x: lax.convert_element_type(x, "int4"), np.array([300, 8, -9])).tolist() == [-4, -8, 7]
    x = lax.full((2,), 1.0, "float32")
    assert lax.convert_element_type(x, "float32") is x
    assert not lax.convert_element_type(lax.full((), 1.0), float).weak_type


def test_bits():
    x = np.array([1.0, -2.0], np.float32)
    octets = both_ways(lambda x: lax.bitcast_convert_type(x, "uint8"), x)
    assert octets.tolist() == x.view(np.uint8).reshape(2, 4).tolist()
    np.testing.assert_array_equal(both_ways(lambda o: lax.bitcast_convert_type(o, "float32"), octets), x)
    nibbles = both_ways(lambda x: lax.bitcast_convert_type(x, "uint4"), np.array([0xAB], np.uint8))
    assert nibbles.astype(int).tolist() == [[0xB, 0xA]]
    assert both_ways(lambda x: lax.bitcast_convert_type(x, "int16"), np.array(3, np.int32)).tolist() == [3, 0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (5, 2), (4, 3), (2, 1), (8, 0)])
def test_reduce_precision_compiles_to_the_same(dtype, bits):
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", under="ignore"):
        x = (rng.normal(size=400) * 10.0 ** rng.integers(-9, 9, 400)).astype(getattr(ml_dtypes, dtype, dtype))
    x[:4] = [np.nan, np.inf, -0.0, -np.inf]
    both_ways(lambda x: lax.reduce_precision(x, *bits), x)


@pytest.mark.parametrize("start", [0, 3, 100, -1, -5, -100])
def test_dynamic_slices_move_inside(start):
    at = min(max(start + 5 if start < 0 else start, 0), 3)
    got = both_ways(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2), X, np.int32(start))
    np.testing.assert_array_equal(got, X[at : at + 2])
    np.testing.assert_array_equal(lax.dynamic_slice_in_dim(X, start, 2), X[at : at + 2])
    written = both_ways(lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 0), X, -X[:2], np.int32(start))
    expected = X.copy()
    expected[at : at + 2] = -X[:2]
    np.testing.assert_array_equal(written, expected)


# name: offset dims, collapsed dims, start index map, batching dims of operand and indices, slice sizes, indices
WINDOWS = {
    "rows": ((1, 2), (0,), (0,), (), (), (1, 4, 3), [[0], [2], [7], [-1], [2]]),
    "middle axis": ((0, 2), (1,), (1,), (), (), (5, 1, 3), [[0], [3], [9]]),
    "last axis": ((0, 1), (2,), (2,), (), (), (5, 4, 1), [[2], [-1]]),
    "points": ((), (0, 1, 2), (2, 0, 1), (), (), (1, 1, 1), [[2, 0, 1], [1, 4, 3], [0, 9, 0], [2, 0, 1]]),
    "blocks": ((1, 2, 3), (), (0, 1), (), (), (2, 3, 2), [[0, 0], [3, 1], [4, 0], [1, 1]]),
    "blocks first": ((0, 1), (2,), (0, 1), (), (), (2, 2, 1), [[0, 0], [1, 1], [1, 0]]),
    "one block": ((0, 1), (2,), (0, 1), (), (), (2, 2, 1), [1, 2]),
    "batched": ((1,), (2,), (2,), (0,), (0,), (1, 4, 1), [[0], [1], [2], [5], [0]]),
    "batched twice": ((), (2,), (2,), (0, 1), (1, 0), (1, 1, 1), np.arange(20).reshape(4, 5, 1) % 3),
    "none": ((1, 2), (0,), (0,), (), (), (1, 4, 3), np.zeros((0, 1), int)),
}


def _windows(case, mode):
    """For each index vector: whether it is in bounds, and for each element its place in windows and operand."""
    offset, dropped, index_map, batching, batching_at, sizes, indices = case
    indices = np.asarray(indices)
    kept = [d for d in range(3) if d not in dropped and d not in batching]
    for place in np.ndindex(*indices.shape[:-1]):
        start = [0, 0, 0]
        for d, i in zip(index_map, indices[place]):
            start[d] = int(i)
        limits = [n - m for n, m in zip(X.shape, sizes)]
        inside = all(0 <= s <= n for s, n in zip(start, limits))
        if mode == "clip":
            start, inside = [min(max(s, 0), n) for s, n in zip(start, limits)], True
        for d, i in zip(batching, batching_at):
            start[d] = place[i]
        for step in np.ndindex(*sizes):
            outer, inner = iter(place), iter([step[d] for d in kept])
            rank = len(place) + len(offset)
            out = tuple([next(inner) if a in offset else next(outer) for a in range(rank)])
            yield inside, out, tuple([s + k for s, k in zip(start, step)])


def _shape(case):
    offset, dropped, _, batching, _, sizes, indices = case
    inner = iter([n for d, n in enumerate(sizes) if d not in dropped and d not in batching])
    outer = iter(np.shape(indices)[:-1])
    return tuple([next(inner) if a in offset else next(outer) for a in range(np.ndim(indices) - 1 + len(offset))])


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("name", WINDOWS)
def test_gather(name, mode):
    case = WINDOWS[name]
    expected = np.full(_shape(case), np.nan, np.float32)
    for inside, out, source in _windows(case, mode):
        if inside:
            expected[out] = X[source]
    numbers, indices = GATHER(*case[:5]), np.asarray(case[6], np.int32)
    got = both_ways(lambda x, i: lax.gather(x, i, numbers, case[5], mode=mode), X, indices)
    np.testing.assert_array_equal(got, expected)


COMBINE = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("kind", COMBINE)
@pytest.mark.parametrize("name", WINDOWS)
def test_scatter(name, kind, mode):
    case = WINDOWS[name]
    updates = np.random.default_rng(1).integers(-3, 90, _shape(case)).astype(np.float32)
    expected = X.copy()
    for inside, out, target in _windows(case, mode):
        if inside:
            expected[target] = COMBINE[kind](expected[target], updates[out])
    numbers, indices = SCATTER(*case[:5]), np.asarray(case[6], np.int32)
    got = both_ways(lambda x, i, u: getattr(lax, kind)(x, i, u, numbers, mode=mode), X, indices, updates)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.rewritten
@pytest.mark.parametrize("index", ["int32", "uint8", "int64"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "uint64"])
@pytest.mark.parametrize("count", [1 << 14, (1 << 14) + 13])
def test_one_number_added_to_many_elements(count, dtype, index):
    low, high = np.iinfo(index).min, np.iinfo(index).max
    places = np.random.default_rng(1).integers(max(low, -9), min(high, 1100), count).astype(index)
    places[:6] = [low, high, low, high, 999 % (high + 1), 0]
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    start = np.arange(1000).astype(dtype)
    with gradix.enable_x64():
        for mode in (lax.GatherScatterMode.FILL_OR_DROP, lax.GatherScatterMode.CLIP):

            def add(x, i):
                return lax.scatter_add(x, i[:, None], lax.full((count,), 3, dtype), numbers, mode=mode)

            wide = places.astype("int64")
            kept = wide.clip(0, 999) if mode is lax.GatherScatterMode.CLIP else wide[(wide >= 0) & (wide < 1000)]
            wanted = start + 3 * np.bincount(kept, minlength=1000).astype(dtype)
            np.testing.assert_array_equal(gradix.jit(add)(start, places), wanted)
            np.testing.assert_array_equal(add(start, places), wanted)
        program = gradix.jit(add).lower(start, places).as_text()
    assert "number_to_elements" in program and "stablehlo.scatter" not in program


def test_other_updates_and_longer_vectors_are_scattered_by_xla():
    numbers, places = lax.ScatterDimensionNumbers((), (0,), (0,)), np.zeros((1 << 14, 1), np.int32)
    for x, updates in ((np.zeros(9, np.float32), np.ones(1 << 14, np.float32)), (np.zeros(1 << 15, np.float32), None)):

        def add(x, i):
            return lax.scatter_add(x, i, lax.full((1 << 14,), 1, np.float32) if updates is None else updates, numbers)

        assert "stablehlo.scatter" in gradix.jit(add).lower(x, places).as_text()


def test_scatter_apply_repeats():
    numbers, indices = SCATTER((), (0,), (0,)), np.array([[1], [3], [1], [9]], np.int32)
    got = both_ways(
        lambda x: lax.scatter_apply(x, indices, lambda v: v * 2, numbers, update_shape=(4,)), np.ones(4, np.float32)
    )
    assert got.tolist() == [1, 4, 1, 2]


def test_only_the_last_update_has_a_derivative():
    numbers, indices = SCATTER((), (0,), (0,)), np.array([[1], [1], [7]], np.int32)

    def loss(x, u):
        return (lax.scatter(x, indices, u, numbers) * np.array([1, 10, 100], np.float32)).sum()

    dx, du = gradix.grad(loss, (0, 1))(np.ones(3, np.float32), np.ones(3, np.float32))
    assert dx.tolist() == [1, 0, 100]
    assert du.tolist() == [0, 10, 0]


@pytest.mark.parametrize("dtype, fill", [("int8", -128), ("uint16", 65535), ("bool", True), ("float16", np.nan)])
def test_default_fill(dtype, fill):
    numbers = GATHER((), (0,), (0,))
    got = both_ways(lambda x: lax.gather(x, np.array([[5]]), numbers, (1,), mode="fill"), np.zeros(3, dtype))
    np.testing.assert_array_equal(got, np.array([fill], dtype))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: lax.reshape(X, (7,)), TypeError),
        (lambda: lax.squeeze(X, (0,)), ValueError),
        (lambda: lax.expand_dims(X, (0, 0)), ValueError),
        (lambda: lax.slice(X, (0, 0, 0), (6, 4, 3)), TypeError),
        (lambda: lax.index_in_dim(X, 5), IndexError),
        (lambda: lax.concatenate([], 0), ValueError),
        (lambda: lax.concatenate([X, X.astype(np.int32)], 0), TypeError),
        (lambda: lax.split(X, (1, 1)), ValueError),
        (lambda: lax.pad(X, 0, [(0, 0, 0)] * 3), TypeError),
        (lambda: lax.select(X > 0, X, np.float32(0)), TypeError),
        (lambda: lax.select(X, X, X), TypeError),
        (lambda: lax.clamp(0, X, 1), TypeError),
        (lambda: lax.full((2,), np.ones(3)), TypeError),
        (lambda: lax.iota("bool", 3), TypeError),
        (lambda: lax.dynamic_slice(X, (0, 0), (1, 1, 1)), ValueError),
        (lambda: lax.dynamic_slice(X, (0, 0, 0), (9, 1, 1)), TypeError),
        (lambda: lax.gather(X, np.zeros((2, 1), np.float32), GATHER((1, 2), (0,), (0,)), (1, 4, 3)), ValueError),
        (lambda: lax.gather(X, np.zeros((2, 1), np.int32), GATHER((1, 2), (0,), (0,)), (2, 4, 3)), TypeError),
        (
            lambda: lax.gather(X, np.zeros((2, 1), np.int32), GATHER((1, 2), (0,), (0,)), (1, 4, 3), mode="wrap"),
            ValueError,
        ),
        (lambda: lax.scatter(X, np.zeros((2, 1), np.int32), X[:1], SCATTER((1, 2), (0,), (0,))), TypeError),
        (lambda: gradix.jit(lambda n: lax.full((n,), 0))(3), TypeError),
    ],
)
def test_mistakes_raise(call, error):
    with pytest.raises(error):
        call()
