"""Indexing and x.at[...]: NumPy is the reference; then bounds, tracing and misuse."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import gradix
import gradix.numpy as jnp
from gradix.errors import NonConcreteBooleanIndexError
from tests.same import assert_same

I = slice  # noqa: E741
H = np.arange(60, dtype=np.float32).reshape(3, 4, 5) - 20
X = jnp.asarray(H)


def index_text(index):
    return repr(index).replace("slice", "")[:60]


INDICES = [
    0,
    -1,
    np.int64(2),
    I(None),
    I(1, None),
    I(None, None, -1),
    I(None, -5, 2),
    I(5, 1),
    I(-1, None, -2),
    I(2, 100),
    None,
    ...,
    (),
    (0, 1, 2),
    (..., -1),
    (None, ..., None),
    (1, None, I(1, 3)),
    (I(None), 0),
    (I(None, None, 2), I(None), I(4, 0, -3)),
    (0, ..., I(None, None, -1)),
    (I(0), ...),
    (None, I(1, 2), None, 3),
    (-1, I(None, None, -1), None, I(1, 4, 2)),
    # integer arrays
    np.array([0, 2]),
    np.array([-1, 0, 0]),
    np.array([[0, 1], [2, -3]]),
    np.zeros((0,), int),
    np.zeros((2, 0), int),
    (np.array([0, 2]), np.array([1, 3])),
    (np.array([[0], [2]]), np.array([1, 3])),
    (I(None), np.array([1, 1, 0])),
    (np.array([0, 2]), I(None), np.array([1, 3])),
    (0, np.array([1, 2])),
    (0, I(None), np.array([1, 2])),
    (np.array([1, 2]), I(None), 0),
    (I(1, 3), np.array([0, 1]), I(None, None, -1)),
    (I(None, None, 2), np.array([3, 0])),
    (I(None, None, -2), np.array([3, 0]), None),
    (None, np.array([2, 1])),
    (np.array([2, 1]), None, np.array([0, 3])),
    (..., np.array([4, 4])),
    (np.array([1]), ..., np.array([[0, 2], [4, 4]])),
    (np.uint8([1, 2]), I(0, 2)),
    ([0, 2],),
    (0, [1, 2]),
    ((0, 1), (1, 2)),
    np.array(1),
    (np.array(1), I(1, 3)),
    (I(1, 3), np.array(-1), 0),
    # masks
    H[:, 0, 0] > 0,
    H > 0,
    (I(None), np.array([True, False, True, True])),
    (0, H[0] > -18),
    (H[:, :, 0] > 0, I(1, 3)),
    (np.array([True, False, True]), np.array([1, 2])),
    True,
    False,
    (True, 0),
    (I(None), True),
    np.zeros(3, bool),
]


@pytest.mark.parametrize("index", INDICES, ids=index_text)
def test_every_kind_of_index_selects_what_numpy_selects(index):
    assert_same(X[index], H[index])
    parts = index if isinstance(index, tuple) else (index,)
    assert_same(X[tuple(jnp.asarray(p) if isinstance(p, np.ndarray) else p for p in parts)], H[index])


@pytest.mark.parametrize("index", INDICES, ids=index_text)
def test_indexing_compiles_maps_and_differentiates(index):
    weights = jnp.asarray(np.arange(1.0, 1 + H[index].size, dtype=np.float32).reshape(H[index].shape))
    assert_same(gradix.jit(lambda x: x[index])(X), H[index])
    assert_same(gradix.vmap(lambda x: x[index])(jnp.stack([X, X + 1])), np.stack([H[index], H[index] + 1]))
    slope = np.zeros_like(H)
    np.add.at(slope, index, np.asarray(weights))
    assert_same(gradix.grad(lambda x: (x[index] * weights).sum())(X), slope)


@pytest.mark.parametrize("index", INDICES, ids=index_text)
def test_updates_at_every_kind_of_index(index):
    values = np.float32(np.arange(H[index].size).reshape(H[index].shape) % 7 - 3)
    methods = {"set": None, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
    update = lambda x, v: [getattr(x.at[index], method)(v) for method in methods]
    for ufunc, found, compiled in zip(methods.values(), update(X, values), gradix.jit(update)(X, values), strict=True):
        want = H.copy()
        if ufunc is None:
            want[index] = values
        else:
            ufunc.at(want, index, values)
        assert_same(found, want)
        assert_same(compiled, want)


@st.composite
def indices(draw):
    """A shape and an index NumPy accepts for it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    common = draw(st.sampled_from([(2,), (3,), (2, 1)]))
    out = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        whole = st.none() | st.integers(-n - 1, n + 1)
        kind = draw(st.sampled_from(["int", "slice", "array", "mask", "new"]))
        if kind == "int":
            out.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            out.append(slice(draw(whole), draw(whole), draw(st.sampled_from([None, 1, 2, -1, -2]))))
        elif kind == "array":
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(common)), max_size=int(np.prod(common))))
            out.append(np.array(flat, dtype=int).reshape(common))
        elif kind == "mask" and not any(isinstance(e, np.ndarray) for e in out):
            out.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
            common = (int(out[-1].sum()),)
        else:
            out += [None, slice(None)]
    return shape, tuple(out)


