"""jaxquantum: a driven cavity that loses photons, its drive found by the gradient through the evolution."""

import jax
import jax.numpy as jnp
import jaxquantum as jqt

PACKAGES = ("jaxquantum", "diffrax", "lineax", "equinox", "jaxtyping", "optimistix", "qutip", "tqdm", "flax", "scipy")


def setup():
    n, times = 8, jnp.linspace(0, 1, 11)
    a = jqt.destroy(n)
    number = a.dag() @ a
    start = jqt.basis(n, 0).to_dm()
    losses = jqt.Qarray.from_list([jnp.sqrt(0.5) * a])

    def loss(drive):
        energy = number * 2.0 + (a + a.dag()) * drive
        states = jqt.mesolve(energy, start, times, c_ops=losses, solver_options=jqt.SolverOptions.create(False))
        photons = jnp.real(jqt.overlap(number, states))
        return (photons[-1] - 0.5) ** 2 + 0.1 * photons.mean()

    @jax.jit
    def step(drive):
        value, slope = jax.value_and_grad(loss)(drive)
        return drive - 0.3 * slope, value

    return step, jnp.float32(0.5)
