"""reduce, accumulate, reduceat, outer and at of every ufunc, over dtypes, axes, where and initial, against NumPy."""

import functools

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradix
import gradix.numpy as jnp

RNG = np.random.default_rng(0)
NUMBERS = ("add", "multiply", "subtract", "maximum", "minimum")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
TRUTHS = ("logical_and", "logical_or", "logical_xor")
FLOATS = ("logaddexp", "logaddexp2")
ALL = NUMBERS + BITS + TRUTHS + FLOATS
DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "float32", "complex64")
ONE = ("add", "multiply", "maximum", "minimum", *BITS, *TRUTHS, *FLOATS)  # associative: order is free


def takes(name: str, dtype: str) -> bool:
    kind = np.dtype(dtype).kind
    if name in FLOATS:
        return kind == "f"
    if name in BITS:
        return kind in "biu"
    if name in TRUTHS:
        return True
    return kind != "b" and (kind != "c" or name in ("add", "multiply", "subtract"))


PAIRS = [(name, dtype) for name in ALL for dtype in DTYPES if takes(name, dtype)]


def values(dtype: str, *shape) -> np.ndarray:
    h = RNG.integers(-3, 4, shape)
    if dtype == "bool":
        return h > 0
    return (h + 1j * RNG.integers(-2, 3, shape)).astype(dtype) if dtype == "complex64" else np.abs(h).astype(dtype)


def agree(got, want, name: str):
    """Equal values; NumPy's wider dtypes are ours at their canonical width."""
    want = np.asarray(want)
    assert got.shape == want.shape, name
    assert np.asarray(got).dtype.kind == want.dtype.kind or name in TRUTHS, (name, got.dtype, want.dtype)
    np.testing.assert_allclose(np.asarray(got), want.astype(np.asarray(got).dtype), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("name,dtype", PAIRS)
def test_reduce(name, dtype):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    h = values(dtype, 3, 4, 2)
    for axis in (0, 1, -1, None, (0, 2)):
        if axis in (None, (0, 2)) and name == "subtract":
            continue  # NumPy refuses more than one axis where order matters
        for keepdims in (False, True):
            agree(
                ours.reduce(jnp.asarray(h), axis=axis, keepdims=keepdims),
                numpys.reduce(h, axis=axis, keepdims=keepdims),
                name,
            )
    agree(gradix.jit(lambda x: ours.reduce(x, axis=1))(h), numpys.reduce(h, axis=1), name)


@pytest.mark.parametrize("name,dtype", [(n, d) for n, d in PAIRS if n in ONE])
def test_reduce_where_and_from(name, dtype):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    h, mask = values(dtype, 3, 4), RNG.random((3, 4)) > 0.4
    start = h.dtype.type(1)
    agree(ours.reduce(jnp.asarray(h), initial=start), numpys.reduce(h, initial=start), name)
    agree(
        ours.reduce(jnp.asarray(h), axis=1, where=mask, initial=start),
        numpys.reduce(h, axis=1, where=mask, initial=start),
        name,
    )
    if ours.identity is not None:
        neutral = ~h.dtype.type(0) if name == "bitwise_and" and dtype != "bool" else ours.identity
        agree(ours.reduce(jnp.asarray(h), where=mask), numpys.reduce(h, where=mask, initial=neutral), name)


@pytest.mark.parametrize("name,dtype", PAIRS)
def test_accumulate_and_reduceat(name, dtype):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    h = values(dtype, 5, 3)
    for axis in (0, 1, -1):
        agree(ours.accumulate(jnp.asarray(h), axis=axis), numpys.accumulate(h, axis=axis), name)
    for cuts in ([0, 2], [0, 3, 1, 4], [4, 0], [1, 1, 2]):
        agree(ours.reduceat(jnp.asarray(h), jnp.asarray(cuts)), numpys.reduceat(h, cuts), name)
    agree(ours.reduceat(jnp.asarray(h), jnp.asarray([0, 2]), axis=1), numpys.reduceat(h, [0, 2], axis=1), name)


@pytest.mark.parametrize("name,dtype", PAIRS)
def test_outer_and_at(name, dtype):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    h, k = values(dtype, 2, 3), values(dtype, 4)
    agree(ours.outer(jnp.asarray(h), jnp.asarray(k)), numpys.outer(h, k), name)
    if name in TRUTHS and dtype != "bool":
        return  # NumPy's own `at` writes booleans into numbers
    for index, shape in ((np.array([0, 3, 0]), (3,)), (np.array([1]), ()), (slice(1, 3), (2,)), (2, ())):
        v = values(dtype, *shape)
        want = k.copy()
        numpys.at(want, index, v)
        agree(ours.at(jnp.asarray(k), index, jnp.asarray(v), inplace=False), want, name)


@given(st.sampled_from(PAIRS), st.integers(0, 2), st.integers(0, 2**31), st.booleans())
def test_drawn_reductions(pair, axis, seed, where):
    name, dtype = pair
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 3, tuple(rng.integers(1, 4, 3))).astype(dtype)
    ours, numpys = getattr(jnp, name), getattr(np, name)
    options = {"where": rng.random(h.shape) > 0.5, "initial": h.dtype.type(1)} if where and name in ONE else {}
    agree(ours.reduce(jnp.asarray(h), axis=axis, **options), numpys.reduce(h, axis=axis, **options), name)
    agree(ours.accumulate(jnp.asarray(h), axis=axis), numpys.accumulate(h, axis=axis), name)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_frompyfunc_has_every_method(dtype):
    ours = jnp.frompyfunc(lambda x, y: x * 2 + y, 2, 1)
    numpys = np.frompyfunc(lambda x, y: x * 2 + y, 2, 1)
    h, k = values(dtype, 4, 3), values(dtype, 2)
    for axis in (0, 1):
        agree(ours.reduce(jnp.asarray(h), axis=axis), numpys.reduce(h, axis=axis, dtype=object).astype(dtype), "reduce")
        agree(
            ours.accumulate(jnp.asarray(h), axis=axis), numpys.accumulate(h, axis, object).astype(dtype), "accumulate"
        )
    agree(ours.outer(jnp.asarray(h), jnp.asarray(k)), numpys.outer(h, k).astype(dtype), "outer")
    assert (ours.nin, ours.nout) == (2, 1)


