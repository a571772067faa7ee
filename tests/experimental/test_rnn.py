"""LSTM networks: against a loop in NumPy, and JAX's."""

import numpy as np
import pytest

import gradix
from gradix import random
from gradix.experimental import rnn

RNG = np.random.default_rng(0)
CASES = [(1, False, (5, 5)), (2, True, (5, 5)), (1, False, (5, 3)), (2, True, (2, 4))]


def network(layers, both, lengths):
    count = rnn.get_num_params_in_lstm(3, 4, layers, both)
    state = (layers * (1 + both), len(lengths), 4)
    draw = [RNG.normal(size=s).astype("f") for s in ((len(lengths), 5, 3), state, state, (count,))]
    return [*draw, np.array(lengths, "i4")], (3, 4, layers, 0.0, both)


def by_loop(x, h, c, weights, lengths, *settings):
    """One sequence, one direction and one step at a time, in float64."""
    _, size, layers, _, both = settings
    w_ih, w_hh, b_ih, b_hh = [
        {k: np.asarray(v, "f8") for k, v in d.items()} for d in rnn.unpack_lstm_weights(weights, 3, size, layers, both)
    ]
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    h, c = h.astype("f8"), c.astype("f8")
    out = np.zeros((*x.shape[:2], size * (1 + both)))
    for n, length in enumerate(lengths):
        rows = x[n, :length].astype("f8")
        for layer in range(layers):
            parts = []
            for d in range(1 + both):
                i, ys = layer * (1 + both) + d, np.zeros((length, size))
                for t in range(length)[:: -1 if d else 1]:
                    gates = w_ih[i] @ rows[t] + w_hh[i] @ h[i, n] + b_ih[i] + b_hh[i]
                    a, f, g, o = gates.reshape(4, size)
                    c[i, n] = sigmoid(f) * c[i, n] + sigmoid(a) * np.tanh(g)
                    ys[t] = h[i, n] = sigmoid(o) * np.tanh(c[i, n])
                parts.append(ys)
            rows = np.concatenate(parts, -1)
        out[n, :length] = rows
    return out, h, c


@pytest.mark.parametrize("layers, both, lengths", CASES)
def test_values(layers, both, lengths):
    args, settings = network(layers, both, lengths)
    for ours, want in zip(rnn.lstm(*args, *settings), by_loop(*args, *settings)):
        np.testing.assert_allclose(ours, want, rtol=1e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("layers, both, lengths", CASES[2:])
def test_values_and_gradients_are_jaxs(layers, both, lengths):
    jax = pytest.importorskip("jax")
    theirs = pytest.importorskip("jax.experimental.rnn")
    (x, h, c, w, s), settings = network(layers, both, lengths)
    names = ("input_size", "hidden_size", "num_layers", "dropout", "bidirectional")

    def loss(api, module):
        def f(x, h, c, w):
            parts = module.unpack_lstm_weights(w, 3, 4, layers, both)
            y, h, c = module.lstm_ref(x, h, c, *parts, s, **dict(zip(names, settings)))
            return (y**2).sum() + (h * c).sum()

        return api.grad(f, (0, 1, 2, 3))(*[api.numpy.asarray(v) for v in (x, h, c, w)])

    for ours, want in zip(loss(gradix, rnn), loss(jax, theirs)):
        np.testing.assert_allclose(ours, want, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(
        rnn.swap_lstm_gates(w, 3, 4, layers, both), theirs.swap_lstm_gates(w, 3, 4, layers, both)
    )
    np.testing.assert_array_equal(
        rnn.init_lstm_weight(random.key(3), 3, 4, layers, both),
        theirs.init_lstm_weight(jax.random.key(3), 3, 4, layers, both),
    )


def test_gates_are_exchanged_twice_for_nothing():
    w = RNG.normal(size=rnn.get_num_params_in_lstm(2, 3, 2, True)).astype("f")
    once = rnn.swap_lstm_gates(w, 2, 3, 2, True)
    assert not np.array_equal(once, w)
    np.testing.assert_array_equal(rnn.swap_lstm_gates(once, 2, 3, 2, True), w)


def test_wrong_arguments():
    (x, h, c, w, s), settings = network(1, False, (5, 5))
    with pytest.raises(ValueError, match="144"):
        rnn.lstm(x, h, c, w[1:], s, *settings)
    with pytest.raises(ValueError, match="batch, length, 3"):
        rnn.lstm(x[..., :2], h, c, w, s, *settings)
    with pytest.raises(ValueError, match="h_0"):
        rnn.lstm(x, h[:, :1], c, w, s, *settings)
    with pytest.raises(NotImplementedError, match="dropout"):
        rnn.lstm(x, h, c, w, s, 3, 4, 1, 0.5, False)
