"""flax.nnx: a convolutional network as an object, with batch norm, dropout and an optimizer that changes it."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

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


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(1, 8, kernel_size=(3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(8 * 6 * 6, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        return self.out(self.dropout(x.reshape(x.shape[0], -1)))


def setup():
    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)
    images = jax.random.normal(jax.random.key(1), (16, 12, 12, 1))
    labels = jnp.arange(16) % 10

    @nnx.jit
    def train(model, optimizer):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return value

    def step(state):
        return state, train(model, optimizer)

    return step, None
