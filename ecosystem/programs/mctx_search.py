"""mctx: Gumbel MuZero's tree search over a learned model, for a batch of roots."""

import jax
import jax.numpy as jnp
import mctx

PACKAGES = ("mctx", "chex", "toolz", "absl-py", "typing_extensions")
STEPS = 20


def setup():
    batch, actions, width = 8, 5, 16
    keys = jax.random.split(jax.random.key(0), 4)
    move = 0.3 * jax.random.normal(keys[0], (actions, width, width))
    weights = jax.random.normal(keys[1], (width, actions)), jax.random.normal(keys[2], (width,))

    def predict(weights, state):
        return state @ weights[0], jnp.tanh(state @ weights[1])

    def recurrent(weights, key, action, state):
        state = jnp.tanh(jnp.einsum("bi,bij->bj", state, move[action]))
        logits, value = predict(weights, state)
        reward = state[:, 0]
        return mctx.RecurrentFnOutput(
            reward=reward, discount=jnp.full(batch, 0.97), prior_logits=logits, value=value
        ), state

    @jax.jit
    def step(carry):
        state, key = carry
        key, searched = jax.random.split(key)
        logits, value = predict(weights, state)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        found = mctx.gumbel_muzero_policy(weights, searched, root, recurrent, num_simulations=32)
        state = jnp.tanh(jnp.einsum("bi,bij->bj", state, move[found.action]))
        return (state, key), jnp.sum(found.action_weights * jnp.arange(actions)) + state.sum()

    return step, (jax.random.normal(keys[3], (batch, width)), jax.random.key(1))
