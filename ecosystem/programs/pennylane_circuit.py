"""pennylane: a variational circuit on its own simulator, trained by backpropagation."""

import jax
import jax.numpy as jnp
import pennylane as qml

PACKAGES = (
    "pennylane",
    "autoray==0.8.4",
    "rustworkx",
    "autograd",
    "appdirs",
    "cachetools",
    "tomlkit",
    "diastatic-malt",
    "pennylane-lightning",
    "networkx",
    "requests",
    "certifi",
    "charset-normalizer",
    "idna",
    "urllib3",
    "typing_extensions",
)


def setup():
    device = qml.device("default.qubit", wires=4)

    @qml.qnode(device, interface="jax", diff_method="backprop")
    def circuit(weights):
        qml.StronglyEntanglingLayers(weights, wires=range(4))
        return qml.expval(qml.PauliZ(0) @ qml.PauliZ(3))

    @jax.jit
    def step(weights):
        value, slope = jax.value_and_grad(circuit)(weights)
        return weights - 0.1 * slope, jnp.real(value)

    return step, jax.random.uniform(jax.random.key(0), (2, 4, 3))
