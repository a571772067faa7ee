"""Arrays as Python objects: operators, methods, conversions, printing, iteration, exchange with NumPy."""

import copy
import ctypes
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

X = jnp.arange(6.0).reshape(2, 3)


# -- operators -----------------------------------------------------------------------------------------------------

OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="]
BITS = ["&", "|", "^", "<<", ">>"]


@pytest.mark.parametrize("other", ["2", "2.5", "np.float32(2)", "np.arange(1, 4)", "np.ones((2, 1), np.float32)"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_with_what_is_no_array_of_ours(operator, other):
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for text in (f"x {operator} {other}", f"{other} {operator} x"):
        got = eval(text, {"x": jnp.asarray(x), "np": np})
        assert isinstance(got, gradix.Array), text
        np.testing.assert_allclose(got, eval(text, {"x": x, "np": np}), rtol=1e-6)


@pytest.mark.parametrize("operator", BITS)
def test_bit_operators(operator):
    x = np.array([1, -6, 7], np.int32)
    for text in (f"x {operator} 2", f"5 {operator} abs(x)", f"x {operator} abs(x)"):
        np.testing.assert_array_equal(eval(text, {"x": jnp.asarray(x)}), eval(text, {"x": x}))
    assert ((jnp.array([True, False]) | True) & jnp.array([True, False])).tolist() == [True, False]


def test_unary_operators_and_the_matrix_product():
    assert (-X).tolist() == (0 - X).tolist() and (+X) is X and abs(-X).tolist() == X.tolist()
    assert (~jnp.array([True, False])).tolist() == [False, True]
    np.testing.assert_array_equal(X @ np.ones((3, 2)), np.asarray(X) @ np.ones((3, 2)))
    assert divmod(7, jnp.array([2, 4]))[1].tolist() == [1, 3]


@pytest.mark.promotes
def test_foreign_operands_get_their_chance():
    class Foreign:
        def __radd__(self, other):
            return "radd"

        def __rmatmul__(self, other):
            return "rmatmul"

        def __eq__(self, other):
            return "eq"

    assert X + Foreign() == "radd" and X @ Foreign() == "rmatmul" and (Foreign() == X) == "eq"
    assert (X == None) is False and (X != None) is True  # noqa: E711

    class Wrapper:
        def __jax_array__(self):
            return jnp.ones(3)

    assert (X + Wrapper()).tolist() == (X + 1).tolist() and jnp.sum(Wrapper()).item() == 3


def test_arrays_are_not_changed_in_place():
    x = y = jnp.arange(3)
    x += 1
    assert y.tolist() == [0, 1, 2] and x.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match=r"x\.at\[0\]\.set"):
        y[0] = 5
    with pytest.raises((ValueError, TypeError)):
        np.asarray(y)[0] = 5


# -- conversions to Python -----------------------------------------------------------------------------------------


@pytest.mark.x32
def test_scalars_convert():
    assert float(jnp.asarray(1)) == 1.0 and int(jnp.asarray(1.7)) == 1 and complex(jnp.asarray(2j)) == 2j
    assert [4, 5, 6][jnp.asarray(1)] == 5 and list(range(jnp.int8(2))) == [0, 1]
    assert bool(jnp.ones((1, 1))) is True and not jnp.asarray(0.0)
    assert jnp.ones((1, 1)).item() == 1.0 and X.item(1, 2) == 5.0 and X.item(3) == 3.0
    assert jnp.bfloat16(1.5).item() == 1.5 and type(jnp.bfloat16(1.5).item()) is float
    assert X.tolist() == [[0, 1, 2], [3, 4, 5]] and jnp.ones(1).tobytes() == b"\x00\x00\x80?"
    assert jnp.array([1.5], "bfloat16").tolist() == [1.5]


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("bool(jnp.ones(2))", ValueError, "ambiguous"),
        ("bool(jnp.ones(0))", ValueError, "empty array"),
        ("int(jnp.ones(1))", TypeError, "Only scalar arrays"),
        ("float(jnp.asarray(1j))", TypeError, "complex"),
        ("[1, 2][jnp.asarray(1.0)]", TypeError, "integer scalar"),
        ("jnp.ones(2).item()", ValueError, "size 1"),
        ("hash(jnp.ones(2))", TypeError, "unhashable"),
        ("len(jnp.asarray(1))", TypeError, "unsized"),
        ("iter(jnp.asarray(1))", TypeError, "no axis to iterate over"),
        ("jnp.ones(2).flat", NotImplementedError, "flatten"),
        ("jnp.ones(2).mT", ValueError, "at least two axes"),
        ("format(jnp.ones(2), '.2f')", TypeError, "format"),
        ("jnp.ones(3, 'int8').view('int16')", ValueError, "does not divide"),
        ("jnp.ones((2, 2)) in jnp.ones((2, 2))", ValueError, "one element"),
    ],
)
def test_what_is_refused(expression, error, text):
    with pytest.raises(error, match=text):
        eval(expression, {"jnp": jnp})