@given(indices())
def test_drawn_indices_select_what_numpy_selects(case):
    shape, index = case
    h = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    assert_same(jnp.asarray(h)[index], h[index])
    assert_same(gradix.jit(lambda x: x[index])(h), h[index])
    updated = h.copy()
    updated[index] = -1
    assert_same(jnp.asarray(h).at[index].set(-1), updated)


# -- traced indices and bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", [0, 3, -1, -4, 4, 9, -9])
def test_a_traced_integer_takes_the_nearest_element(i):
    at = int(np.clip(i + 4 if i < 0 else i, 0, 3))
    h = H[0]
    x = jnp.asarray(h)
    for f in (lambda x, i: x[i], gradix.jit(lambda x, i: x[i])):
        assert_same(f(x, i), h[at])
        assert_same(f(x, jnp.asarray(i)), h[at])
    assert_same(gradix.jit(lambda x, i: x[i, 1:3, None])(x, i), h[at, 1:3, None])
    assert_same(gradix.jit(lambda x, i: x[i, ::-2])(x, i), h[at, ::-2])
    assert_same(gradix.jit(lambda x, i: x[None, i, 2])(x, i), h[None, at, 2])
    assert_same(x[jnp.array([i, 0])], h[[at, 0]])
    assert_same(gradix.jit(lambda x, i: x[i])(x, jnp.array([i, 0], jnp.int8)), h[[at, 0]])


@pytest.mark.x32
@pytest.mark.parametrize("i", [1, 7, -1, -7])
def test_modes_of_get(i):
    x, inside = jnp.arange(4.0), -4 <= i < 4
    nearest = float(np.clip(i + 4 if i < 0 else i, 0, 3))
    for index in (i, jnp.array(i), jnp.array([i])):
        shape = np.shape(index)
        assert_same(x.at[index].get(), np.full(shape, nearest))
        assert_same(x.at[index].get(mode="clip"), np.full(shape, nearest))
        assert_same(x.at[index].get(mode="fill", fill_value=-5), np.full(shape, nearest if inside else -5))
        got = np.asarray(x.at[index].get(mode="fill"))
        assert inside or np.isnan(got).all()
    assert int(jnp.arange(4).at[9].get(mode="fill")) == -(2**31)
    assert int(jnp.arange(4, dtype="uint8").at[jnp.array(9)].get(mode="fill")) == 255


@pytest.mark.parametrize("i", [7, -7])
def test_updates_out_of_bounds_are_dropped_or_clipped(i):
    x, nearest = jnp.arange(4.0), 3 if i > 0 else 0
    clipped = np.arange(4.0)
    clipped[nearest] = 9
    for index in (i, jnp.array(i), jnp.array([i])):
        for update in (lambda x, i: x.at[i].set(9.0), lambda x, i: x.at[i].set(9.0, mode="drop")):
            assert_same(update(x, index), x)
            assert_same(gradix.jit(update)(x, jnp.asarray(index)), x)
        assert_same(x.at[index].set(9.0, mode="clip"), clipped)


def test_without_wrapping_negative_indices_are_out_of_bounds():
    x = jnp.arange(4.0)
    assert_same(x.at[jnp.array([-1, 1])].get(mode="fill", fill_value=9, wrap_negative_indices=False), [9, 1])
    assert_same(x.at[-1].get(mode="fill", fill_value=9, wrap_negative_indices=False), 9)
    assert_same(x.at[jnp.array([-1])].set(9, wrap_negative_indices=False), x)


