"""jraph: a graph network over a batch of padded graphs, trained to predict sums of nodes."""

import jax
import jax.numpy as jnp
import jraph

PACKAGES = ("jraph",)


def setup():
    def graph(n, seed):
        keys = jax.random.split(jax.random.key(seed), 2)
        return jraph.GraphsTuple(
            nodes=jax.random.normal(keys[0], (n, 4)),
            edges=jnp.ones((n, 1)),
            senders=jnp.arange(n),
            receivers=(jnp.arange(n) + 1) % n,
            n_node=jnp.array([n]),
            n_edge=jnp.array([n]),
            globals=jnp.zeros((1, 4)),
        )

    batch = jraph.pad_with_graphs(jraph.batch([graph(3, 0), graph(5, 1), graph(4, 2)]), 16, 16, 4)
    mask = jraph.get_graph_padding_mask(batch)

    def apply(w, g):
        net = jraph.GraphNetwork(
            update_edge_fn=lambda e, s, r, u: jnp.tanh(jnp.concatenate([e, s, r], -1) @ w["e"]),
            update_node_fn=lambda n, s, r, u: jnp.tanh(jnp.concatenate([n, s, r], -1) @ w["n"]),
            update_global_fn=lambda n, e, u: n @ w["u"],
        )
        return net(g).globals[:, 0]

    keys = jax.random.split(jax.random.key(3), 3)
    weights = {
        "e": jax.random.normal(keys[0], (9, 6)) * 0.3,
        "n": jax.random.normal(keys[1], (16, 8)) * 0.3,
        "u": jax.random.normal(keys[2], (8, 1)) * 0.3,
    }
    goal = jraph.segment_sum(batch.nodes.sum(-1), jnp.repeat(jnp.arange(4), batch.n_node, total_repeat_length=16), 4)

    @jax.jit
    def step(w):
        value, g = jax.value_and_grad(lambda w: jnp.sum(mask * (apply(w, batch) - goal) ** 2))(w)
        return jax.tree.map(lambda p, d: p - 0.01 * d, w, g), value

    return step, weights