def test_traced_arrays_say_what_to_do():
    for function, error in (
        (lambda x: bool(x), gradix.errors.TracerBoolConversionError),
        (lambda x: [1, 2][x], gradix.errors.TracerIntegerConversionError),
        (lambda x: np.asarray(x), gradix.errors.TracerArrayConversionError),
        (lambda x: float(x), gradix.errors.ConcretizationTypeError),
        (lambda x: x.item(), gradix.errors.ConcretizationTypeError),
    ):
        with pytest.raises(error):
            gradix.jit(function)(1)


# -- printing ------------------------------------------------------------------------------------------------------


@pytest.mark.x32
@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("jnp.asarray(1)", "Array(1, dtype=int32, weak_type=True)"),
        ("jnp.float32(2.5)", "Array(2.5, dtype=float32)"),
        ("jnp.ones((2, 3))", "Array([[1., 1., 1.],\n       [1., 1., 1.]], dtype=float32)"),
        ("jnp.array([True])", "Array([ True], dtype=bool)"),
        ("jnp.zeros((0, 3))", "Array([], shape=(0, 3), dtype=float32)"),
        ("jnp.ones(2, 'bfloat16')", "Array([1, 1], dtype=bfloat16)"),
        ("jnp.array([1 + 2j])", "Array([1.+2.j], dtype=complex64)"),
        ("jnp.arange(2000)", "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
        ("jnp.full(3, 1.0)", "Array([1., 1., 1.], dtype=float32, weak_type=True)"),
    ],
)
def test_repr(expression, text):
    assert repr(eval(expression, {"jnp": jnp})) == text


def test_str_and_format():
    assert str(jnp.ones(2)) == f"{jnp.ones(2)}" == "[1. 1.]"
    assert f"{jnp.float32(1.5):.3f}" == "1.500" and f"{jnp.int32(3):4d}" == "   3"
    with jnp.printoptions(precision=2):
        assert str(jnp.array([1.23456])) == "[1.23]"
    assert jnp.array_repr(jnp.arange(2)) == repr(jnp.arange(2)) and jnp.array_str(jnp.arange(2)) == "[0 1]"


# -- containers ----------------------------------------------------------------------------------------------------


def test_iteration():
    assert [row.tolist() for row in X] == X.tolist() and len(X) == 2
    a, b = jnp.asarray([1, 2])
    assert isinstance(a, gradix.Array) and (a, b) == (1, 2)
    assert 3 in jnp.arange(5) and 7 not in jnp.arange(5)
    assert [float(v) for v in gradix.jit(lambda x: list(x))(jnp.arange(3.0))] == [0, 1, 2]


@pytest.mark.x32
def test_rounding():
    assert round(jnp.float32(2.5)).dtype == "int32" and round(jnp.array([1.26]), 1).tolist() == [np.float32(1.3)]


@pytest.mark.x32
def test_copies_and_pickles():
    x = jnp.asarray(1.5)
    for y in (copy.copy(x), copy.deepcopy([x])[0], pickle.loads(pickle.dumps(x))):
        assert y.item() == 1.5 and y.weak_type and y.dtype == "float32"
    bf = pickle.loads(pickle.dumps(jnp.ones(2, "bfloat16")))
    assert bf.dtype == "bfloat16" and bf.tolist() == [1, 1]
    assert pickle.loads(pickle.dumps(jnp.add)) is jnp.add and pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin


# -- methods -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "sum()",
        "sum(axis=1, keepdims=True)",
        "prod(1)",
        "mean()",
        "mean(0)",
        "std(1)",
        "var(ddof=1)",
        "max(0)",
        "min()",
        "argmax(1)",
        "argmin()",
        "any()",
        "all(1)",
        "cumsum()",
        "cumprod(axis=1)",
        "round(1)",
        "clip(1, 3)",
        "conj()",
        "copy()",
        "diagonal()",
        "trace()",
        "reshape(3, 2)",
        "reshape((3, -1))",
        "reshape(-1)",
        "transpose()",
        "transpose(1, 0)",
        "transpose((1, 0))",
        "T",
        "mT",
        "flatten()",
        "ravel()",
        "squeeze()",
        "swapaxes(0, 1)",
        "repeat(2, 1)",
        "take(1)",
        "argsort(0)",
        "dot(2.0)",
        "astype('int32')",
        "real",
        "imag",
        "nbytes",
        "itemsize",
        "size",
        "ndim",
        "shape",
        "nonzero()[0]",
        "searchsorted",
    ],
)
def test_methods_equal_numpys(call):
    x = np.asarray(X)
    if call == "searchsorted":
        got, want = X[0].searchsorted(jnp.array([0.5])), x[0].searchsorted([0.5])
    else:
        env = {"np": np}
        want = eval(f"x.{call}" if call != "mT" else "x.T", {**env, "x": x})
        got = eval(f"x.{call}", {**env, "x": X})
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_methods_numpy_has_no_more():
    assert X.ptp().item() == 5 and X.sort(1, descending=True)[0].tolist() == [2, 1, 0]
    assert jnp.array([3, 0]).choose([jnp.array([1, 2]), jnp.array([3, 4])], mode="clip").tolist() == [3, 2]
    assert X.compress(jnp.array([False, True]), axis=0).tolist() == [[3, 4, 5]]


