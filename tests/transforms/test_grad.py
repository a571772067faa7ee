"""grad and value_and_grad: arguments, auxiliary data, complex numbers, nesting, and errors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.dtypes import float0
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argnums, want",
    [
        (0, 9.0),
        (1, 12.0),
        (-1, 12.0),
        ((0,), (9.0,)),
        ((1, 0), (12.0, 9.0)),
        ([0, 1], (9.0, 12.0)),
        ((), ()),
        (np.int64(1), 12.0),
    ],
    ids=str,
)
def test_argnums(argnums, want):
    assert_same(gradix.grad(lambda x, y: x * y * y, argnums)(2.0, 3.0), want)


def test_trees_none_keywords_and_other_arguments():
    p = {"a": [x3, None], "b": 2.0}
    assert_same(gradix.grad(lambda p: (p["a"][0] * p["b"]).sum())(p), {"a": [np.full(3, 2.0), None], "b": 6.0})
    assert gradix.grad(lambda x, *, s: x * s * x)(2.0, s=3.0) == 12
    assert gradix.grad(lambda x, s, f: f(x) * len(s))(0.0, "abc", jnp.sin) == 3
    assert gradix.grad(lambda p: 1.0)(None) is None
    assert_same(gradix.grad(lambda x, y: x, (0, 1))(2.0, x3), (1.0, np.zeros(3)))
    assert gradix.grad(lambda x: 3.0)(2.0) == 0


@pytest.mark.x32
def test_dtypes_and_weak_types():
    gx, gy = gradix.grad(lambda x, y: x * y, (0, 1))(2.0, jnp.float32(3.0))
    assert (gx.weak_type, gy.weak_type) == (True, False)
    assert gradix.grad(lambda x: (x * x).sum())(jnp.ones(3, "float16")).dtype == "float16"
    gx, gy = gradix.grad(lambda x, y: (x * y).sum(), (0, 1))(jnp.ones(2, "bfloat16"), jnp.ones(2))
    assert (gx.dtype, gy.dtype) == ("bfloat16", "float32")
    g = gradix.grad(lambda n, x: n * x, (0, 1), allow_int=True)(2, 3.0)
    assert g[0].dtype == float0 and g[1] == 2


def test_value_and_grad():
    assert_same(gradix.value_and_grad(lambda x: (x * x).sum())(np.ones(3)), (3.0, np.full(3, 2.0)))
    assert gradix.jit(gradix.value_and_grad(lambda x: x * x))(3.0) == (9, 6)


# -- auxiliary data ----------------------------------------------------------------------------------------------------

AUX = {"s": "text", "n": 3, "none": None, "f": len}


def test_aux_that_is_no_array():
    (value, aux), g = gradix.value_and_grad(lambda x: (x * x, {**AUX, "x": x + 1}), has_aux=True)(2.0)
    assert (value, g, aux["x"], aux["s"], aux["n"], aux["none"], aux["f"]) == (4, 4, 3, "text", 3, None, len)
    g, aux = gradix.grad(lambda x: (x * x, AUX), has_aux=True)(2.0)
    assert g == 4 and aux == AUX


@pytest.mark.parametrize("transform", [gradix.jacrev, gradix.jacfwd, gradix.hessian])
def test_aux_of_jacobians(transform):
    _, aux = transform(lambda x: ((x * x).sum(), {**AUX, "x": x + 1}), has_aux=True)(x3)
    assert_same(aux["x"], x3 + 1)
    assert aux["s"] == "text" and aux["f"] is len


def test_aux_under_other_transformations():
    assert_same(gradix.vmap(gradix.grad(lambda x: (x * x, x + 1), has_aux=True))(x3), (2 * x3, x3 + 1))
    assert gradix.grad(lambda x: gradix.grad(lambda y: (y * y * x, y), has_aux=True)(x)[0])(2.0) == 8
    assert_same(
        gradix.jit(gradix.grad(lambda x: (x * x, {"n": 3, "x": x}), has_aux=True))(2.0), (4.0, {"n": 3, "x": 2.0})
    )
    assert gradix.grad(lambda x: (x * x, x.astype(int)), has_aux=True)(2.5)[1] == 2


# -- complex numbers ---------------------------------------------------------------------------------------------------


def test_complex_conventions():
    # the gradient of f(x + iy) is f_x - i f_y
    assert_same(gradix.grad(lambda z: jnp.real(z * z * (1 + 2j)))(1.0 + 2j), -6.0 + 8j)
    assert_same(gradix.grad(jnp.abs)(3.0 + 4j), 0.6 - 0.8j)
    assert_same(
        gradix.grad(lambda z: jnp.sin(z) * z, holomorphic=True)(1.0 + 2j), np.cos(1 + 2j) * (1 + 2j) + np.sin(1 + 2j)
    )
    assert_same(
        gradix.grad(lambda x: jnp.abs(jnp.exp(1j * x) + x))(0.5),
        (0.5 - 0.5 * np.sin(0.5) + np.cos(0.5)) / np.abs(np.exp(0.5j) + 0.5),
    )


# -- nesting -----------------------------------------------------------------------------------------------------------


def test_orders_and_perturbations():
    assert gradix.grad(gradix.grad(gradix.grad(lambda x: x**5)))(2.0) == 240
    assert gradix.grad(lambda x: x * gradix.grad(lambda y: x + y)(1.0))(1.0) == 1
    assert gradix.jvp(lambda x: x * gradix.jvp(lambda y: x * y, (1.0,), (1.0,))[1], (3.0,), (1.0,)) == (9, 6)
    assert gradix.grad(lambda x: gradix.grad(lambda y: x * y * y)(x))(2.0) == 8
    assert gradix.grad(lambda x: gradix.jvp(lambda y: y * y * x, (x,), (1.0,))[1])(2.0) == 8
    f = gradix.grad(lambda x: gradix.vmap(lambda y: jnp.sin(x * y))(x3).sum())
    np.testing.assert_allclose(f(0.5), (x3 * np.cos(x3 * 0.5)).sum(), rtol=1e-6)


def test_functions_of_every_kind():
    class Square:
        def __call__(self, x):
            return x * x

    import functools

    assert gradix.grad(Square())(3.0) == 6
    assert gradix.grad(functools.partial(lambda a, x: a * x, 5.0))(3.0) == 5
    assert gradix.grad(gradix.jit(Square()))(3.0) == 6


# -- errors ------------------------------------------------------------------------------------------------------------


def bad(f, *args, **options):
    return lambda: gradix.grad(f, **options)(*args)


@pytest.mark.x32
@pytest.mark.parametrize(
    "call, error, message",
    [
        (bad(lambda x: 2.0 * x, 1), TypeError, "real- or complex-valued inputs.*argument x of ~int32.*1.0 for 1"),
        (bad(lambda p: p["k"][0], {"k": [True]}), TypeError, r"argument p\['k'\]\[0\] of bool"),
        (bad(lambda x: x * 2, x3), TypeError, r"scalar-output functions. Output had shape: \(3,\)"),
        (bad(lambda x: (x,), 1.0), TypeError, "scalar-output functions. Output was of structure"),
        (bad(lambda x: [x], 1.0), TypeError, "scalar-output functions"),
        (bad(lambda x: None, 1.0), TypeError, "scalar-output functions"),
        (bad(lambda x: 3, 1.0), TypeError, "real-valued outputs.*int32"),
        (bad(lambda x: x * 1j, 1.0), TypeError, "real-valued outputs.*complex64.*holomorphic"),
        (bad(lambda x: x, 1.0, holomorphic=True), TypeError, "inputs with complex dtype"),
        (bad(jnp.real, 1j, holomorphic=True), TypeError, "outputs with complex dtype"),
        (bad(lambda x: x, "a"), TypeError, "argument 0 is not an array"),
        (bad(lambda x: "a", 1.0), TypeError, "output is not an array"),
        (bad(lambda x: x, 1.0, argnums=3), TypeError, "argnums=3 requires at least 4 positional arguments.*only 1"),
        (lambda: gradix.grad(lambda x: x)(x=1.0), TypeError, "only 0 positional.*keyword"),
        (bad(lambda x: x, 1.0, argnums="0"), TypeError, "argnums must be an int"),
        (bad(lambda x, y: x, 1.0, 2.0, argnums=(0, 0)), ValueError, "twice"),
        (bad(lambda x, y: x, 1.0, 2.0, argnums=(1, -1)), ValueError, "twice"),
        (bad(lambda x: x, 1.0, has_aux=True), TypeError, "pair"),
        (bad(lambda x: (x, x, x), 1.0, has_aux=True), TypeError, "a tuple of length 3"),
        (bad(lambda k: 1.0, gradix.random.key(0)), TypeError, "key<fry>"),
        (lambda: gradix.grad(3.0), TypeError, "expects a function"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_numbers_of_complex_arrays():
    for kind in (float, int):
        with pytest.raises(TypeError, match=f"{kind.__name__}.. argument must be a.*real number.*complex"):
            kind(jnp.asarray([1j])[0])


@pytest.mark.parametrize("argnums", [range(2), [0, 1], {0, 1}, np.array([0, 1]), (np.int64(0), True)], ids=str)
def test_argument_numbers_of_any_collection(argnums):
    def f(x, y):
        return x * y**2

    for found in (
        gradix.grad(f, argnums)(2.0, 3.0),
        gradix.value_and_grad(f, argnums)(2.0, 3.0)[1],
        gradix.jacfwd(f, argnums)(2.0, 3.0),
        gradix.jacrev(f, argnums)(2.0, 3.0),
    ):
        assert isinstance(found, tuple) and [float(g) for g in found] == [9.0, 12.0]
    assert [[float(h) for h in row] for row in gradix.hessian(f, argnums)(2.0, 3.0)] == [[0.0, 6.0], [6.0, 4.0]]
    assert float(gradix.jit(lambda x, y: x + y, static_argnums=argnums)(2.0, 3.0)) == 5.0


@pytest.mark.parametrize("argnums", [np.int32(1), np.array(1), jnp.array(1)], ids=["scalar", "array", "Array"])
def test_one_argument_number_of_any_type(argnums):
    assert float(gradix.grad(lambda x, y: x * y, argnums)(2.0, 3.0)) == 2.0


@pytest.mark.parametrize("argnums", ["01", 1.0, (0, "1"), np.array([0.5])], ids=str)
def test_argument_numbers_that_are_none_are_refused(argnums):
    with pytest.raises(TypeError, match="argnums must be an int or a tuple of ints, got"):
        gradix.grad(lambda x, y: x * y, argnums)(2.0, 3.0)
