"""Long short-term memory networks with several layers, over sequences of different lengths.

The notation is that of cuDNN's and PyTorch's networks with two biases. Each layer has the gates
input, forget, cell and output, in this order; `W_ih` is applied to the layer's input and `W_hh` to
its last output. In a bidirectional network each layer counts twice, first forward and then
backward. All weights are in one vector: `W_ih, W_hh` of each layer, then `b_ih, b_hh` of each.

Source: S. Hochreiter and J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gradix import lax, numpy as jnp, random as _random
from gradix._base.listing import own_names as _own_names
from gradix.nn import sigmoid as _sigmoid

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike, KeyLike
    from gradix._core.operators import Array
    from gradix._ops.precision import Precision


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list:
    """The shapes of `W_ih, W_hh, b_ih, b_hh` of each layer."""
    directions = 2 if bidirectional else 1
    out = []
    for i in range(num_layers * directions):
        width = input_size if i < directions else hidden_size * directions
        out.append(((4 * hidden_size, width), (4 * hidden_size, hidden_size), (4 * hidden_size,), (4 * hidden_size,)))
    return out


def _places(shapes: list) -> list:
    """Where each array of `_shapes` starts in the vector of weights."""
    at, out = 0, [[0, 0, 0, 0] for _ in shapes]
    for kinds in ((0, 1), (2, 3)):
        for i, layer in enumerate(shapes):
            for k in kinds:
                out[i][k] = at
                at += math.prod(layer[k])
    return out


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """The number of weights of a network.

    Args:
        input_size: the size of an element of the sequences.
        hidden_size: the size of a layer's output.
        num_layers: the number of layers.
        bidirectional: whether each layer reads the sequences in both directions.

    Example:
        >>> get_num_params_in_lstm(3, 4, num_layers=2, bidirectional=True)
        736
    """
    return sum(math.prod(s) for layer in _shapes(input_size, hidden_size, num_layers, bidirectional) for s in layer)


def init_lstm_weight(rng: KeyLike, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> Any:
    """A vector of random weights, uniform in [-k, k) with k = 1 / sqrt(hidden_size); float32.

    Args:
        rng: a random key.
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Example:
        >>> from gradix import random
        >>> init_lstm_weight(random.key(0), 3, 4, 1, False).shape
        (144,)
    """
    k = math.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return _random.uniform(rng, (count,), jnp.float32, minval=-k, maxval=k)


def swap_lstm_gates(
    weights: ArrayLike | None, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """The weights with the gates cell and output exchanged, as some libraries order them.

    Args:
        weights: a vector of weights, as `init_lstm_weight` makes it.
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Example:
        >>> swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False)[:4]
        Array([0., 1., 3., 2.], dtype=float32)
    """
    weights = jnp.asarray(weights)
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    order = np.arange(weights.size)
    for layer, places in zip(shapes, _places(shapes)):
        for shape, at in zip(layer, places):
            part = order[at : at + math.prod(shape)].reshape(4, -1)
            part[2:] = part[:1:-1].copy()
    return weights[order]


def unpack_lstm_weights(
    weights: ArrayLike | None, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict, dict, dict, dict]:
    """`W_ih, W_hh, b_ih, b_hh`, each a dictionary from the layer's number to its array.

    Args:
        weights: a vector of weights, as `init_lstm_weight` makes it.
        input_size, hidden_size, num_layers, bidirectional: as for `get_num_params_in_lstm`.

    Raises:
        ValueError: the length of the vector is not the number of weights.

    Example:
        >>> w_ih, w_hh, b_ih, b_hh = unpack_lstm_weights(jnp.zeros(144), 3, 4, 1, False)
        >>> w_ih[0].shape, w_hh[0].shape, b_ih[0].shape
        ((16, 3), (16, 4), (16,))
    """
    weights = jnp.asarray(weights)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if weights.shape != (count,):
        raise ValueError(
            f"lstm: weights must be a vector of {count} elements for {input_size=}, {hidden_size=}, "
            f"{num_layers=}, {bidirectional=}; got shape {weights.shape}. Make it by init_lstm_weight."
        )
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    out: tuple[dict, dict, dict, dict] = {}, {}, {}, {}
    for i, (layer, places) in enumerate(zip(shapes, _places(shapes))):
        for kind, shape, at in zip(out, layer, places):
            kind[i] = weights[at : at + math.prod(shape)].reshape(shape)
    return out


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: ArrayLike | None,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Precision | None = None,
) -> Any:
    """The outputs and last states of a long short-term memory network.

    Args:
        x: sequences, of shape (batch, length, input_size).
        h_0, c_0: the initial outputs and cells, of shape (directions * num_layers, batch,
            hidden_size).
        weights: a vector of weights, as `init_lstm_weight` makes it.
        seq_lengths: the length of each sequence, of shape (batch,); later elements are not read.
        input_size, hidden_size, num_layers: the sizes of the network.
        dropout: must be zero.
        bidirectional: whether each layer reads the sequences in both directions.
        precision: the precision of the products; see `lax.Precision`.

    Returns:
        The outputs, of shape (batch, length, directions * hidden_size), which are zero after the
        end of a sequence; and the last outputs and cells, of the shape of `h_0`.

    Raises:
        ValueError: a shape does not fit.
        NotImplementedError: `dropout` is not zero.

    Example:
        >>> from gradix import random
        >>> weights = init_lstm_weight(random.key(0), 3, 4, 1, False)
        >>> start = jnp.zeros((1, 2, 4))
        >>> y, h, c = lstm(jnp.ones((2, 5, 3)), start, start, weights, jnp.array([5, 3]), 3, 4, 1, 0.0, False)
        >>> y.shape, h.shape
        ((2, 5, 4), (1, 2, 4))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _network(
        x,
        (h_0, c_0),
        parts,
        seq_lengths,
        input_size,
        hidden_size,
        num_layers=num_layers,
        dropout=dropout,
        bidirectional=bidirectional,
        precision=precision,
    )


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict,
    W_hh: dict,
    b_ih: dict,
    b_hh: dict,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> Any:
    """The results of `lstm` for weights as `unpack_lstm_weights` gives them.

    Args:
        x, h_0, c_0: as for `lstm`.
        W_ih, W_hh, b_ih, b_hh: dictionaries from the layer's number to its array.
        seq_lengths, input_size, hidden_size, num_layers, dropout, bidirectional: as for `lstm`.

    Example:
        >>> parts = unpack_lstm_weights(jnp.ones(144), 3, 4, 1, False)
        >>> start = jnp.zeros((1, 2, 4))
        >>> lstm_ref(jnp.ones((2, 5, 3)), start, start, *parts, jnp.array([5, 3]), 3, 4, 1, 0.0, False)[0].shape
        (2, 5, 4)
    """
    return _network(
        x,
        (h_0, c_0),
        (W_ih, W_hh, b_ih, b_hh),
        seq_lengths,
        input_size,
        hidden_size,
        num_layers=num_layers,
        dropout=dropout,
        bidirectional=bidirectional,
        precision=None,
    )


