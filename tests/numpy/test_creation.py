"""New arrays: values against NumPy, dtypes and weak types, and what is refused."""

import io
import warnings

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from tests.same import assert_same

# expression, dtype, weak type, values
VALUES = [
    ("jnp.array(1)", "int32", True, 1),
    ("jnp.array(1.5)", "float32", True, 1.5),
    ("jnp.array(True)", "bool", False, True),
    ("jnp.array([1, 2.5, True])", "float32", False, [1, 2.5, 1]),
    ("jnp.array([True, 1])", "int32", False, [1, 1]),
    ("jnp.array([1, 2j])", "complex64", False, [1, 2j]),
    ("jnp.array([])", "float32", False, []),
    ("jnp.array([[], []], int)", "int32", False, np.zeros((2, 0))),
    ("jnp.array(np.float64(1))", "float32", False, 1),
    ("jnp.array(np.arange(2))", "int32", False, [0, 1]),
    ("jnp.array([np.int8(3), 2])", "int8", False, [3, 2]),
    ("jnp.array([jnp.float16(1), 2])", "float16", False, [1, 2]),
    ("jnp.array([jnp.arange(2), [1, 2]])", "int32", False, [[0, 1], [1, 2]]),
    ("jnp.array([jnp.arange(2), jnp.ones(2)])", "float32", False, [[0, 1], [1, 1]]),
    ("jnp.array(range(3))", "int32", False, [0, 1, 2]),
    ("jnp.array(1, ndmin=2)", "int32", True, [[1]]),
    ("jnp.array([1.7, -1.7], int)", "int32", False, [1, -1]),
    ("jnp.array([0.5, 0], bool)", "bool", False, [True, False]),
    ("jnp.asarray(1.0, float)", "float32", False, 1),
    ("jnp.asarray(jnp.asarray(1.0))", "float32", True, 1),
    ("jnp.asarray(memoryview(b'ab'))", "uint8", False, [97, 98]),
    ("jnp.array(2 ** 31, 'uint32')", "uint32", False, 2**31),
    ("jnp.float32(2)", "float32", False, 2),
    ("jnp.int8([1.5, 2])", "int8", False, [1, 2]),
    ("jnp.zeros((2,), int)", "int32", False, [0, 0]),
    ("jnp.ones(2)", "float32", False, [1, 1]),
    ("jnp.full((2,), 7)", "int32", True, [7, 7]),
    ("jnp.full((2, 2), jnp.array([1, 2]))", "int32", False, [[1, 2], [1, 2]]),
    ("jnp.full((2,), 7, 'float16')", "float16", False, [7, 7]),
    ("jnp.zeros_like(1.0)", "float32", True, 0),
    ("jnp.ones_like(jnp.arange(2), shape=(3,))", "int32", False, [1, 1, 1]),
    ("jnp.full_like(jnp.arange(2), 2.5)", "int32", False, [2, 2]),
    ("jnp.empty_like(jnp.ones(2, bool))", "bool", False, [False, False]),
    ("jnp.arange(3)", "int32", False, [0, 1, 2]),
    ("jnp.arange(3.5)", "float32", False, [0, 1, 2, 3]),
    ("jnp.arange(1, 7, 2)", "int32", False, [1, 3, 5]),
    ("jnp.arange(5, 0, -2)", "int32", False, [5, 3, 1]),
    ("jnp.arange(0, 1, 0.25)", "float32", False, [0, 0.25, 0.5, 0.75]),
    ("jnp.arange(3, dtype='float16')", "float16", False, [0, 1, 2]),
    ("jnp.arange(jnp.int8(3))", "int8", False, [0, 1, 2]),
    ("jnp.arange(3, 1)", "int32", False, []),
    ("jnp.linspace(0, 1, 5)", "float32", False, [0, 0.25, 0.5, 0.75, 1]),
    ("jnp.linspace(0, 1, 4, endpoint=False)", "float32", False, [0, 0.25, 0.5, 0.75]),
    ("jnp.linspace(0, -10, 4, dtype=int)", "int32", False, [0, -4, -7, -10]),
    ("jnp.linspace(0, 1, 1)", "float32", False, [0]),
    ("jnp.linspace(jnp.zeros(2), jnp.ones(2), 3, axis=-1)", "float32", False, [[0, 0.5, 1]] * 2),
    ("jnp.logspace(0, 2, 3)", "float32", False, [1, 10, 100]),
    ("jnp.geomspace(-1, -100, 3)", "float32", False, [-1, -10, -100]),
    ("jnp.eye(2, 3, 1)", "float32", False, np.eye(2, 3, 1)),
    ("jnp.identity(2, int)", "int32", False, np.eye(2)),
    ("jnp.tri(2, 3, 1)", "float32", False, np.tri(2, 3, 1)),
    ("jnp.vander(jnp.arange(3))", "int32", False, np.vander(np.arange(3))),
    ("jnp.frombuffer(b'ab', dtype='uint8')", "uint8", False, [97, 98]),
    ("jnp.fromstring('1,2', int, sep=',')", "int32", False, [1, 2]),
    ("jnp.from_dlpack(np.arange(2, dtype='int8'))", "int8", False, [0, 1]),
    ("jnp.astype(jnp.array([1.7]), int)", "int32", False, [1]),
    ("jnp.copy(jnp.asarray(1.0))", "float32", True, 1),
]


