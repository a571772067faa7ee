"""qujax: a layered circuit whose energy in an Ising chain is minimized."""

import jax
import jax.numpy as jnp
import qujax

PACKAGES = ("qujax",)
QUBITS, LAYERS = 5, 2


def setup():
    gates, qubits, numbers, n = [], [], [], 0
    for _ in range(LAYERS):
        for i in range(QUBITS):
            gates += ["Ry", "Rz"]
            qubits += [[i], [i]]
            numbers += [[n], [n + 1]]
            n += 2
        for i in range(QUBITS - 1):
            gates.append("CZ")
            qubits.append([i, i + 1])
            numbers.append([])
    state_of = qujax.get_params_to_statetensor_func(gates, qubits, numbers)
    terms = [["Z", "Z"]] * (QUBITS - 1) + [["X"]] * QUBITS
    at = [[i, i + 1] for i in range(QUBITS - 1)] + [[i] for i in range(QUBITS)]
    energy_of = qujax.get_statetensor_to_expectation_func(terms, at, -jnp.ones(len(terms)))

    @jax.jit
    def step(params):
        value, slope = jax.value_and_grad(lambda p: energy_of(state_of(p)))(params)
        return params - 0.02 * slope, value

    return step, 0.3 * jax.random.normal(jax.random.key(0), (n,))
