"""Functions of arrays in TensorFlow, in its SavedModels too, and its functions here."""
import importlib.util

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental import jax2tf

pytestmark = [pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
              pytest.mark.filterwarnings("ignore")]

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
    module.f = tf.function(lambda x: f({"w": module.w}, x), autograph=False, input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    tf.saved_model.save(module, str(tmp_path), options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(str(tmp_path))
    for n in (1, 4):
        np.testing.assert_allclose(loaded.f(X[:n])["y"], np.tanh(X[:n] @ W), rtol=1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loaded.f(X)["y"])
    np.testing.assert_allclose(tape.gradient(loss, loaded.w), gradix.grad(lambda w: jnp.tanh(X @ w).sum())(W), rtol=1e-4)


def test_sizes_that_are_not_known_need_a_variable(tf):
    f = tf.function(jax2tf.convert(lambda x: x), autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)])
    with pytest.raises(ValueError, match="None"):
        f(np.ones(3, "f4"))
    with pytest.raises(NotImplementedError, match="roots of sizes"):
        jax2tf.convert(lambda x: x.sum(), polymorphic_shapes="b*b")(np.ones(9, "f4"))


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_tensorflows_functions_are_called(tf, transform):
    f = jax2tf.call_tf(lambda p, x: {"y": tf.tanh(x @ p["w"])}, has_side_effects=False)
    g = lambda p, x: {"y": jnp.tanh(x @ p["w"])}
    np.testing.assert_allclose(transform(f)({"w": W}, X)["y"], np.tanh(X @ W), rtol=1e-5)
    have, want = [transform(gradix.grad(lambda p, x, f=f: (f(p, x)["y"] ** 2).sum(), (0, 1)))({"w": W}, X) for f in (f, g)]
    np.testing.assert_allclose(have[0]["w"], want[0]["w"], rtol=1e-4)
    np.testing.assert_allclose(have[1], want[1], rtol=1e-4)
    with pytest.raises(NotImplementedError, match="call_tf_graph"):
        jax2tf.call_tf(tf.sin, call_tf_graph=True)


def test_tensors_are_noted_as_divided(tf):
    spec = tf.TensorSpec((4, 3))
    for parts, first in (((2, 1), b"\x08\x03"), (None, b"")):
        graph = tf.function(lambda x, parts=parts: jax2tf.split_to_logical_devices(x, parts)).get_concrete_function(spec).graph
        noted, = [o.get_attr("sharding") for o in graph.get_operations() if o.type == "XlaSharding"]
        assert noted.startswith(first)
    whole = tf.function(lambda x: 2 * jax2tf.split_to_logical_devices(x, (1, 1)), jit_compile=True)
    np.testing.assert_array_equal(whole(X), 2 * X)
    with pytest.raises(ValueError, match=r"each axis of the tensor, of shape \(4, 3\); got \(2,\)"):
        jax2tf.split_to_logical_devices(tf.ones((4, 3)), (2,))
