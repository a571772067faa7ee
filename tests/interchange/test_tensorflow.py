"""Functions of arrays in TensorFlow, in its SavedModels too, and its functions here."""

import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import jax2tf

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
    pytest.mark.filterwarnings("ignore"),
]

X, W = np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3), np.linspace(0, 2, 6, dtype="f4").reshape(3, 2)


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def model(p, x):
    return {"y": jnp.tanh(x @ p["w"]), "n": x.shape[0] + jnp.argmax(x)}


def test_converted_functions_run(tf):
    out = jax2tf.convert(model)({"w": W}, X)
    np.testing.assert_allclose(out["y"], np.tanh(X @ W), rtol=1e-5)
    assert out["n"] == 15 and out["n"].dtype == tf.int32


def test_gradients_are_tensorflows(tf):
    f = jax2tf.convert(model, polymorphic_shapes=(None, "b, _"))
    x, w = tf.Variable(X), tf.Variable(W)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(f({"w": w}, x)["y"] ** 2)
    with tf.GradientTape() as theirs:
        want = tf.reduce_sum(tf.tanh(x @ w) ** 2)
    for have, g in zip(tape.gradient(loss, [x, w]), theirs.gradient(want, [x, w])):
        np.testing.assert_allclose(have, g, rtol=1e-4, atol=1e-5)


def test_complex_gradients_are_tensorflows(tf):
    z = tf.Variable(np.array([1 + 2j, 0.5 - 1j], "c8"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(jax2tf.convert(lambda z: jnp.abs(z * z * 1j + z))(z))
    with tf.GradientTape() as theirs:
        want = tf.reduce_sum(tf.abs(z * z * tf.constant(1j, tf.complex64) + z))
    np.testing.assert_allclose(tape.gradient(loss, z), theirs.gradient(want, z), rtol=1e-5)


def test_saved_models_serve_all_sizes(tf, tmp_path):
    module = tf.Module()
    module.w = tf.Variable(W)
    f = jax2tf.convert(model, polymorphic_shapes=[None, "b, _"])
    module.f = tf.function(
        lambda x: f({"w": module.w}, x), autograph=False, input_signature=[tf.TensorSpec([None, 3], tf.float32)]
    )
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    for n in (1, 4):
        np.testing.assert_allclose(loaded.f(X[:n])["y"], np.tanh(X[:n] @ W), rtol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.f(X)["y"])
    np.testing.assert_allclose(
        tape.gradient(loss, loaded.w), gradix.grad(lambda w: jnp.tanh(X @ w).sum())(W), rtol=1e-4
    )


def test_gradients_of_gradients_are_tensorflows(tf):
    x, w = tf.Variable(X[0]), tf.Variable(np.float32(0.5))
    f = jax2tf.convert(lambda x, *, w, n: (jnp.sin(x * w).sum() * n, n + 1), polymorphic_shapes="b")
    with tf.GradientTape() as third:
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                y = f(x, w=w, n=2)[0]
            g = tf.reduce_sum(first.gradient(y, x))
        h = second.gradient(g, x)
        total = tf.reduce_sum(h)
    x0, w0 = X[0], np.float32(0.5)
    np.testing.assert_allclose(h, -2 * w0**2 * np.sin(x0 * w0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        third.gradient(total, w), (-4 * w0 * np.sin(x0 * w0) - 2 * w0**2 * x0 * np.cos(x0 * w0)).sum(), rtol=1e-4
    )
    with tf.GradientTape() as tape:
        y = jax2tf.convert(jnp.sin, with_gradient=False)(x)
    with pytest.raises(LookupError, match="with_gradient=True"):
        tape.gradient(y, x)


def test_sizes_that_do_not_fit_are_named(tf):
    f = jax2tf.convert(
        lambda x, y: x.reshape(2, -1).sum(0) + y, polymorphic_shapes=("2*b", "b"), polymorphic_constraints=["b <= 5"]
    )
    np.testing.assert_allclose(f(np.ones(6, "f4"), np.ones(3, "f4")), [3, 3, 3])
    for n, m, message in (
        (5, 2, "remainder 1"),
        (6, 2, r"args\[1\].shape\[0\] \(= 2\)"),
        (12, 6, "b = 6 do not satisfy the constraint b <= 5"),
    ):
        with pytest.raises(ValueError, match=message):
            f(np.ones(n, "f4"), np.ones(m, "f4"))


def test_sizes_that_are_not_known_need_a_variable(tf):
    f = tf.function(jax2tf.convert(lambda x: x), autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)])
    with pytest.raises(ValueError, match="None"):
        f(np.ones(3, "f4"))
    with pytest.raises(NotImplementedError, match="linear in them"):
        jax2tf.convert(lambda x: x.sum(), polymorphic_shapes="b*b")(np.ones(9, "f4"))


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_tensorflows_functions_are_called(tf, transform):
    f = jax2tf.call_tf(lambda p, x: {"y": tf.tanh(x @ p["w"])}, has_side_effects=False)
    g = lambda p, x: {"y": jnp.tanh(x @ p["w"])}
    np.testing.assert_allclose(transform(f)({"w": W}, X)["y"], np.tanh(X @ W), rtol=1e-5)
    have, want = [
        transform(gradix.grad(lambda p, x, f=f: (f(p, x)["y"] ** 2).sum(), (0, 1)))({"w": W}, X) for f in (f, g)
    ]
    np.testing.assert_allclose(have[0]["w"], want[0]["w"], rtol=1e-4)
    np.testing.assert_allclose(have[1], want[1], rtol=1e-4)
    with pytest.raises(NotImplementedError, match="call_tf_graph"):
        jax2tf.call_tf(tf.sin, call_tf_graph=True)


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_gradients_of_gradients_through_tensorflow(tf, transform):
    f = jax2tf.call_tf(lambda x, w: tf.reduce_sum(tf.sin(x * w)), has_side_effects=False)
    g = lambda x, w: jnp.sin(x * w).sum()
    x, w = X[0], np.float32(0.5)
    for again in (
        lambda f: gradix.jacrev(gradix.grad(f, 1)),
        lambda f: gradix.grad(lambda x, w: gradix.grad(lambda x: gradix.grad(f)(x, w).sum())(x).sum()),
    ):
        np.testing.assert_allclose(transform(again(f))(x, w), again(g)(x, w), rtol=1e-4)


def test_tensors_are_noted_as_divided(tf):
    spec = tf.TensorSpec((4, 3))
    for parts, first in (((2, 1), b"\x08\x03"), (None, b"")):
        graph = (
            tf.function(lambda x, parts=parts: jax2tf.split_to_logical_devices(x, parts))
            .get_concrete_function(spec)
            .graph
        )
        (noted,) = [o.get_attr("sharding") for o in graph.get_operations() if o.type == "XlaSharding"]
        assert noted.startswith(first)
    whole = tf.function(lambda x: 2 * jax2tf.split_to_logical_devices(x, (1, 1)), jit_compile=True)
    np.testing.assert_array_equal(whole(X), 2 * X)
    with pytest.raises(ValueError, match=r"each axis of the tensor, of shape \(4, 3\); got \(2,\)"):
        jax2tf.split_to_logical_devices(tf.ones((4, 3)), (2,))