def test_methods_take_the_documented_arguments():
    for name, wanted in {
        "sum": "axis dtype out keepdims initial where promote_integers",
        "mean": "axis dtype out keepdims where",
        "std": "axis dtype out ddof keepdims where correction",
        "max": "axis out keepdims initial where",
        "astype": "dtype copy device",
        "argmax": "axis out keepdims",
        "clip": "min max",
        "round": "decimals out",
        "view": "dtype type",
        "sort": "axis kind order stable descending",
        "cumsum": "axis dtype out",
        "take": "indices axis out mode unique_indices indices_are_sorted fill_value",
    }.items():
        assert list(inspect.signature(getattr(X, name)).parameters) == wanted.split(), name


def test_views_of_bytes():
    x = np.array([[1.5, -2.0], [0.0, 3.0]], np.float32)
    for dtype in ("int32", "int8", "uint16", "complex64"):
        np.testing.assert_array_equal(jnp.asarray(x).view(dtype), x.view(dtype))
    z = x.view("complex64")
    for dtype in ("float32", "int16"):
        np.testing.assert_array_equal(jnp.asarray(z).view(dtype), z.view(dtype))
    octets = np.arange(8, dtype=np.uint8).reshape(2, 4)
    for dtype in ("int32", "float16", "bool"):
        want = octets.view(dtype) if dtype != "bool" else octets != 0
        np.testing.assert_array_equal(jnp.asarray(octets).view(dtype), want)
    np.testing.assert_array_equal(jnp.asarray(x).byteswap(), x.byteswap())
    np.testing.assert_array_equal(gradix.jit(lambda v: v.view("int32"))(x), x.view("int32"))


# -- exchange ------------------------------------------------------------------------------------------------------


@pytest.mark.x32
def test_numpy_sees_the_values():
    x = jnp.arange(3)
    assert np.asarray(x).dtype == np.int32 and np.asarray(x, dtype="int8").dtype == np.int8
    assert np.array(x, copy=True).flags.writeable
    assert np.sin(jnp.ones(2)).dtype == np.float32 and isinstance(np.add(x, 1), np.ndarray)
    assert np.from_dlpack(x).tolist() == [0, 1, 2] and x.__dlpack_device__() == (1, 0)
    assert x.__array_namespace__() is jnp
    np.testing.assert_array_equal(np.stack([x, x]), [[0, 1, 2]] * 2)


def test_memory_is_given_up():
    x = jnp.arange(3) + 1
    assert x.is_ready() and not x.is_deleted() and x.block_until_ready() is x
    x.delete()
    assert x.is_deleted()


def test_the_face_holds_functions_not_modules():
    assert all(callable(getattr(jnp, name)) for name in ("sin", "linspace", "where", "sort", "matmul", "floating"))


@pytest.mark.x32
def test_clones_and_where_arrays_lie():
    x = jnp.arange(3.0)
    for array in (x, gradix.jit(lambda a: a + 1)(x)):
        want, clone = np.asarray(array).copy(), array.clone()
        address = ctypes.c_float * 3
        np.testing.assert_array_equal(np.ctypeslib.as_array(address.from_address(clone.unsafe_buffer_pointer())), want)
        array.delete()
        np.testing.assert_array_equal(clone, want)
        assert clone.platform() == "cpu"


@pytest.mark.promotes
@pytest.mark.x32
@pytest.mark.parametrize(
    "call", [lambda x: x.astype(np.int64), lambda x: jnp.astype(x, np.int64), lambda x: (x * 1j).astype(float)]
)
def test_warnings_of_astype_point_at_the_user(call):
    with pytest.warns((UserWarning, DeprecationWarning)) as seen:
        call(jnp.ones(2))
    assert [w.filename for w in seen] == [__file__]


def test_methods_tell_self_and_not_the_argument_it_stands_for():
    for name in dir(gradix.Array):
        method = getattr(gradix.Array, name, None)  # some are there to say what other libraries' members are here
        if not name.startswith("_") and inspect.isfunction(method):
            assert next(iter(inspect.signature(method).parameters)) == "self", name
            assert "\n        a: " not in (method.__doc__ or "") and "`a`" not in (method.__doc__ or ""), name
    assert next(iter(inspect.signature(jnp.sum).parameters)) == "a" and "a: an array" in jnp.sum.__doc__
    assert "axis: the axis" in gradix.Array.sum.__doc__ and gradix.Array.sum.__qualname__ == "Array.sum"


def test_members_have_signatures_before_they_are_asked_for():
    """In a new process, as tools meet the class that list it without loading what a member needs."""
    program = (
        "import inspect, gradix.numpy as jnp\nmember = inspect.getattr_static(type(jnp.ones(2)), 'cumsum')\n"
        "print(list(inspect.signature(member).parameters)[:2])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['self', 'axis']\n"
