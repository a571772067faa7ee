"""flax.nnx in its hijax mode: variables that JAX's own transformations take and change in place."""

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


class Count(nnx.Variable):
    pass


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Param(rngs.params.normal((2, 32)))
        self.bias = nnx.Param(jnp.zeros(32))
        self.second = nnx.Param(rngs.params.normal((32, 1)) / 6)
        self.calls = Count(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return nnx.relu(x @ self.first + self.bias[None]) @ self.second


def setup():
    with nnx.var_defaults(hijax=True):
        model = Net(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (64, 2))
    y = jnp.sin(x[:, :1]) * x[:, 1:]

    @jax.jit
    def train(model, optimizer):
        graphdef, params, rest = nnx.split(model, nnx.Param, ...)

        def loss(params):
            return jnp.mean((nnx.merge(graphdef, params, rest)(x) - y) ** 2)

        value, grads = jax.value_and_grad(loss)(nnx.with_vars(params, hijax=False))
        optimizer.update(model, grads)
        return value

    def step(state):
        return state, train(model, optimizer) + model.calls[...]

    return step, None