def test_a_number_is_true_for_its_imaginary_part_too():
    z = jnp.array([2j, 1.0])
    assert (
        jnp.all(z)
        and jnp.any(z[:1])
        and gradix.jit(jnp.all)(z)
        and jnp.logical_and.reduce(z)
        and jnp.logical_and.accumulate(z).all()
    )


def test_what_is_not_reorderable_takes_one_axis():
    assert jnp.logaddexp.reduce(jnp.zeros((2, 3, 2)), axis=(0, -1), keepdims=True).shape == (1, 3, 1)
    with pytest.raises(NotImplementedError, match=r"subtract.*not reorderable.*axis=\(0, 1\)"):
        jnp.subtract.reduce(jnp.ones((2, 2)), axis=(0, 1))


@pytest.mark.x32
@pytest.mark.filterwarnings("ignore:.*cannot safely cast:FutureWarning")
@pytest.mark.parametrize(
    "name, kept",
    [
        ("add", True),
        ("subtract", True),
        ("multiply", True),
        ("maximum", False),
        ("minimum", False),
        ("logaddexp", False),
        ("logical_and", False),
    ],
)
def test_at_keeps_the_dtype_of_sums_and_gives_that_of_the_results_of_others(name, kept):
    x = jnp.array([1, 2, 3])
    ours = getattr(jnp, name)
    found = ours.at(x, jnp.array([0, 2, 2]), 1.5, inplace=False)
    wide = getattr(np, name)
    expected = np.array([1, 2, 3], wide(np.ones(1, "float32"), np.ones(1, "float32")).dtype)
    wide.at(expected, [0, 2, 2], 1.5)
    assert found.dtype == (x.dtype if kept else expected.dtype)
    np.testing.assert_allclose(found, np.trunc(expected).astype("int32") if kept else expected, rtol=1e-6)
    assert ours.at(x, jnp.array([0, 1]), jnp.array([1.5, 4.0]), inplace=False).dtype == found.dtype


@pytest.mark.x32
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float32"])
@pytest.mark.parametrize("name", FLOATS)
def test_identities_that_a_dtype_has_not(name, dtype):
    ours, wide = getattr(jnp, name), getattr(np, name)
    for x in (np.array([1, 0, 1, 1, 0], dtype), np.array([[1, 1, 3], [0, 1, 5]], dtype), np.zeros((0, 2), dtype)):
        for options in ({}, {"initial": -1.5}, {"where": x > 0, "initial": 0.25}):
            expected = wide.reduce(x.astype("float64"), **options)
            reduce = functools.partial(ours.reduce, **options)
            for found in (reduce(jnp.asarray(x)), gradix.jit(reduce)(x)):
                assert found.dtype == "float32"
                np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert ours.accumulate(jnp.asarray(x)).dtype == "float32"


@pytest.mark.parametrize("name", ["negative", "square", "cos"])
def test_elements_named_several_times_are_changed_as_many_times(name):
    ours, numpys = getattr(jnp, name, None), getattr(np, name)
    ours = ours if hasattr(ours, "at") else jnp.frompyfunc(ours, 1, 1)
    a = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    for index in ([1, 1], [[0, 0], [2, 0]], [True, False, True], [2]):
        want, index = a.copy(), np.asarray(index)
        numpys.at(want, index)
        for call in (ours.at, gradix.jit(ours.at, static_argnames="inplace")):
            if index.dtype != bool or call == ours.at:
                np.testing.assert_allclose(call(a, index, inplace=False), want, rtol=1e-6)
    slope = gradix.grad(lambda a: jnp.negative.at(a, jnp.array([0, 0, 1]), inplace=False).sum())
    np.testing.assert_array_equal(slope(a[0]), [1, -1])


@pytest.mark.parametrize("name", ["add", "multiply", "logical_and", "maximum"])
def test_updates_of_booleans_are_those_of_numpy(name):
    x, index, v = np.array([True, False, True]), np.array([0, 1, 1]), np.array([False, True, False])
    want = x.copy()
    getattr(np, name).at(want, index, v)
    update = lambda x: getattr(jnp, name).at(x, index, v, inplace=False)
    for f in (update, gradix.jit(update)):
        agree(f(jnp.asarray(x)), want, name)
