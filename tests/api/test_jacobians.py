"""jacfwd, jacrev and hessian: values, trees, dtypes and errors."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

MODES = [gradix.jacfwd, gradix.jacrev]
x = np.array([0.3, -1.2, 2.0], np.float32)


@pytest.mark.parametrize("jac", MODES)
def test_values(jac):
    got = jac(lambda v: jnp.sin(v) * v[0])(x)
    want = np.diag(np.cos(x) * x[0])
    want[:, 0] += np.sin(x)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("jac", MODES)
def test_shapes_are_output_then_input(jac):
    got = jac(lambda a: a.reshape(3, 2)[:, :1])(np.ones((2, 3), np.float32))
    assert got.shape == (3, 1, 2, 3)
    assert jac(lambda a: jnp.float32(2.0) * a)(1.5).shape == ()


@pytest.mark.parametrize("jac", MODES)
def test_trees_nest_argument_in_output(jac):
    got = jac(lambda t: {"o": t["a"] * t["b"], "p": (jnp.sum(t["a"]),)})({"a": x, "b": 2.0})
    assert gradix.tree.map(jnp.shape, got) == {"o": {"a": (3, 3), "b": (3,)}, "p": ({"a": (3,), "b": ()},)}


@pytest.mark.parametrize("jac", MODES)
def test_argnums_and_aux(jac):
    jacobian, aux = jac(lambda a, b: (a * b, b), argnums=(0, 1), has_aux=True)(x, 3.0)
    np.testing.assert_allclose(jacobian[0], 3 * np.eye(3), rtol=1e-6)
    np.testing.assert_allclose(jacobian[1], x)
    assert float(aux) == 3.0
    assert not isinstance(jac(lambda a, b: a * b, argnums=1)(x, 3.0), tuple)


@pytest.mark.parametrize("jac", MODES)
def test_under_jit_and_vmap(jac):
    f = jac(lambda v: v**2)
    np.testing.assert_allclose(gradix.jit(f)(x), np.diag(2 * x), rtol=1e-6)
    assert gradix.vmap(f)(np.stack([x, x])).shape == (2, 3, 3)


def test_under_jit_the_basis_is_computed_not_stored():
    closed = gradix.make_jaxpr(gradix.jacfwd(jnp.sin))(np.ones(100, np.float32))
    assert not closed.consts


def test_dtypes():
    t = np.ones(1, np.float16), np.ones(2, np.float32)
    forward = gradix.jacfwd(lambda t: (t[0] * 2, t[1] ** 2))(t)
    backward = gradix.jacrev(lambda t: (t[0] * 2, t[1] ** 2))(t)
    assert [[str(b.dtype) for b in row] for row in forward] == [["float16"] * 2, ["float32"] * 2]
    assert [[str(b.dtype) for b in row] for row in backward] == [["float16", "float32"]] * 2


@pytest.mark.x32
def test_integer_outputs_forward_and_integer_inputs_backward():
    out = gradix.jacfwd(lambda v: v.astype(int))(x)
    assert out.dtype == np.int32 and not np.any(out)
    assert gradix.jacrev(lambda v: v * 2.0, allow_int=True)(3).dtype == gradix.float0


def test_holomorphic():
    for jac in MODES:
        got = jac(lambda z: z**2, holomorphic=True)(1 + 2j)
        assert complex(got) == pytest.approx(2 + 4j)
    assert complex(gradix.jacfwd(lambda v: v * 2j)(1.0)) == 2j


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: gradix.jacfwd(lambda v: v)(3), "jacfwd requires real-valued inputs"),
        (lambda: gradix.jacfwd(lambda v: v)(3j), "jacfwd requires real-valued inputs"),
        (lambda: gradix.jacrev(lambda v: v)(3), "set allow_int"),
        (lambda: gradix.jacrev(lambda v: v)(3j), "requires real-valued outputs"),
        (lambda: gradix.jacrev(lambda v: v.astype(int))(x), "requires real-valued outputs"),
        (lambda: gradix.jacfwd(lambda v: v, holomorphic=True)(3.0), "requires inputs with complex dtype"),
        (lambda: gradix.jacrev(lambda v: v.real, holomorphic=True)(3j), "requires outputs with complex dtype"),
        (lambda: gradix.jacrev(3), "expects a function"),
    ],
)
def test_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_hessian():
    h = gradix.hessian(lambda t: t["a"] ** 2 * t["b"])({"a": 2.0, "b": 3.0})
    assert {k: {j: float(v) for j, v in row.items()} for k, row in h.items()} == {
        "a": {"a": 6.0, "b": 4.0},
        "b": {"a": 4.0, "b": 0.0},
    }
    quadratic = np.arange(9, dtype=np.float32).reshape(3, 3)
    got = gradix.hessian(lambda v: (v * (jnp.asarray(quadratic) * v).sum(1)).sum())(x)
    np.testing.assert_allclose(got, quadratic + quadratic.T, rtol=1e-5)


def test_empty_argument():
    for jac in MODES:
        assert jac(jnp.sin)(np.ones(0, np.float32)).shape == (0, 0)
