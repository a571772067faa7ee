"""Optimizers: each against its formula written out in NumPy, its state as a pytree, schedules, and JAX's."""

import numpy as np
import pytest

import gradix
from gradix import numpy as jnp
from gradix.example_libraries import optimizers

PARAMS = {"w": np.random.RandomState(1).randn(3, 2).astype("f"), "b": np.ones(2, "f")}
SCHEDULES = {
    "constant": lambda o: 0.1,
    "exponential": lambda o: o.exponential_decay(0.1, 3, 0.5),
    "inverse": lambda o: o.inverse_time_decay(0.1, 3, 0.5, True),
    "polynomial": lambda o: o.polynomial_decay(0.1, 5, 0.01, 2.0),
    "pieces": lambda o: o.piecewise_constant([2, 4], [0.1, 0.05, 0.01]),
}
MADE = {
    name: (lambda o, rate, name=name: getattr(o, name)(rate))
    for name in ("sgd", "adagrad", "rmsprop", "rmsprop_momentum", "adam", "adamax", "sm3")
}
MADE |= {name: (lambda o, rate, name=name: getattr(o, name)(rate, 0.8)) for name in ("momentum", "nesterov")}


def _gradients(i):
    return {"w": np.sin(i + PARAMS["w"]).astype("f") * (i != 3), "b": np.cos(i + PARAMS["b"]).astype("f")}


def _run(lib, make, rate, update=lambda f: f):
    opt = make(lib, rate(lib))
    state, step = opt.init_fn(PARAMS), update(opt.update_fn)
    for i in range(6):
        state = step(i, _gradients(i), state)
    return opt.params_fn(state)


@pytest.mark.parity
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MADE)
def test_steps_are_jaxs(name, schedule):
    theirs = pytest.importorskip("jax.example_libraries.optimizers")
    ours, want = (_run(lib, MADE[name], SCHEDULES[schedule]) for lib in (optimizers, theirs))
    for key in PARAMS:
        np.testing.assert_allclose(ours[key], want[key], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["adam", "sm3"])
def test_an_update_compiles(name):
    plain, compiled = (_run(optimizers, MADE[name], SCHEDULES["exponential"], u) for u in (lambda f: f, gradix.jit))
    for key in PARAMS:
        np.testing.assert_allclose(plain[key], compiled[key], rtol=1e-5, atol=1e-6)


def test_adam_is_its_formula():
    x, m, v = 1.0, 0.0, 0.0
    opt = optimizers.adam(0.1)
    state = opt.init_fn(np.float32(1.0))
    for i in range(1, 5):
        g = np.cos(3.0 * i)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= 0.1 * (m / (1 - 0.9**i)) / (np.sqrt(v / (1 - 0.999**i)) + 1e-8)
        state = opt.update_fn(i - 1, np.float32(g), state)
    np.testing.assert_allclose(opt.params_fn(state), x, rtol=1e-4)


def test_a_state_can_be_written_out_and_read():
    opt = optimizers.momentum(0.1, 0.9)
    state = opt.update_fn(0, _gradients(0), opt.init_fn(PARAMS))
    written = optimizers.unpack_optimizer_state(state)
    assert sorted(written) == ["b", "w"] and len(written["b"].subtree) == 2
    back = optimizers.pack_optimizer_state(written)
    assert back.tree_def == state.tree_def
    for a, b in zip(gradix.tree.leaves(back), gradix.tree.leaves(state)):
        np.testing.assert_array_equal(a, b)
    assert len(gradix.tree.leaves(state)) == 4


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: optimizers.sgd(0.1).update_fn(0, {"c": 1.0}, optimizers.sgd(0.1).init_fn({"a": 1.0})),
            TypeError,
            "gradient tree",
        ),
        (lambda: optimizers.make_schedule(np.ones(2)), TypeError, "step size"),
        (lambda: optimizers.piecewise_constant([1, 2], [1.0]), ValueError, "one shorter"),
        (lambda: optimizers.piecewise_constant([[1, 2]], [1.0]), ValueError, "sequences"),
    ],
)
def test_wrong_use_raises(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_gradients_are_clipped():
    tree = {"a": jnp.array([3.0]), "b": jnp.array([4.0])}
    np.testing.assert_allclose(optimizers.l2_norm(optimizers.clip_grads(tree, 2.0)), 2.0, rtol=1e-6)
    assert optimizers.clip_grads(tree, 10.0)["a"] == 3.0