def test_repeated_indices_take_part_in_turn():
    x = jnp.ones(3)
    i = jnp.array([0, 2, 2])
    assert_same(x.at[i].add(1), [2, 1, 3])
    assert_same(x.at[i].multiply(3), [3, 1, 9])
    assert_same(x.at[i].power(2.0), [1, 1, 1])
    assert_same((2 * x).at[i].power(2.0), [4, 2, 16])
    assert_same(x.at[i].divide(2), [0.5, 1, 0.25])
    assert_same(x.at[i].subtract(1), [0, 1, -1])
    assert_same(x.at[i].apply(lambda v: v * 2), [2, 1, 4])
    assert_same(gradix.jit(lambda x: x.at[1:].apply(jnp.negative))(x), [1, -1, -1])


@pytest.mark.promotes
@pytest.mark.x32
def test_the_dtype_stays_and_weak_types_too():
    x = jnp.arange(4)
    assert x.at[1].set(True).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="cannot safely cast"):
        assert_same(x.at[1].set(2.7), [0, 2, 2, 3])
    with pytest.warns(FutureWarning):
        assert_same(x.at[1].multiply(2.5), [0, 2, 2, 3])
    assert jnp.float16(1)[None].at[0].set(2).dtype == jnp.float16
    weak = jnp.full((2,), 2.0)
    assert weak.weak_type == weak[0].weak_type == weak.at[0].set(1.0).weak_type
    assert_same(jnp.arange(3.0).at[1].divide(2), [0, 0.5, 2])
    assert jnp.arange(3).at[1].divide(2).dtype == jnp.float32
    assert_same(jnp.array([2**24 + 1, 1]).at[1].set(5), [2**24 + 1, 5])


# -- masks under tracing -------------------------------------------------------------------------------------------

MASKED = [
    ("set", 9.0),
    ("add", 2.0),
    ("subtract", 2.0),
    ("multiply", 3.0),
    ("divide", 2.0),
    ("power", 2.0),
    ("min", 0.0),
    ("max", 1.0),
]


@pytest.mark.parametrize("method,value", MASKED)
def test_updates_at_a_traced_mask(method, value):
    x = jnp.array([-2.0, 1.0, -1.0, 3.0])
    known = getattr(x.at[np.asarray(x) < 0], method)(value)
    assert_same(gradix.jit(lambda x: getattr(x.at[x < 0], method)(value))(x), known)
    assert_same(gradix.vmap(lambda x: getattr(x.at[x < 0], method)(value))(x[None]), known[None])


def test_traced_masks_of_some_axes_beside_other_indices():
    h = H[0].copy()
    x, rows, columns = jnp.asarray(h), h[:, 0] > -15, h[0] > -18
    values = np.arange(5, dtype=np.float32)

    def want(index, value):
        out = h.copy()
        out[index] = value
        return out

    def got(index):
        return gradix.jit(lambda x, m, v: x.at[index(m)].set(v))

    assert_same(got(lambda m: m)(x, rows, values), want(rows, values))
    assert_same(got(lambda m: (m, slice(1, 3)))(x, rows, 7.0), want((rows, slice(1, 3)), 7))
    assert_same(got(lambda m: (m, 0))(x, rows, 7.0), want((rows, 0), 7))
    assert_same(got(lambda m: (..., m))(x, columns, 7.0), want((..., columns), 7))
    assert_same(
        got(lambda m: (slice(None, None, -1), m))(x, columns, values[:4, None]),
        want((slice(None, None, -1), columns), values[:4, None]),
    )
    assert_same(got(lambda m: m)(x, h > -10, 7.0), want(h > -10, 7))
    assert_same(gradix.jit(lambda x, m: x.at[m].apply(jnp.negative))(x, h > -10), want(h > -10, -h[h > -10]))


