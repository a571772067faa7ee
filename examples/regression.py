"""Linear regression by gradient descent: the smallest complete training program.

python examples/regression.py
"""

from typing import NamedTuple

import gradix
import gradix.numpy as jnp

LEARNING_RATE = 0.05
STEPS = 200
TRUE_WEIGHT, TRUE_BIAS, NOISE = 2.0, -1.0, 0.5


class Params(NamedTuple):
    """The model y = weight * x + bias. A NamedTuple is a pytree, so `grad` returns another Params."""

    weight: gradix.Array
    bias: gradix.Array


def init(key):
    """Random parameters. Each key is used only once; `split` makes new keys from one."""
    weight_key, bias_key = gradix.random.split(key)
    return Params(gradix.random.normal(weight_key), gradix.random.normal(bias_key))


def loss(params, x, y):
    """Mean squared error of the predictions."""
    prediction = params.weight * x + params.bias
    return jnp.mean((prediction - y) ** 2)


@gradix.jit
def update(params, x, y):
    """One step of gradient descent: new parameters, and the loss of the old ones."""
    value, slope = gradix.value_and_grad(loss)(params, x, y)
    return gradix.tree.map(lambda p, g: p - LEARNING_RATE * g, params, slope), value


def main():
    """Make noisy points on a line, fit a line to them, and compare it with that of the closed formula."""
    x_key, noise_key, init_key = gradix.random.split(gradix.random.key(42), 3)
    x = gradix.random.normal(x_key, (128,))
    y = TRUE_WEIGHT * x + TRUE_BIAS + NOISE * gradix.random.normal(noise_key, (128,))

    params = init(init_key)
    print(f"128 points on y = {TRUE_WEIGHT:g} x {TRUE_BIAS:+g}, with noise of {NOISE:g}")
    print(f"at random     y = {params.weight:.3f} x {params.bias:+.3f}")
    for step in range(1, STEPS + 1):
        params, value = update(params, x, y)
        if step in (1, 10, 30, 100) or step == STEPS:
            print(f"step {step:8} y = {params.weight:.3f} x {params.bias:+.3f}   loss {value:.4f}")

    away = x - x.mean()
    weight = jnp.dot(away, y) / jnp.dot(away, away)
    bias = y.mean() - weight * x.mean()
    print(f"least squares y = {weight:.3f} x {bias:+.3f}   (closed formula)")

    print("\nTry next, in this file:")
    print("   - LEARNING_RATE = 1.05: the steps are too large, and the loss grows")
    print("   - in loss, jnp.abs(prediction - y) in place of the square: outliers then matter less")
    print("   - gradix.hessian(loss)(params, x, y) shows how the loss curves in each direction")


if __name__ == "__main__":
    main()
