"""Indices of every integer type into axes that the type cannot count: the place is the one that int64 indices name."""

import math

import ml_dtypes
import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax, nn, ops
from gradix.experimental import sparse

DTYPES = [
    np.dtype(t)
    for t in (ml_dtypes.int4, ml_dtypes.uint4, "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
]
SIZES = [1, 5, 100, 128, 200, 256, 300, 40_000, 70_000]
MAPPED = (5, 100, 300)
BLOCK = 3
CANDIDATES = (
    0,
    1,
    3,
    7,
    -1,
    -3,
    -8,
    42,
    100,
    127,
    -100,
    -128,
    128,
    200,
    255,
    297,
    299,
    32767,
    -32768,
    39_999,
    65_535,
    69_999,
)


@pytest.fixture(autouse=True)
def wide_types():
    with gradix.enable_x64():
        yield


def values(dtype, n):
    """Indices of the dtype around all bounds: of the type, of the axis, and of narrower types."""
    info = ml_dtypes.iinfo(dtype)
    some = {*CANDIDATES, int(info.min), int(info.max), n - 1, n, n + 1, -n, -n - 1, n - BLOCK, n // 2}
    return sorted(i for i in some if info.min <= i <= info.max)


def operand(n):
    return np.arange(1, n + 1, dtype=np.float32)


# -- one index: compiled blocks and elements -------------------------------------------------------


def by_one(x, i):
    """Every operation at one place."""
    x = jnp.asarray(x)
    n, m = x.shape[0], min(BLOCK, x.shape[0])
    new = jnp.full(m, -1, x.dtype)
    rows = jnp.reshape(x, (1, n, 1))
    return {
        "dynamic_slice": lax.dynamic_slice(x, (i,), (m,)),
        "dynamic_slice beside constants": lax.dynamic_slice(rows, (0, i, 0), (1, m, 1))[0, :, 0],
        "dynamic_slice not from the end": lax.dynamic_slice(x, (i,), (m,), allow_negative_indices=False),
        "dynamic_slice_in_dim": lax.dynamic_slice_in_dim(x, i, m),
        "dynamic_index_in_dim": lax.dynamic_index_in_dim(x, i, keepdims=False),
        "dynamic_update_slice": lax.dynamic_update_slice(x, new, (i,)),
        "dynamic_update_slice not from the end": lax.dynamic_update_slice(x, new, (i,), allow_negative_indices=False),
        "dynamic_update_slice_in_dim": lax.dynamic_update_slice_in_dim(rows, new[None, :, None], i, 1)[0, :, 0],
        "dynamic_update_index_in_dim": lax.dynamic_update_index_in_dim(x, new[0], i, 0),
        "x[i]": x[i],
        "rows[0, i, 0]": rows[0, i, 0],
        "get fill": x.at[i].get(mode="fill", fill_value=-5),
        "get clip": x.at[i].get(mode="clip"),
        "set": x.at[i].set(-1),
        "add": x.at[i].add(1),
        "multiply": x.at[i].multiply(3),
        "set clip": x.at[i].set(-1, mode="clip"),
        "set drop": x.at[i].set(-1, mode="drop"),
    }


def by_one_in_numpy(x, i):
    n, m = len(x), min(BLOCK, len(x))
    end = i + n if i < 0 else i
    inside, block, first = (min(max(k, 0), top) for k, top in ((end, n - 1), (end, n - m), (i, n - m)))

    def changed(at, function):
        y = x.copy()
        y[at] = function(y[at])
        return y

    gone = slice(0, 0) if end != inside else end
    return {
        "dynamic_slice": x[block : block + m],
        "dynamic_slice beside constants": x[block : block + m],
        "dynamic_slice not from the end": x[first : first + m],
        "dynamic_slice_in_dim": x[block : block + m],
        "dynamic_index_in_dim": x[inside],
        "dynamic_update_slice": changed(slice(block, block + m), lambda _: -1),
        "dynamic_update_slice not from the end": changed(slice(first, first + m), lambda _: -1),
        "dynamic_update_slice_in_dim": changed(slice(block, block + m), lambda _: -1),
        "dynamic_update_index_in_dim": changed(inside, lambda _: -1),
        "x[i]": x[inside],
        "rows[0, i, 0]": x[inside],
        "get fill": x[end] if end == inside else np.float32(-5),
        "get clip": x[inside],
        "set": changed(gone, lambda _: -1),
        "add": changed(gone, lambda v: v + 1),
        "multiply": changed(gone, lambda v: v * 3),
        "set clip": changed(inside, lambda _: -1),
        "set drop": changed(gone, lambda _: -1),
    }


def check(found, wanted, where):
    assert found.keys() == wanted.keys()
    wrong = [
        f"{k}: {np.asarray(found[k])} instead of {v}" for k, v in wanted.items() if not np.array_equal(found[k], v)
    ]
    assert not wrong, f"{where}: " + "; ".join(wrong)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_index_eager_compiled_and_mapped(dtype, n):
    x, places = operand(n), values(dtype, n)
    compiled, wanted = gradix.jit(by_one), [by_one_in_numpy(x, i) for i in places]
    for i, want in zip(places, wanted):
        check(by_one(x, jnp.asarray(i, dtype)), want, f"eager at {i}")
        check(compiled(x, np.asarray(i, dtype)), want, f"compiled at {i}")
    if n not in MAPPED:
        return
    for name, mapped in (
        ("mapped", gradix.vmap(by_one, (None, 0))),
        ("mapped and compiled", gradix.jit(gradix.vmap(by_one, (None, 0)))),
    ):
        found = mapped(x, np.asarray(places, dtype))
        for k, want in enumerate(wanted):
            check({name: v[k] for name, v in found.items()}, want, f"{name} at {places[k]}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_at_one_index(dtype, n):
    """The derivative of all results together, each with a weight of its own, against the one with an int64 index."""
    x = operand(n)

    @gradix.grad
    def slope(x, i):
        return sum([k * jnp.sum(v * v) for k, v in enumerate(by_one(x, i).values(), 1)])

    compiled, wanted = gradix.jit(slope), gradix.jit(slope)
    for i in values(dtype, n)[:: 1 if n < 1000 else 3]:
        want = wanted(x, np.int64(min(i, 2**63 - 1)))
        assert np.array_equal(slope(x, jnp.asarray(i, dtype)), want), f"eager at {i}"
        assert np.array_equal(compiled(x, np.asarray(i, dtype)), want), f"compiled at {i}"


# -- vectors of indices: gathers and scatters in every mode ----------------------------------------

ROWS = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
PARTS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
ONTO = lax.ScatterDimensionNumbers((), (0,), (0,))
ONTO_PARTS = lax.ScatterDimensionNumbers((1,), (), (0,))


def by_many(x, i):
    """Every operation at many places."""
    x, i = jnp.asarray(x), jnp.asarray(i)
    n, m = x.shape[0], min(BLOCK, x.shape[0])
    at, numbers = i[:, None], jnp.arange(1, i.size + 1, dtype=x.dtype)
    parts = jnp.broadcast_to(numbers[:, None], (i.size, m))
    return {
        **{f"gather {mode}": lax.gather(x, at, ROWS, (1,), mode=mode) for mode in ("clip", "promise_in_bounds")},
        "gather fill": lax.gather(x, at, ROWS, (1,), mode="fill", fill_value=-5),
        "gather parts clip": lax.gather(x, at, PARTS, (m,), mode="clip"),
        "gather parts fill": lax.gather(x, at, PARTS, (m,), mode="fill", fill_value=-5),
        "index_take": lax.index_take(x, (i,), (0,)),
        **{f"scatter_add {mode}": lax.scatter_add(x, at, numbers, ONTO, mode=mode) for mode in ("clip", "drop")},
        "scatter_max parts clip": lax.scatter_max(x, at, parts, ONTO_PARTS, mode="clip"),
        "scatter_max parts drop": lax.scatter_max(x, at, parts, ONTO_PARTS, mode="drop"),
        "x[i]": x[i],
        "x[i, 0]": jnp.reshape(x, (n, 1))[i, 0],
        "x[::-1][i]": x[::-1][i],
        "take": jnp.take(x, i, fill_value=-5),
        "take clip": jnp.take(x, i, mode="clip"),
        "take wrap": jnp.take(x, i, mode="wrap"),
        "take_along_axis": jnp.take_along_axis(x, i, 0, fill_value=-5),
        "take_along_axis clip": jnp.take_along_axis(x, i, 0, mode="clip"),
        "add": x.at[i].add(1),
        "max": x.at[i].max(numbers),
        "put": jnp.put(x, i, 0, inplace=False),
        "put wrap": jnp.put(x, i, 0, mode="wrap", inplace=False),
        "put_along_axis": jnp.put_along_axis(x, i, 0, 0, inplace=False),
        "segment_sum": ops.segment_sum(numbers, i, n),
        "segment_sum of buckets": ops.segment_sum(numbers, i, n, bucket_size=2),
        "choose clip": jnp.choose(i, [0, 1, 2], mode="clip"),
        "choose wrap": jnp.choose(i, list(range(300)), mode="wrap"),
        "ravel_multi_index clip": jnp.ravel_multi_index((i, i), (n, 3), mode="clip"),
        "ravel_multi_index wrap": jnp.ravel_multi_index((i, i), (n, 3), mode="wrap"),
        "bincount": jnp.bincount(jnp.maximum(i, 0), length=n),
    }


def by_many_in_numpy(x, i):
    n, m = len(x), min(BLOCK, len(x))
    end = np.where(i < 0, i + n, i)
    numbers = np.arange(1, len(i) + 1, dtype=x.dtype)
    first, inside, corner = np.clip(i, 0, n - 1), np.clip(end, 0, n - 1), np.clip(i, 0, n - m)
    raw, wrapped = i == first, end == inside
    window = np.arange(m)

    def scattered(ufunc, at, values, keep=slice(None)):
        y = x.copy()
        ufunc.at(y, at[keep], values[keep] if np.ndim(values) else values)
        return y

    def with_zeros(at, keep=slice(None)):
        y = x.copy()
        y[at[keep]] = 0
        return y

    sums = np.zeros(n, x.dtype)
    np.add.at(sums, i[raw], numbers[raw])
    parts = np.broadcast_to(numbers[:, None], (len(i), m))
    return {
        "gather clip": x[first],
        "gather promise_in_bounds": x[first],
        "gather fill": np.where(raw, x[first], -5),
        "gather parts clip": x[corner[:, None] + window],
        "gather parts fill": np.where((i == corner)[:, None], x[corner[:, None] + window], -5),
        "index_take": x[i % n],
        "scatter_add clip": scattered(np.add, first, numbers),
        "scatter_add drop": scattered(np.add, i, numbers, raw),
        "scatter_max parts clip": scattered(np.maximum, corner[:, None] + window, parts),
        "scatter_max parts drop": scattered(np.maximum, i[:, None] + window, parts, i == corner),
        "x[i]": x[inside],
        "x[i, 0]": x[inside],
        "x[::-1][i]": x[::-1][inside],
        "take": np.where(wrapped, x[inside], -5),
        "take clip": x[first],
        "take wrap": x[i % n],
        "take_along_axis": np.where(wrapped, x[inside], -5),
        "take_along_axis clip": x[inside],
        "add": scattered(np.add, end, 1, wrapped),
        "max": scattered(np.maximum, end, numbers, wrapped),
        "put": with_zeros(inside),
        "put wrap": with_zeros(i % n),
        "put_along_axis": with_zeros(end, wrapped),
        "segment_sum": sums,
        "segment_sum of buckets": sums,
        "choose clip": np.clip(i, 0, 2),
        "choose wrap": i % 300,
        "ravel_multi_index clip": np.ravel_multi_index((i, i), (n, 3), mode="clip"),
        "ravel_multi_index wrap": np.ravel_multi_index((i, i), (n, 3), mode="wrap"),
        "bincount": np.bincount(np.maximum(i, 0)[np.maximum(i, 0) < n], minlength=n),
    }


def as_int64(i, n):
    """The indices as int64: an uint64 that it does not hold becomes a large number of the same remainders."""
    period = math.lcm(n, 300)
    return np.array([int(k) if k < 2**63 else int(k) % period + 2**62 // period * period for k in i.tolist()], np.int64)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_many_indices_eager_compiled_and_mapped(dtype, n):
    x = operand(n)
    places = np.asarray(values(dtype, n), dtype)
    want = by_many_in_numpy(x, as_int64(places, n))
    check(by_many(x, jnp.asarray(places)), want, "eager")
    if n in MAPPED:
        pair = np.stack([places, places[::-1]])
        back = by_many_in_numpy(x, as_int64(places[::-1], n))
        found = gradix.jit(gradix.vmap(by_many, (None, 0)))(x, pair)
        for k, wanted in enumerate((want, back)):
            check({name: v[k] for name, v in found.items()}, wanted, f"mapped, {k}")
    else:
        check(gradix.jit(by_many)(x, places), want, "compiled")


# -- functions that compute with indices -----------------------------------------------------------


def some(dtype, *numbers):
    return np.array([k for k in numbers if np.iinfo(dtype).min <= k <= np.iinfo(dtype).max], dtype)


def sparse_arrays(i):
    """What a matrix of 300 rows with elements at (i, i) gives."""
    at, x = jnp.stack([i, i], 1), jnp.arange(300.0)
    m = sparse.BCOO((jnp.ones(i.shape), at), shape=(300, 300))
    column = sparse.COO((jnp.ones(i.shape), i, i), shape=(300, 300))
    return (
        m.todense(),
        m @ x,
        gradix.vmap(lambda k: m @ (k * x))(jnp.arange(2.0)),
        m.sum_duplicates(nse=150).todense(),
        sparse.bcoo_reshape(m, new_sizes=(90_000,)).todense(),
        sparse.bcoo_concatenate([m, m], dimension=0).todense(),
        (m @ m).todense(),
        m[5:270, 3:299].todense(),
        column @ x,
        column.todense(),
    )


COMPUTED = {
    "one_hot": (lambda i: nn.one_hot(i, 300), lambda t: some(t, 0, 44, 100, -1, 200, 255)),
    "repeat": (
        lambda i: jnp.repeat(jnp.arange(5.0), i, total_repeat_length=600),
        lambda t: some(t, 100, 100, 50, 100, 100),
    ),
    "roll": (lambda i: jnp.roll(jnp.arange(300), i), lambda t: t.type(100)),
    "roll back": (lambda i: jnp.roll(jnp.arange(300).reshape(10, 30), (i, i), (0, 1)), lambda t: some(t, -100, 101)[0]),
    "roll thrice": (lambda i: jnp.roll(jnp.arange(300), i, (0, 0, 0)), lambda t: some(t, 100, 100, 100)),
    "unravel_index": (lambda i: jnp.stack(jnp.unravel_index(i, (300, 3))), lambda t: some(t, 1, 100, 127, -5, 200)),
    "unravel_index of rows": (
        lambda i: jnp.stack(jnp.unravel_index(i, (3, 1000))),
        lambda t: some(t, 1, 100, 127, -5, 200),
    ),
    "bincount": (lambda i: jnp.bincount(i, length=300), lambda t: some(t, 1, 100, 100, 127, 200)),
    "insert": (lambda i: jnp.insert(jnp.arange(300), i, -1), lambda t: some(t, 100, 127, 200)),
    "delete": (lambda i: jnp.delete(jnp.arange(300), i, assume_unique_indices=True), lambda t: some(t, 100, 120, -3)),
    "delete one": (lambda i: jnp.delete(jnp.arange(300), i), lambda t: some(t, -100, 100)[0]),
    "searchsorted": (
        lambda i: jnp.searchsorted(i, i[::5000] + i[1]),
        lambda t: np.repeat(np.arange(100), 400).astype(t),
    ),
    "argsort": (jnp.argsort, lambda t: np.tile(np.arange(100), 400).astype(t)),
    "segment_sum": (
        lambda i: ops.segment_sum(jnp.ones(40_000), i, 300, bucket_size=7),
        lambda t: np.tile(np.arange(100), 400).astype(t),
    ),
    "ragged_dot": (
        lambda i: lax.ragged_dot(jnp.arange(1200.0).reshape(400, 3), jnp.arange(45.0).reshape(5, 3, 3), i),
        lambda t: some(t, 100, 100, 20, 100, 80),
    ),
    "dot_product_attention": (
        lambda i: nn.dot_product_attention(
            *[jnp.ones((1, 300, 1, 4))] * 2,
            jnp.arange(1200.0).reshape(1, 300, 1, 4),
            query_seq_lengths=i,
            key_value_seq_lengths=i,
        ),
        lambda t: some(t, 100),
    ),
    "switch": (
        lambda i: lax.switch(i, [lambda k=k: jnp.int32(k) for k in range(130)]),
        lambda t: some(t, 100, 200)[-1],
    ),
    "switch before the first": (
        lambda i: lax.switch(i, [lambda k=k: jnp.int32(k) for k in range(130)]),
        lambda t: some(t, 7, -100)[-1],
    ),
    "scan": (lambda i: lax.scan(lambda c, k: (c + jnp.arange(300)[k], k), 0, i)[0], lambda t: np.arange(100).astype(t)),
    "sparse": (sparse_arrays, lambda t: np.arange(3, 100).astype(t)),
}


@pytest.mark.parametrize(
    "dtype",
    [np.dtype("int8"), *[pytest.param(np.dtype(t), marks=pytest.mark.slow) for t in ("uint8", "int16")]],
    ids=str,
)
def test_functions_that_compute_with_indices(dtype):
    """They give what they give for the same indices as int64."""
    places = {name: np.asarray(make(dtype)) for name, (_, make) in COMPUTED.items()}

    def all_of(places):
        return {name: function(places[name]) for name, (function, _) in COMPUTED.items()}

    want = gradix.jit(all_of)({name: i.astype("int64") for name, i in places.items()})
    for way, found in (
        ("eager", all_of({name: jnp.asarray(i) for name, i in places.items()})),
        ("compiled", gradix.jit(all_of)(places)),
    ):
        for name in COMPUTED:
            for a, b in zip(gradix.tree.leaves(found[name]), gradix.tree.leaves(want[name]), strict=True):
                np.testing.assert_allclose(a, b, 1e-6, err_msg=f"{name}, {way}")


def test_integers_that_no_index_type_holds_are_out_of_bounds_and_warn_of_nothing():
    x = jnp.arange(5.0)
    for i in (2**31 - 1, 2**31, 2**40, -(2**31), -(2**40)):
        assert np.array_equal(x.at[i].set(9), x) and np.array_equal(x.at[jnp.int64(i)].set(9), x)
        assert np.isnan(x.at[i].get(mode="fill")) and np.isnan(gradix.jit(lambda x, i=i: x.at[i].get(mode="fill"))(x))
        assert np.array_equal(gradix.jit(lambda x, i: x.at[i].set(9))(x, np.int64(i)), x)