@pytest.mark.x32
@pytest.mark.parametrize(("expression", "dtype", "weak", "values"), VALUES)
def test_values_and_types(expression, dtype, weak, values):
    x = eval(expression, {"jnp": jnp, "np": np})
    assert (str(x.dtype), x.weak_type) == (dtype, weak)
    assert_same(x, values)


@pytest.mark.x32
@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("jnp.array('a')", TypeError, "cannot become an array"),
        ("jnp.array(object())", TypeError, "Give numbers, booleans"),
        ("jnp.array({1, 2})", TypeError, r"a set has no order.*sorted"),
        ("jnp.array(None)", ValueError, "None, which is not a number"),
        ("jnp.array([1, None])", ValueError, "None, which is not a number"),
        ("jnp.array([[1, 2], [3]])", ValueError, "inhomogeneous"),
        ("jnp.array(2 ** 40)", OverflowError, "too large"),
        ("jnp.array(300, 'int8')", OverflowError, "int8"),
        ("jnp.array([300], 'int8')", OverflowError, "int8"),
        ("jnp.array([1], order='F')", NotImplementedError, "order"),
        ("jnp.zeros((2.5,))", TypeError, "integer type"),
        ("jnp.zeros(-1)", TypeError, "nonnegative"),
        ("jnp.zeros_like([1])", TypeError, "list"),
        ("jnp.eye(-1)", ValueError, "negative"),
        ("jnp.arange(2j)", ValueError, "complex"),
        ("jnp.arange(jnp.arange(3))", ValueError, "scalars"),
        ("jnp.arange(0, 3, 0)", ZeroDivisionError, "division"),
        ("jnp.linspace(0, 1, -1)", ValueError, "non-negative"),
        ("jnp.tril(jnp.ones(3))", ValueError, "at least two axes"),
        ("jnp.diag(jnp.ones((2, 2, 2)))", ValueError, "a vector or a matrix"),
        ("jnp.meshgrid(jnp.ones(2), indexing='ab')", ValueError, "'xy' or 'ij'"),
        ("jnp.fromiter([1], int)", NotImplementedError, "np.fromiter"),
        ("jnp.float32()", TypeError, "x"),
    ],
)
def test_what_is_refused(expression, error, text):
    with pytest.raises(error, match=text):
        eval(expression, {"jnp": jnp, "np": np})


@pytest.mark.x32
def test_asking_for_64_bits_warns_once_it_narrows():
    with pytest.warns(UserWarning, match="float64.*truncated"):
        assert jnp.zeros(2, "float64").dtype == "float32"
    with pytest.warns(UserWarning, match="int64"):
        jnp.arange(3).astype("int64")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jnp.zeros(2, float), jnp.array(np.ones(2)), jnp.arange(3, dtype=int)
    with gradix.enable_x64():
        assert jnp.zeros(2, "float64").dtype == jnp.arange(2.0).dtype == "float64"
        assert jnp.array(1).dtype == "int64" and jnp.array([2**40]).item() == 2**40


@pytest.mark.x32
def test_nested_lists_with_traced_arrays():
    @gradix.jit
    def rows(x):
        return jnp.array([[x, 1], [2, x + 0.5]])

    assert_same(rows(3), [[3, 1], [2, 3.5]])
    assert rows(3).dtype == "float32"
    assert gradix.vmap(lambda x: jnp.array([x, 1.0]))(jnp.arange(3.0)).shape == (3, 2)
    assert gradix.grad(lambda x: jnp.array([x, x * x]).sum())(3.0).item() == 7


def test_arrays_do_not_share_memory_with_what_they_are_made_from():
    source = np.zeros(3)
    x, y = jnp.array(source), jnp.asarray(source)
    source[:] = 1
    assert not x.any() and not y.any()