def test_a_traced_mask_whose_size_would_matter_is_an_error_that_says_so():
    x = jnp.arange(10.0)
    for f in (lambda x: x.at[x > 1].set(jnp.arange(10.0)), lambda x: x.at[x > 1].add(jnp.ones((3, 2)))):
        with pytest.raises(NonConcreteBooleanIndexError, match=r"Array boolean indices must be concrete") as e:
            gradix.jit(f)(x)
        assert "ShapedArray(bool[10])" in str(e.value) and "where(mask, x" in str(e.value)
    assert_same(gradix.grad(lambda x: x[x > 4].sum())(x), np.arange(10) > 4)


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_axes_longer_than_indices_of_32_bits(dtype):
    long = gradix.ShapeDtypeStruct((2**31 + 8,), np.int8)
    text = gradix.jit(lambda x, i: x[i]).lower(long, gradix.ShapeDtypeStruct((3,), dtype)).as_text()
    assert "tensor<3xi64>" in text and "dense<2147483656>" in text  # negative indices count from the end


# -- misuse --------------------------------------------------------------------------------------------------------

WRONG = [
    (lambda x: x[0, 0, 0, 0], IndexError, r"got 4 for an array of shape \(3, 4, 5\), which has 3 axes"),
    (lambda x: x[..., ...], IndexError, "one ellipsis"),
    (lambda x: x[[0, 1]], TypeError, r"Write x\[jnp.array\(\[0, 1\]\)\]"),
    (lambda x: x[[slice(1)]], TypeError, r"Write x\[tuple\(\[slice"),
    (lambda x: x[1.0], TypeError, "integer or boolean dtype, got float64"),
    (lambda x: x[jnp.ones(2)], TypeError, "integer or boolean dtype, got float32"),
    (lambda x: x["a"], TypeError, "a string is not an index"),
    (lambda x: x[{}], IndexError, "Use integers, slices"),
    (lambda x: x[1.0:], TypeError, "of type 'float'"),
    (lambda x: x[::0], ValueError, "zero"),
    (lambda x: x[np.ones(2, bool)], IndexError, r"got shape \(2,\) for axes of shape \(3,\) from axis 0 on"),
    (
        lambda x: x[:, np.ones((5, 5), bool)],
        IndexError,
        r"got shape \(5, 5\) for axes of shape \(4, 5\) from axis 1 on",
    ),
    (lambda x: x[np.zeros((2, 3), int), np.zeros(4, int)], ValueError, "Incompatible shapes for broadcasting"),
    (lambda x: x[:0][0], IndexError, "size 0"),
    (lambda x: x[:, :0][:, jnp.int32(0)], IndexError, "out of bounds for axis 1 with size 0"),
    (lambda x: gradix.jit(lambda i: x[:, :0].at[:, i].set(1.0))(0), IndexError, "out of bounds for axis 1 with size 0"),
    (
        lambda x: jnp.take_along_axis(x[:, :0], x.astype(int)[:, :1], 1),
        IndexError,
        r"axis 1 of arr, of shape \(3, 0, 5\), has no elements",
    ),
    (lambda x: x.at[0].set("a"), TypeError, "cannot become an array"),
    (lambda x: x.at[0].set(None), ValueError, "None"),
    (lambda x: x.at[0].set(jnp.ones(3)), ValueError, "Incompatible types for broadcasting"),
    (lambda x: x.at[0, 0].set(jnp.ones((1, 5))), ValueError, "more axes than"),
    (lambda x: x.at[0].set(1, mode="wrong"), ValueError, "wrong"),
    (lambda x: x.at[np.array([7])].get(mode="wrong"), ValueError, "wrong"),
    (lambda x: gradix.jit(lambda i: x[i:])(1), IndexError, "must be static integers"),
    (lambda x: (x > 0).at[0].add(True), TypeError, "bool"),
]


@pytest.mark.x32
@pytest.mark.parametrize("f,error,text", WRONG)
def test_misuse(f, error, text):
    with pytest.raises(error, match=text):
        f(X)


def test_static_indices_make_slices_and_no_gathers():
    text = str(gradix.make_jaxpr(lambda x: (x[1:3, ::-1, 2], x[None, ..., 0], x[-1], x[::2]))(X))
    assert "gather" not in text and "dynamic_slice" not in text
    assert "gather" not in str(gradix.make_jaxpr(lambda x, i: x[i, 1:3])(X, 0))


def test_keys_are_indexed_like_other_arrays():
    keys = gradix.random.split(gradix.random.key(0), 4)
    data = np.asarray(gradix.random.key_data(keys))
    for index in (0, slice(1, 3), np.array([3, 0]), (None, 2)):
        assert_same(gradix.random.key_data(keys[index]), data[index])
