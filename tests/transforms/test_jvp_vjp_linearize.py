"""jvp, vjp, linearize and linear_transpose: values, float0, auxiliary data, use under jit and vmap, and errors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.dtypes import float0
from tests.same import assert_same

x3 = np.arange(3, dtype=np.float32) + 1
eye = np.eye(3, dtype=np.float32)
no_tangent = np.zeros((), float0)


# -- jvp ---------------------------------------------------------------------------------------------------------------


def test_jvp():
    assert_same(gradix.jvp(lambda x, y: (x * y, x), (2.0, 3.0), (1.0, 0.0)), ((6, 2), (3, 1)))
    assert_same(gradix.jvp(lambda p: p["a"] * 2, [{"a": x3}], [{"a": x3}]), (2 * x3, 2 * x3))
    assert_same(gradix.jvp(lambda: 3.0, (), ()), (3, 0))
    assert gradix.jvp(lambda x: (x, None), (2.0,), (1.0,)) == ((2, None), (1, None))
    assert_same(gradix.jvp(lambda z: z * z, (2 + 1j,), (1j,)), ((2 + 1j) ** 2, 2j * (2 + 1j)))


def test_jvp_of_integers():
    (y, n), (dy, dn) = gradix.jvp(lambda x, n: (x * n, n + 1), (2.0, 3), (1.0, no_tangent))
    assert (y, n, dy) == (6, 4, 3) and dn.dtype == float0 and dn.shape == ()
    _, (b, i) = gradix.jvp(lambda x: (x > 0, x.astype(int)), (x3,), (x3,))
    assert b.dtype == i.dtype == float0 and b.shape == (3,)


def test_aux():
    y, t, aux = gradix.jvp(lambda x: (x * 2, {"s": "a", "x": x + 1}), (2.0,), (1.0,), has_aux=True)
    assert (y, t, aux) == (4, 2, {"s": "a", "x": 3})
    y, pull, aux = gradix.vjp(lambda x: (x * x3, ("s", x, 3)), x3, has_aux=True)
    assert (aux[0], aux[2]) == ("s", 3)
    assert_same((y, pull(x3), aux[1]), (x3**2, (x3**2,), x3))
    y, push, aux = gradix.linearize(lambda x: (jnp.sin(x), ("s", x)), x3, has_aux=True)
    assert aux[0] == "s"
    assert_same((y, push(x3), aux[1]), (np.sin(x3), x3 * np.cos(x3), x3))


# -- vjp ---------------------------------------------------------------------------------------------------------------


def test_vjp():
    y, pull = gradix.vjp(lambda x, y: (x * y, x), 2.0, 3.0)
    assert_same((y, pull((1.0, 2.0))), ((6, 2), (5, 2)))
    assert_same(pull((0.0, 1.0)), (1, 0))  # again, with another cotangent
    y, pull = gradix.vjp(lambda p: {"o": p["a"] * 2, "n": None}, {"a": x3})
    assert_same(pull({"o": x3, "n": None}), ({"a": 2 * x3},))


def test_vjp_of_integers():
    _, pull = gradix.vjp(lambda x, n: x * n, 2.0, 3)
    gx, gn = pull(1.0)
    assert gx == 3 and gn.dtype == float0
    _, pull = gradix.vjp(lambda x: (x, x.astype(int)), 2.0)
    assert pull((1.0, no_tangent)) == (1,)


def test_vjp_of_complex_numbers():
    _, pull = gradix.vjp(lambda z: z * z, 2 + 1j)
    assert_same(pull(1j), (1j * 2 * (2 + 1j),))
    _, pull = gradix.vjp(lambda x: x * (1 + 2j), 2.0)  # real to complex: the real part comes back
    assert_same(pull(1 + 1j), (-1.0,))


def test_pullbacks_under_transformations():
    _, pull = gradix.vjp(lambda x: x * x3, x3)
    assert_same(gradix.vmap(pull)(eye), (np.diag(x3),))
    assert_same(gradix.jit(pull)(x3), (x3 * x3,))
    assert_same(lax.scan(lambda c, t: (pull(c)[0], t), x3, x3)[0], x3**4)
    assert_same(gradix.jit(lambda x, c: gradix.vjp(lambda y: y * y, x)[1](c))(3.0, 1.0), (6,))
    assert gradix.grad(lambda x: gradix.vjp(lambda z: z**3, x)[1](1.0)[0])(2.0) == 12
    f = gradix.jit(lambda x: gradix.vjp(jnp.sin, x))
    for x in (3.0, 1.0):
        y, pull = f(x)
        assert_same((y, pull(2.0)), (np.sin(x), (2 * np.cos(x),)))


# -- linearize ---------------------------------------------------------------------------------------------------------


def test_linearize():
    y, push = gradix.linearize(lambda x, y: x * y, 2.0, 3.0)
    assert_same((y, push(1.0, 0.0), push(0.0, 1.0)), (6, 3, 2))
    y, push = gradix.linearize(lambda x, n: (x * n, n), 2.0, 3)
    (dy, dn) = push(1.0, no_tangent)
    assert dy == 3 and dn.dtype == float0
    assert gradix.linearize(lambda x: 3.0, 2.0)[1](1.0) == 0


def test_linearized_functions_under_transformations():
    _, push = gradix.linearize(jnp.sin, x3)
    assert_same(gradix.jit(push)(x3), x3 * np.cos(x3))
    assert_same(gradix.vmap(push)(eye), np.diag(np.cos(x3)))
    assert_same(gradix.linear_transpose(push, x3)(x3), (x3 * np.cos(x3),))
    assert_same(gradix.grad(lambda t: (push(t) ** 2).sum())(x3), 2 * x3 * np.cos(x3) ** 2)
    assert_same(gradix.grad(lambda x: gradix.linearize(jnp.sin, x)[1](1.0))(2.0), -np.sin(2))
    for x in (x3, 2 * x3):
        y, push = gradix.jit(lambda x: gradix.linearize(jnp.sin, x))(x)
        assert_same((y, push(x3)), (np.sin(x), x3 * np.cos(x)))


def test_linearize_runs_the_function_once():
    calls = []
    _, push = gradix.linearize(lambda x: calls.append(1) or jnp.sin(x), 1.0)
    push(1.0)
    push(2.0)
    assert calls == [1]


# -- linear_transpose --------------------------------------------------------------------------------------------------


def test_linear_transpose():
    assert_same(gradix.linear_transpose(lambda x, y: x * 2 + y * 3, 1.0, 1.0)(5.0), (10, 15))
    assert_same(gradix.linear_transpose(lambda x: x * 2, gradix.ShapeDtypeStruct((3,), "float32"))(x3), (2 * x3,))
    assert_same(gradix.linear_transpose(lambda z: z * (1 + 2j), 1j)(2j), (2j * (1 + 2j),))
    assert_same(gradix.linear_transpose(lambda x: (x * 2, {"k": x}), 1.0)((1.0, {"k": 5.0})), (7,))
    assert_same(
        gradix.linear_transpose(lambda x: x @ np.ones((3, 2), np.float32), x3)(np.array([1, 2], np.float32)),
        (np.full(3, 3),),
    )


@pytest.mark.x32
@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
def test_linear_transpose_of_loops(wrap):
    assert_same(wrap(gradix.linear_transpose(wrap(jnp.cumsum), x3))(x3), (np.cumsum(x3[::-1])[::-1],))
    total = wrap(lambda x: lax.scan(lambda c, y: (c + y * 2, c), 0.0, x))
    c, ys = gradix.linear_transpose(total, x3), x3
    want = [2 * (1.0 + ys[i + 1 :].sum()) for i in range(3)]
    assert_same(c((1.0, ys)), (np.array(want),))


# -- errors ------------------------------------------------------------------------------------------------------------


def pull_of(f, *primals):
    return gradix.vjp(f, *primals)[1]


def push_of(f, *primals):
    return gradix.linearize(f, *primals)[1]


@pytest.mark.x32
@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: gradix.jvp(jnp.sin, 1.0, 1.0), TypeError, "must be tuples or lists; found float"),
        (lambda: gradix.jvp(lambda x: x, ((1.0, 2.0),), (1.0,)), TypeError, "same tree structure"),
        (lambda: gradix.jvp(lambda x: x, (x3,), (np.arange(3),)), TypeError, "dtypes must be equal.*float32.*int32"),
        (lambda: gradix.jvp(lambda x: x, (jnp.float16(2),), (1.0,)), TypeError, "float16.*float32"),
        (lambda: gradix.jvp(lambda x: x, (x3,), (1.0,)), ValueError, r"\(3,\).*\(\)"),
        (lambda: gradix.jvp(lambda n: n, (3,), (1,)), TypeError, "float0"),
        (lambda: gradix.jvp(lambda x: "a", (1.0,), (1.0,)), TypeError, "output is not an array"),
        (lambda: pull_of(lambda x: x, jnp.float16(2))(jnp.float32(1)), ValueError, "float32.*expected.*float16"),
        (lambda: pull_of(lambda x: x, x3)(1.0), ValueError, r"expected float32\[3\]"),
        (lambda: pull_of(lambda x: (x, x), x3)([x3, x3]), ValueError, "unexpected tree structure"),
        (lambda: gradix.vjp(lambda x: x, "a"), TypeError, "is not an array"),
        (lambda: push_of(jnp.sin, x3)(1.0), ValueError, r"\(3,\)"),
        (lambda: push_of(jnp.sin, x3)(x3.astype(np.float16)), ValueError, "float16"),
        (lambda: push_of(jnp.sin, x3)(x3, x3), TypeError, "tree structure"),
        (lambda: gradix.linear_transpose(lambda x: x * x, 1.0)(1.0), NotImplementedError, "not linear"),
        (lambda: gradix.linear_transpose(lambda x: 1 / x, 1.0)(1.0), NotImplementedError, "not linear"),
        (lambda: gradix.linear_transpose(jnp.sin, 1.0)(1.0), NotImplementedError, "primitive 'sin'.*transpose"),
        (lambda: gradix.linear_transpose(lambda x: x * 2, 1.0)((1.0, 1.0)), TypeError, "tree structure"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