def test_shapes_must_be_known_while_tracing():
    with pytest.raises(TypeError, match="static"):
        gradix.jit(lambda n: jnp.zeros(n))(3)
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="arange"):
        gradix.jit(lambda n: jnp.arange(n))(3)


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_diagonals_and_triangles(shape, k):
    x = np.arange(np.prod(shape)).reshape(shape)
    assert_same(jnp.diag(x, k), np.diag(x, k))
    assert_same(jnp.tril(x, k), np.tril(x, k))
    assert_same(jnp.triu(x, k), np.triu(x, k))
    assert_same(jnp.trace(x, k), np.trace(x, k))
    assert_same(jnp.diag(x[0], k), np.diag(x[0], k))
    for got, want in zip(jnp.tril_indices(shape[0], k, shape[1]), np.tril_indices(shape[0], k, shape[1])):
        assert_same(got, want)
    for got, want in zip(jnp.triu_indices_from(x, k), np.triu_indices_from(x, k)):
        assert_same(got, want)


def test_diagonals_of_stacks():
    x = np.arange(60).reshape(3, 4, 5)
    for offset, i, j in ((0, 0, 1), (1, 1, 2), (-1, 2, 0), (2, -1, -2)):
        assert_same(jnp.diagonal(x, offset, i, j), np.diagonal(x, offset, i, j))
    assert_same(jnp.diagflat(np.array([[1, 2]]), 1), np.diagflat([[1, 2]], 1))
    assert_same(gradix.grad(lambda v: (jnp.diag(v) * jnp.arange(4.0).reshape(2, 2)).sum())(jnp.ones(2)), [0, 3])


def test_grids():
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            for got, want in zip(
                jnp.meshgrid(np.arange(3), np.arange(2.0), sparse=sparse, indexing=indexing),
                np.meshgrid(np.arange(3), np.arange(2.0), sparse=sparse, indexing=indexing),
            ):
                assert_same(got, want)
    assert_same(jnp.indices((2, 3)), np.indices((2, 3)))
    for got, want in zip(jnp.indices((2, 3), sparse=True), np.indices((2, 3), sparse=True)):
        assert_same(got, want)
    assert_same(jnp.fromfunction(lambda i, j: i * j, (2, 3)), np.fromfunction(lambda i, j: i * j, (2, 3)))


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_windows(name, size):
    assert_same(getattr(jnp, name)(size), getattr(np, name)(size), atol=1e-6)


def test_linspace_of_steps_and_derivatives():
    x, step = jnp.linspace(0, 1, 5, endpoint=False, retstep=True)
    assert_same(step, 0.2)
    assert_same(gradix.grad(lambda end: jnp.linspace(0.0, end, 4).sum())(2.0), 2)
    assert_same(jnp.geomspace(1, 1j, 3), np.geomspace(1, 1j, 3), atol=1e-6)


# -- dtypes as scalar types ----------------------------------------------------------------------------------------


@pytest.mark.promotes
@pytest.mark.x32
def test_scalar_types_stand_for_dtypes():
    assert jnp.float32 == np.float32 and np.dtype(jnp.bfloat16) == jnp.bfloat16
    assert {np.float32: 1}[jnp.float32] == 1
    assert isinstance(np.float32(1), jnp.float32) and not isinstance(jnp.float32(1), jnp.float32)
    assert jnp.float32.dtype == np.dtype("float32") and jnp.int_ is jnp.int64
    assert jnp.zeros(2, jnp.int8).dtype == jnp.int8
    assert repr(jnp.float32) == "<class 'gradix.numpy.float32'>"
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.promote_types("int8", jnp.uint8) == "int16"
    assert jnp.result_type(jnp.ones(2, "int8"), 1.0) == "float32"
    assert jnp.can_cast(jnp.int32, jnp.int64) and not jnp.can_cast("int32", "float32")
    assert jnp.isdtype(jnp.int8, ("bool", "integral")) and jnp.isdtype("float32", jnp.float32)
    assert jnp.finfo(jnp.bfloat16).bits == 16 and jnp.iinfo("int8").max == 127
    with pytest.raises(ValueError, match="kind must be one of"):
        jnp.isdtype("int8", "whole")
    assert jnp.isscalar(2) and jnp.isscalar(jnp.float32(2)) and not jnp.isscalar([2])


def test_files():
    file = io.BytesIO()
    jnp.save(file, jnp.arange(3))
    file.seek(0)
    assert jnp.load(file).tolist() == [0, 1, 2]
    file = io.BytesIO()
    jnp.savez(file, x=jnp.ones(2))
    file.seek(0)
    with jnp.load(file) as loaded:
        assert loaded["x"].tolist() == [1, 1]


@pytest.mark.parametrize("num", [0, 1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
def test_steps_of_lines_of_vectors(num, endpoint):
    """Without a neighbour the distance is one NaN, as in NumPy."""
    ends = np.zeros(2, "float32"), np.ones(2, "float32")
    want = np.linspace(*ends, num, endpoint=endpoint, retstep=True)[1]
    got = jnp.linspace(*ends, num, endpoint=endpoint, retstep=True)[1]
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want)