def _network(
    x, states, weights, seq_lengths, input_size, hidden_size, *, num_layers, dropout, bidirectional, precision
):
    """The results of `lstm`, for initial `states` `(h, c)` and unpacked weights."""
    (h_0, c_0), (W_ih, W_hh, b_ih, b_hh) = states, weights
    x, h_0, c_0, seq_lengths = map(jnp.asarray, (x, h_0, c_0, seq_lengths))
    directions = 2 if bidirectional else 1
    if dropout:
        raise NotImplementedError(
            f"lstm: dropout must be 0, got {dropout}. Apply dropout to the input, or between networks of one layer."
        )
    if x.ndim != 3 or x.shape[2] != input_size:
        raise ValueError(f"lstm: x must be of shape (batch, length, {input_size}), got {x.shape}.")
    state = (directions * num_layers, x.shape[0], hidden_size)
    if h_0.shape != state or c_0.shape != state or seq_lengths.shape != x.shape[:1]:
        raise ValueError(
            f"lstm: h_0 and c_0 must be of shape {state} and seq_lengths of shape {x.shape[:1]}; got "
            f"{h_0.shape}, {c_0.shape} and {seq_lengths.shape}."
        )
    is_there = jnp.arange(x.shape[1])[:, None] < seq_lengths[None]
    rows, last_h, last_c = jnp.swapaxes(x, 0, 1), [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            y, h, c = _layer(
                rows,
                is_there,
                h_0[i],
                c_0[i],
                W_ih[i],
                W_hh[i],
                b=b_ih[i] + b_hh[i],
                backward=direction == 1,
                precision=precision,
            )
            outputs.append(y)
            last_h.append(h)
            last_c.append(c)
        rows = jnp.concatenate(outputs, -1)
    return jnp.swapaxes(rows, 0, 1), jnp.stack(last_h), jnp.stack(last_c)


def _layer(rows, is_there, h, c, W_ih, W_hh, *, b, backward: bool, precision):
    """One direction of one layer: outputs (length, batch, hidden), and the final state."""
    inputs = jnp.einsum("tbi,gi->tbg", rows, W_ih, precision=precision) + b[None, None]

    def step(state, row):
        h, c = state
        given, there = row
        i, f, g, o = jnp.split(given + jnp.matmul(h, W_hh.T, precision=precision), 4, -1)
        new_c = _sigmoid(f) * c + _sigmoid(i) * jnp.tanh(g)
        new_h = _sigmoid(o) * jnp.tanh(new_c)
        there = there[:, None]
        return (jnp.where(there, new_h, h), jnp.where(there, new_c, c)), jnp.where(there, new_h, 0)

    # Read backwards, the padding after a sequence comes first and leaves the state unchanged.
    (h, c), y = lax.scan(step, (h, c), (inputs, is_there), reverse=backward)
    return y, h, c


__dir__ = _own_names(__name__)
