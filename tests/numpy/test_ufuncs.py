"""Elementwise functions: values against NumPy, and the dtype and weak type of every kind of operand."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

FLOATS = np.array([0.5, -1.5, 2.0, 0.0, 3.75, -0.25], np.float32)
OTHERS = np.array([1.5, 2.0, -2.0, 0.5, 1.0, 4.0], np.float32)
INTS = np.array([5, -7, 12, 0, -3, 8], np.int32)
DIVISORS = np.array([2, 3, -5, 7, -1, 3], np.int32)

UNARY = (
    "abs fabs negative positive sign exp exp2 expm1 square sin cos tan arctan sinh cosh tanh arcsinh deg2rad "
    "rad2deg sinc isnan isinf isfinite isposinf isneginf floor ceil trunc rint conj real imag angle logical_not "
    "signbit cbrt iscomplex isreal"
).split()
POSITIVE = "log log2 log10 log1p sqrt reciprocal".split()
WITHIN_ONE = "arcsin arccos arctanh".split()
BINARY = (
    "add subtract multiply true_divide divide floor_divide remainder mod fmod arctan2 hypot logaddexp logaddexp2 "
    "maximum minimum fmax fmin copysign heaviside equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor"
).split()
INTEGER = (
    "add subtract multiply floor_divide remainder mod fmod maximum minimum bitwise_and bitwise_or bitwise_xor gcd "
    "lcm equal less"
).split()


def check(name, *args, rtol=2e-6):
    want = getattr(np, name)(*args)
    got = getattr(jnp, name)(*args)
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", UNARY)
def test_unary_equals_numpy(name):
    check(name, FLOATS)


@pytest.mark.parametrize("name", POSITIVE)
def test_unary_of_positive_numbers(name):
    check(name, np.abs(FLOATS) + np.float32(0.25))


@pytest.mark.parametrize("name", WITHIN_ONE)
def test_unary_within_one(name):
    check(name, FLOATS / np.float32(8))


@pytest.mark.parametrize("name", BINARY)
def test_binary_equals_numpy(name):
    check(name, FLOATS, OTHERS)


@pytest.mark.parametrize("name", INTEGER)
def test_integers_equal_numpy(name):
    check(name, INTS, DIVISORS)


@pytest.mark.parametrize("name", ["add", "multiply", "arctan2", "less", "maximum", "floor_divide"])
def test_operands_broadcast(name):
    check(name, FLOATS.reshape(2, 3, 1), OTHERS[:2])


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 100, 300, -2, -3])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_division_by_python_ints_rounds_down(divisor, dtype):
    x = np.arange(-20, 21, dtype=dtype)
    wrapped = np.int64(divisor).astype(dtype)
    np.testing.assert_array_equal(jnp.asarray(x) // divisor, x // wrapped)
    np.testing.assert_array_equal(jnp.asarray(x) % divisor, x % wrapped)


def test_integers_divided_by_zero():
    x = jnp.array([5, -5, 0])
    assert (x // 0).tolist() == [-2, -2, -1]
    assert (x % 0).tolist() == [0, 0, 0]


@pytest.mark.x32
def test_powers():
    x = jnp.array([1, -2, 3])
    assert (x**3).tolist() == [1, -8, 27]
    assert (x ** jnp.array([3, 2, 0])).tolist() == [1, 4, 1]
    assert (2 ** jnp.arange(5)).tolist() == [1, 2, 4, 8, 16]
    np.testing.assert_allclose(jnp.array([4.0, 9.0]) ** 0.5, [2, 3], rtol=1e-6)
    np.testing.assert_allclose(jnp.array([4.0, 2.0]) ** -2, [1 / 16, 1 / 4])
    with pytest.raises(TypeError, match="negative powers"):
        x**-1
    assert jnp.float_power(2, 3).dtype == "float32"


# Each row: the expression, the dtype of its value, whether it is weakly typed.
TYPES = [
    ("jnp.add(1, 1.0)", "float32", True),
    ("jnp.add(1, 1)", "int32", True),
    ("jnp.add(True, True)", "bool", False),
    ("jnp.true_divide(1, 2)", "float32", True),
    ("i8 + 1", "int8", False),
    ("i8 + 1.5", "float32", True),
    ("i8 + 1j", "complex64", True),
    ("i8 + np.float64(1)", "float32", False),
    ("i8 + True", "int8", False),
    ("f16 + 1", "float16", False),
    ("f16 + 1.5", "float16", False),
    ("f16 * i8", "float16", False),
    ("bf16 + f16", "float32", False),
    ("u8 + i8", "int16", False),
    ("b + 1", "int32", True),
    ("b + b", "bool", False),
    ("b * b", "bool", False),
    ("b // b", "int32", False),
    ("b ** 2", "int32", False),
    ("i32 / i32", "float32", False),
    ("i32 / 2", "float32", False),
    ("i32 // 2.0", "float32", True),
    ("i32 ** 2", "int32", False),
    ("i32 ** 2.0", "float32", True),
    ("i32 < 2.5", "bool", True),
    ("c64 * 2", "complex64", False),
    ("abs(c64)", "float32", False),
    ("jnp.asarray(1.5) * f16", "float16", False),
    ("jnp.asarray(1) + jnp.asarray(1.5)", "float32", True),
    ("jnp.sin(1)", "float32", True),
    ("jnp.sin(i8)", "float32", False),
    ("jnp.sin(f16)", "float16", False),
    ("jnp.square(b)", "int32", False),
    ("jnp.floor(i32)", "int32", False),
    ("jnp.rint(i32)", "float32", False),
    ("jnp.real(c64)", "float32", False),
    ("jnp.bitwise_count(i32)", "uint8", False),
    ("jnp.where(b, 1, 2.0)", "float32", True),
    ("jnp.where(b, f16, 1)", "float16", False),
    ("jnp.clip(i32, 0.5, 1)", "float32", True),
    ("jnp.maximum(f16, i32)", "float16", False),
    ("jnp.log2(1)", "float32", False),
    ("jnp.ldexp(1, 2)", "float32", False),
    ("jnp.heaviside(f16, 1)", "float16", False),
    ("i8 << 1", "int8", False),
    ("~u8", "uint8", False),
]
VALUES = {
    short: jnp.ones(3, dtype)
    for short, dtype in (
        ("i8", "int8"),
        ("u8", "uint8"),
        ("i32", "int32"),
        ("f16", "float16"),
        ("bf16", "bfloat16"),
        ("b", "bool"),
        ("c64", "complex64"),
    )
}


@pytest.mark.x32
@pytest.mark.parametrize(("expression", "dtype", "weak"), TYPES)
def test_result_types(expression, dtype, weak):
    value = eval(expression, {"jnp": jnp, "np": np, **VALUES})
    assert (str(value.dtype), value.weak_type) == (dtype, weak)


@pytest.mark.x32
@pytest.mark.parametrize(("expression", "dtype", "weak"), TYPES)
def test_result_types_when_traced(expression, dtype, weak):
    def function(values):
        return eval(expression, {"jnp": jnp, "np": np, **values})

    out = gradix.eval_shape(function, VALUES)
    assert (str(out.dtype), out.weak_type) == (dtype, weak)


@pytest.mark.x32
@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        ("jnp.add([1], 2)", TypeError, "got <class 'list'> at position 0"),
        ("jnp.add(jnp.ones(3), jnp.ones(2))", TypeError, "incompatible shapes"),
        ("jnp.sin(None)", TypeError, "NoneType"),
        ("jnp.subtract(b, b)", TypeError, "bool"),
        ("jnp.negative(b)", TypeError, "bool"),
        ("jnp.fabs(c64)", TypeError, "complex"),
        ("jnp.hypot(c64, c64)", ValueError, "complex"),
        ("jnp.gcd(f16, f16)", ValueError, "integers"),
        ("jnp.ldexp(i32, f16)", ValueError, "x2 integers"),
        ("jnp.floor_divide(c64, c64)", TypeError, "complex"),
        ("jnp.bitwise_and(f16, f16)", TypeError, "float16"),
        ("jnp.clip(c64, 0, 1)", ValueError, "complex"),
        ("jnp.where(b, 1)", ValueError, "only x"),
        ("jnp.add(1, 2, out=i32)", NotImplementedError, "out"),
        ("jnp.add(1)", TypeError, "2 positional"),
        ("i8 + 2 ** 40", OverflowError, "too large"),
        ("i32 + [1, 2, 3]", TypeError, "unsupported operand"),
        ("i32 + 'a'", TypeError, "unsupported operand"),
        ("i32 == [1, 1, 1]", TypeError, "compares an array with"),
        ("jnp.round(b)", ValueError, "bool"),
    ],
)
def test_wrong_operands_are_named(expression, error, text):
    with pytest.raises(error, match=text):
        eval(expression, {"jnp": jnp, **VALUES})


def test_python_ints_wrap_in_small_dtypes():
    assert (jnp.int8(3) + 300).item() == 47
    assert (jnp.uint8(3) + -1).item() == 2


@pytest.mark.x32
def test_splitting_numbers():
    x = np.array([8.0, 0.75, -3.0, 0.0, np.inf, 1e-40], np.float32)
    for got, want in zip(jnp.frexp(x), np.frexp(x)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jnp.ldexp(x, 3), np.ldexp(x, 3))
    assert jnp.ldexp(1.0, jnp.array([127, -126, 200, -300])).tolist() == [2.0**127, 2.0**-126, np.inf, 0.0]
    for got, want in zip(jnp.modf(x[:4]), np.modf(x[:4])):
        np.testing.assert_array_equal(got, want)
    quotient, rest = divmod(jnp.array([7.5, -7.5]), 2.0)
    assert quotient.tolist() == [3, -4] and rest.tolist() == [1.5, 0.5]


def test_replacing_what_is_not_finite():
    x = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 1.0])
    assert jnp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0).tolist() == [1, 2, 3, 1]
    assert jnp.isclose(x, x, equal_nan=True).all()
    assert not jnp.allclose(x, x)
    assert jnp.array_equal(jnp.arange(3), [0, 1, 2]) and not jnp.array_equal(jnp.arange(3), 0)
    assert jnp.array_equiv(jnp.ones((2, 3)), 1)


def test_selection():
    x = jnp.arange(6)
    assert jnp.where(x > 2, x, -1).tolist() == [-1, -1, -1, 3, 4, 5]
    assert jnp.where(True, x, 0).tolist() == x.tolist()
    assert jnp.where(x > 2, 1, 0).tolist() == [0, 0, 0, 1, 1, 1]
    assert jnp.where(x[:, None] > 2, x[:2], 9).shape == (6, 2)
    assert jnp.select([x < 2, x < 4], [x, -x], 7).tolist() == [0, 1, -2, -3, 7, 7]
    assert jnp.piecewise(x, [x < 3], [lambda v: -v, lambda v: 2 * v]).tolist() == [0, -1, -2, 6, 8, 10]
    assert jnp.clip(x, 1, 4).tolist() == [1, 1, 2, 3, 4, 4]
    assert jnp.clip(x, max=2).tolist() == [0, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("function", "x", "slope"),
    [
        (lambda x: jnp.logaddexp(x, -jnp.inf), 1.0, 1.0),
        (lambda x: jnp.logaddexp(jnp.inf, x), 1.0, 0.0),
        (jnp.sinc, 0.0, 0.0),
        (gradix.grad(jnp.sinc), 0.0, -(np.pi**2) / 3),
        (lambda x: jnp.frexp(x)[0], 3.0, 0.25),
        (lambda x: jnp.hypot(x, 4.0), 3.0, 0.6),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: jnp.where(x > 0, x, 0.0), 1.0, 1.0),
        (jnp.round, 1.2, 0.0),
        (lambda x: x % 3.0, 5.0, 1.0),
    ],
)
def test_derivatives_where_formulas_are_delicate(function, x, slope):
    np.testing.assert_allclose(gradix.grad(function)(x), slope, rtol=1e-5, atol=1e-6)


# -- ufunc objects -------------------------------------------------------------------------------------------------


def test_ufunc_reductions():
    x = jnp.arange(6).reshape(2, 3)
    assert jnp.add.reduce(x).tolist() == [3, 5, 7]
    assert jnp.multiply.reduce(x + 1, axis=1).tolist() == [6, 120]
    assert jnp.maximum.reduce(x, axis=None).item() == 5
    assert jnp.logical_and.reduce(x > 0, axis=1).tolist() == [False, True]
    assert jnp.bitwise_xor.reduce(jnp.array([4, 3, 1])).item() == 6
    assert jnp.bitwise_and.reduce(jnp.array([7, 3])).item() == 3
    assert jnp.add.reduce(x, keepdims=True, initial=1).tolist() == [[4, 6, 8]]
    assert jnp.add.accumulate(x, axis=1).tolist() == [[0, 1, 3], [3, 7, 12]]
    assert repr(jnp.add) == "<jnp.ufunc 'add'>" and isinstance(jnp.add, jnp.ufunc)
    assert (jnp.add.nin, jnp.add.nout, jnp.add.identity) == (2, 1, 0)
    with pytest.raises(ValueError, match="two arrays"):
        jnp.negative.reduce(x)


def test_ufunc_reductions_by_steps():
    x = jnp.arange(5)
    assert jnp.subtract.reduce(x).item() == -10
    assert jnp.subtract.accumulate(x).tolist() == [0, -1, -3, -6, -10]
    assert jnp.add.reduceat(jnp.arange(8), jnp.array([0, 4, 1, 5])).tolist() == [6, 4, 10, 18]
    np.testing.assert_allclose(jnp.logaddexp.reduce(x.astype(float)), np.logaddexp.reduce(np.arange(5.0)), rtol=1e-6)


def test_ufunc_outer_and_at():
    assert jnp.subtract.outer(jnp.arange(2), jnp.arange(3)).tolist() == [[0, -1, -2], [1, 0, -1]]
    assert jnp.add.at(jnp.zeros(3), jnp.array([0, 2, 2]), 1.0, inplace=False).tolist() == [1, 0, 2]
    assert jnp.subtract.at(jnp.zeros(3), jnp.array([2, 2]), 1.0, inplace=False).tolist() == [0, 0, -2]
    assert jnp.negative.at(jnp.arange(3), jnp.array([1]), inplace=False).tolist() == [0, -1, 2]
    with pytest.raises(NotImplementedError, match="inplace=False"):
        jnp.add.at(jnp.zeros(3), 0, 1.0)


def test_functions_of_scalars_become_ufuncs():
    f = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)
    assert f(jnp.arange(3), 1).tolist() == [2, 3, 4]
    assert f.reduce(jnp.arange(4), initial=1).item() == 13
    assert f.outer(jnp.arange(2), jnp.arange(2)).tolist() == [[0, 2], [1, 3]]
    whole, rest = jnp.frompyfunc(lambda x: (x // 2, x % 2), 1, 2)(jnp.arange(4))
    assert whole.tolist() == [0, 0, 1, 1] and rest.tolist() == [0, 1, 0, 1]


def test_vectorize():
    dot = jnp.vectorize(lambda x, y: (x * y).sum(), signature="(n),(n)->()")
    assert dot(jnp.ones((3, 2)), jnp.arange(2.0)).tolist() == [1, 1, 1]
    assert jnp.vectorize(lambda x, n: x**n, excluded={1})(jnp.arange(3), 2).tolist() == [0, 1, 4]
    assert jnp.vectorize(lambda x, y: x + y)(jnp.arange(3)[:, None], jnp.arange(2)).shape == (3, 2)
    with pytest.raises(ValueError, match="signature"):
        jnp.vectorize(jnp.sin, signature="(n->")
    with pytest.raises(ValueError, match="inconsistent size"):
        dot(jnp.ones(3), jnp.ones(2))


@pytest.mark.parametrize("run", [lambda f: f, gradix.jit], ids=["eagerly", "compiled"])
def test_powers_of_ten_have_whole_logarithms(run):
    with gradix.enable_x64():
        assert run(jnp.log10)(jnp.asarray(10.0 ** np.arange(11))).tolist() == list(range(11))
