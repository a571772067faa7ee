"""flax.linen: a transformer block with layer norm, attention and dropout, in a TrainState."""

import flax.linen as nn
import jax
import optax
from flax.training.train_state import TrainState

PACKAGES = (
    "flax",
    "optax",
    "chex",
    "toolz",
    "msgpack",
    "rich",
    "pyyaml",
    "treescope",
    "orbax-checkpoint",
    "tensorstore",
)


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train: bool):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=self.width)(y, y)
        y = nn.Dense(2 * self.width)(nn.LayerNorm()(x))
        y = nn.Dropout(0.1, deterministic=not train)(nn.gelu(y))
        return x + nn.Dense(self.width)(y)


class Model(nn.Module):
    @nn.compact
    def __call__(self, tokens, train: bool = False):
        x = nn.Embed(32, 16)(tokens)
        for _ in range(2):
            x = Block(16)(x, train)
        return nn.Dense(32)(nn.LayerNorm()(x))


def setup():
    model, key = Model(), jax.random.key(0)
    tokens = jax.random.randint(key, (8, 12), 0, 32)
    state = TrainState.create(apply_fn=model.apply, params=model.init(key, tokens)["params"], tx=optax.adam(1e-2))

    @jax.jit
    def step(carried):
        state, key = carried
        key, now = jax.random.split(key)

        def loss(params):
            logits = state.apply_fn({"params": params}, tokens[:, :-1], train=True, rngs={"dropout": now})
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(state.params)
        return (state.apply_gradients(grads=grads), key), value

    return step, (state, key)
