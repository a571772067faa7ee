"""`device_put` to another device is obeyed under every transformation that runs at once; compiled programs stay where their arguments are."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

X = np.array([3.0, 5.0], np.float32)
ROWS = np.stack([X, X + 1])


def one_moved(w):
    return gradix.device_put(w[0] * 2.0, gradix.devices()[1]) * w[1]


def both_moved(w):
    return gradix.device_put(w[0] * 2.0, gradix.devices()[1]) * gradix.device_put(w[1], gradix.devices()[1])


def vjp(f):
    def both(w):
        y, pull = gradix.vjp(f, w)
        return y, pull(jnp.ones_like(y))

    return both


# Each transformation of a function f of w, applied to its argument, and the values.
TRANSFORMED = {
    "plain": (lambda f: f, X, [30.0]),
    "grad": (gradix.grad, X, [[10.0, 6.0]]),
    "jvp": (lambda f: lambda w: gradix.jvp(f, (w,), (w,)), X, [30.0, 60.0]),
    "vjp": (vjp, X, [30.0, [10.0, 6.0]]),
    "vmap": (gradix.vmap, ROWS, [[30.0, 48.0]]),
    "linearize": (lambda f: lambda w: gradix.linearize(f, w)[1](w), X, [60.0]),
    "checkpoint": (lambda f: gradix.grad(gradix.checkpoint(f)), X, [[10.0, 6.0]]),
    "hessian": (gradix.hessian, X, [[[0.0, 2.0], [2.0, 0.0]]]),
    "vmap of grad": (lambda f: gradix.vmap(gradix.grad(f)), ROWS, [[[10.0, 6.0], [12.0, 8.0]]]),
    "jacfwd": (gradix.jacfwd, X, [[10.0, 6.0]]),
    "grad of vmap": (lambda f: gradix.grad(lambda w: gradix.vmap(f)(w).sum()), ROWS, [[[10.0, 6.0], [12.0, 8.0]]]),
}
VALUES = ("plain", "jvp", "vmap", "linearize", "jacfwd")  # these return what was moved


@pytest.mark.parametrize("f", [one_moved, both_moved])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_moves_happen_under_transformations(name, f):
    transform, x, want = TRANSFORMED[name]
    got = gradix.tree.leaves(transform(f)(jnp.asarray(x)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)
    if name in VALUES:
        assert {d.id for a in got for d in a.devices()} == {gradix.devices()[1].id}
    compiled = gradix.tree.leaves(gradix.jit(transform(f))(jnp.asarray(x)))
    for a, b in zip(compiled, want, strict=True):
        np.testing.assert_allclose(a, b)
    assert {d.id for a in compiled for d in a.devices()} == {gradix.devices()[0].id}


@pytest.mark.parametrize("n", [1, 5, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "bool"])
def test_examples_are_moved_together(n, dtype):
    x, d = jnp.zeros((n, 2), dtype), gradix.devices()[2]
    for place in (d, gradix.sharding.SingleDeviceSharding(d)):
        out = gradix.vmap(lambda v, place=place: gradix.device_put(v, place))(x)
        assert out.devices() == {d} and out.dtype == x.dtype and out.shape == x.shape and bool((out == x).all())


@pytest.mark.parametrize("source", [None, 0, 3])
def test_cotangents_return_to_where_the_values_were(source):
    x = jnp.asarray(X) if source is None else gradix.device_put(X, gradix.devices()[source])
    slope = gradix.grad(lambda w: (gradix.device_put(w, gradix.devices()[1]) ** 2).sum())(x)
    np.testing.assert_allclose(slope, 2 * X)
    assert slope.devices() == x.devices() and slope.committed == x.committed


@pytest.mark.parametrize(
    "loop",
    [
        lambda f, w: lax.cond(w[0] > 0, f, lambda w: w[0], w),
        lambda f, w: lax.scan(lambda c, _: (f(jnp.stack([c, w[1]])), None), w[0], None, length=1)[0],
        lambda f, w: lax.while_loop(lambda c: c[1] < 1, lambda c: (f(w), c[1] + 1), (w[0], 0))[0],
    ],
    ids=["cond", "scan", "while"],
)
def test_control_flow_stays_where_its_operands_are(loop):
    out = loop(one_moved, jnp.asarray(X))
    np.testing.assert_allclose(out, 30.0)
    assert out.devices() == {gradix.devices()[0]}
    np.testing.assert_allclose(out + 1, 31.0)


@pytest.mark.parametrize(
    "transform",
    [
        gradix.vmap,
        lambda f: lambda x: gradix.jvp(f, (x,), (x,))[0],
        lambda f: lambda x: gradix.vjp(f, x)[0],
        lambda f: f,
    ],
)
@pytest.mark.parametrize("place", [None, 0, 1])
@pytest.mark.parametrize("n", [1, 100_000])
def test_a_copy_is_promised(n, place, transform):
    x = jnp.arange(float(n)) + 1
    x.block_until_ready()
    out = transform(
        lambda v: gradix.device_put(v, None if place is None else gradix.devices()[place], may_alias=False)
    )(x)
    assert out is not x
    x.delete()
    np.testing.assert_array_equal(out, np.arange(float(n), dtype=np.float32) + 1)
